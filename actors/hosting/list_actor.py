"""The list step of one source on Ray."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any, assert_never

from actors.hosting.event_source import EventSource
from actors.hosting.shell import ActorShell
from actors.listing.instructions import FindGone, ListInstruction, ReadPage
from actors.listing.list_executor import ListExecutor
from actors.listing.listing_pace import ListingPace
from actors.listing.listing_state import ListedState, wait_for_listing_s
from actors.listing.missing_files import GoneFound, find_gone
from actors.listing.request_budget import RequestBudget
from actors.listing.seen_index import SeenIndex
from actors.notifications.instructions import (
    DeleteMessages,
    EventInstruction,
    ExtendMessages,
    LookAt,
    Receive,
    ReleaseMessages,
)
from actors.objects.listing_page import microseconds_of
from actors.objects.object_store import ObjectStore
from actors.objects.page_reader import PageReader
from actors.protocol.barrier import Barrier
from actors.protocol.messages import Message
from actors.protocol.reports import ListProgress
from actors.sources.discovery import Notifications
from actors.sources.path_filter import PathFilter
from actors.sources.source import SourceDefinition
from state.errors import ProtocolError
from state.location import Location


class ListActor(ActorShell[ListInstruction]):
    """Hosts a `ListExecutor` and lists its bucket, a page at a time.

    Args:
        source: what to list.
        seen: what was handed on before the last commit.
        schema_known: whether the source's schema is decided.
        sampled: see `ListExecutor`.
        spent: see `RequestBudget`.
        not_before: what was written earlier is left out; None for nothing.
        listed: what the store knows of the last listing; None for nothing.
    """

    def __init__(
        self,
        *,
        name: str,
        edges: list[str],
        coordinator: Any,
        root: Location,
        source: SourceDefinition,
        seen: SeenIndex,
        schema_known: bool,
        sampled: int,
        spent: Sequence[int],
        not_before: datetime | None,
        listed: ListedState,
    ) -> None:
        super().__init__(name=name, edges=edges, coordinator=coordinator, root=root)
        store = ObjectStore(source.location)
        self._reader = PageReader(store)
        self._filter = PathFilter(source.pattern)
        self._events: EventSource | None = None
        self._claimed: asyncio.Task[None] | None = None
        wait_s: float | None = None
        if isinstance(source.discovery, Notifications):
            self._events = EventSource(source, source.discovery, store, root)
            wait_s = wait_for_listing_s(listed, source, source.discovery.queue_url, self._clock.now())
        self._unreadable: set[str] = set()
        self._has_warned = self._has_stopped = False
        # A directory costs nothing to list.
        per_hour = None if source.location.is_local else source.discovery.max_requests_per_hour
        self._executor = ListExecutor(
            actor=name,
            source=source.name,
            path_filter=self._filter,
            pace=ListingPace(
                source.discovery.relist_s,
                RequestBudget(per_hour, spent, self.now_s()),
                self.now_s() + (wait_s or 0.0),
            ),
            seen=seen,
            schema_known=schema_known,
            sampled=sampled,
            must_settle=source.location.is_local,
            not_before_us=None if not_before is None else microseconds_of(not_before),
            events=None if self._events is None else self._events.watch(self._filter),
            must_list=wait_s is None,
            listed=listed,
            removes=source.policy.on_change == "replace",
            order=source.order,
        )

    def on_message(self, edge: str, message: Message) -> list[ListInstruction]:
        if not isinstance(message, Barrier):
            raise ProtocolError(f"{self._name}: {type(message).__name__} does not pass here")
        return self._executor.on_barrier(message, self.now_s())

    def on_time(self) -> list[ListInstruction]:
        return self._executor.on_time(self.now_s())

    def progress(self) -> ListProgress:
        return self._executor.progress()

    async def schema(self, found: bool) -> None:
        """The files that were sent ahead have shown the source's schema, or none of them could be read."""
        with self._guard():
            self.do(self._executor.on_schema(found, self.now_s()))

    async def mark(self, mark: int) -> None:
        """Asks for word of when everything that is there now has been handed on."""
        with self._guard():
            self.do(self._executor.on_mark(mark, self.now_s()))

    async def committed(self, epoch: int) -> None:
        """All epochs up to this one are committed."""
        with self._guard():
            self.do(self._executor.on_committed(epoch, self.now_s()))

    def end(self) -> None:
        """What a request receives from now on is for whoever comes next: it waits while the last epoch is committed."""
        self._has_stopped = True
        super().end()

    def perform(self, instruction: ListInstruction) -> None:
        match instruction:
            case ReadPage():
                self.run_guarded(self._read_page(instruction))
            case FindGone():
                self.run_guarded(self._find_gone(instruction))
            case Receive() | LookAt() | DeleteMessages() | ExtendMessages() | ReleaseMessages():
                if self._events is None:
                    raise ProtocolError(f"{self._name}: {type(instruction).__name__} without a queue of events")
                self._ask(self._events, instruction)
            case _:
                self.perform_flow(instruction)

    def _ask(self, events: EventSource, instruction: EventInstruction) -> None:
        match instruction:
            case Receive():
                self.run_guarded(self._receive(events, instruction))
            case LookAt():
                self.run_guarded(self._look_at(events, instruction))
            case DeleteMessages():
                self.run_leaving(events.delete(instruction.messages))
            case ExtendMessages():
                self.run_guarded(events.extend(instruction.messages))
            case ReleaseMessages():
                self.run_leaving(events.release(instruction.messages))
            case _:
                assert_never(instruction)

    async def _receive(self, events: EventSource, receive: Receive) -> None:
        if self._claimed is None:
            self._claimed = self.run_guarded(self._claim(events))
        await self._claimed
        if self._failure is not None:
            # The queue may be somebody else's.
            return
        messages, depth = await events.receive(receive)
        if self._has_stopped:
            await events.release(messages)
            return
        self.do(self._executor.on_messages(receive, messages, depth, self.now_s()))

    async def _claim(self, events: EventSource) -> None:
        """Before the first message is received, and again with every listing: who was overwritten learns it then."""
        warning = await events.claim()
        if warning is not None and not self._has_warned:
            self._has_warned = True
            self._log.warning("the queue cannot say who reads it", error=warning)

    async def _look_at(self, events: EventSource, instruction: LookAt) -> None:
        found = await events.look_at(instruction.paths)
        self.do(self._executor.on_looked(found, self.now_s()))

    async def _read_page(self, instruction: ReadPage) -> None:
        if instruction.first:
            self._reader.begin()
            if self._events is not None:
                self._claimed = self.run_guarded(self._claim(self._events))
        page = await asyncio.to_thread(self._reader.read, instruction.most)
        if page is None:
            self.do(self._executor.on_listing_end(self.now_s(), self._clock.now()))
            return
        for name in page.unreadable:
            self._warn_of(name)
        self.do(self._executor.on_page(page, self.now_s()))

    def _warn_of(self, name: str) -> None:
        """A file that cannot be read, once."""
        if name not in self._unreadable and self._filter.accepts(name):
            self._unreadable.add(name)
            self._log.warning("a file is left out: its name has characters that cannot be read; rename it", file=name)

    async def _find_gone(self, instruction: FindGone) -> None:
        found = await asyncio.to_thread(self._look_for, instruction)
        self.do(self._executor.on_gone(found))

    def _look_for(self, instruction: FindGone) -> GoneFound:
        # Lance takes half a second to load, and mostly nothing is gone.
        from state.lance.lance_root import LanceRoot

        assert self._root is not None, "a list actor has state"
        store = LanceRoot(self._root, self._clock).open(read_only=True)
        return find_gone(store, instruction.source, instruction.absent)

"""The shell of the list step of one source."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Protocol, assert_never

from actors.exchange.edge import Outlet
from actors.file_errors import REFUSALS
from actors.files import FileVersion, microseconds_of
from actors.listing.instructions import FindDeleted, ListInstruction, ReadPage, ReportPause, ReportRemovals, WarnOf
from actors.listing.list_executor import ListExecutor
from actors.listing.listing_pace import ListingPace
from actors.listing.listing_state import ListedState, wait_for_listing_s
from actors.listing.missing_files import DeletedFound, find_deleted
from actors.listing.removal_guard import RemovalGuard
from actors.listing.request_budget import RequestBudget
from actors.listing.run_deletions import Deletions
from actors.names.name_messages import NameAnswer
from actors.names.name_shards import NameShards, SendToNames
from actors.names.seen_piece import SeenLoader, SeenPiece
from actors.notifications.event_watch import EventWatch
from actors.notifications.instructions import (
    DeleteMessages,
    EventInstruction,
    ExtendMessages,
    LookAt,
    Receive,
    ReleaseMessages,
)
from actors.notifications.message_tracker import QueueDepth, QueueMessage
from actors.objects.listing_page import ListingPage
from actors.protocol.barrier import Barrier
from actors.protocol.messages import Message
from actors.protocol.reports import ListProgress
from actors.shells.actor_shell import ActorShell, Coordinating, Receiver
from actors.shells.runtime import Actor, Event, Runtime
from actors.sources.path_filter import PathFilter
from actors.sources.refusals import Operation
from actors.sources.source import FilePolicy, SourceDefinition
from state.errors import ProtocolError
from state.store.root import Root


@dataclass(frozen=True)
class ListStart:
    """The source of a list actor, and where its work begins.

    Args:
        schema_known: whether the source's schema is decided.
        sampled: see `ListExecutor`.
        spent: see `RequestBudget`.
        not_before: files that were written earlier are left out; None for no limit.
        listed: the last listing, as the store knows it.
        name_actors: the name actors that keep its names; none if the list actor keeps them.
    """

    source: SourceDefinition
    schema_known: bool
    sampled: int
    spent: Sequence[int]
    not_before: datetime | None
    listed: ListedState
    name_actors: tuple[str, ...] = ()


class Pages(Protocol):
    """The pages of one listing after the other."""

    def begin(self) -> None:
        """Begins a new listing."""
        ...

    def read(self, most: int) -> ListingPage | None:
        """The next pages, up to `most`, as one; None at the end.  Blocks."""
        ...


class Events(Protocol):
    """A source's queue of events, and the bucket that they are about."""

    @property
    def queue_url(self) -> str: ...

    def watch(self, path_filter: PathFilter) -> EventWatch:
        """The decisions about when the queue is asked."""
        ...

    async def claim(self) -> str | None:
        """Marks the queue as read by this pipeline.  Answer and errors as `MessageQueue.claim`."""
        ...

    async def receive(self, receive: Receive) -> tuple[list[QueueMessage], QueueDepth | None]:
        """The messages, and with an extra request the depth of the queue behind them."""
        ...

    async def look_at(self, paths: Sequence[str]) -> Mapping[str, FileVersion | None]:
        """Path → the object there now; None without one."""
        ...

    async def delete(self, messages: Sequence[QueueMessage]) -> None:
        """Takes messages out of the queue."""
        ...

    async def extend(self, messages: Sequence[QueueMessage]) -> None:
        """Keeps messages invisible for another while."""
        ...

    async def release(self, messages: Sequence[QueueMessage]) -> None:
        """Lets the next reader receive messages at once."""
        ...


class ListShell(ActorShell[ListInstruction]):
    """Hosts a `ListExecutor` and lists its bucket, a page at a time.

    Args:
        open_root: opens the root of the pipeline.
        start: the source, and where its work begins.
        events: the queue of events; None for a source without notifications.
        must_settle: see `ListExecutor`.
        deletions: the files that the run has deleted in the source; None if the run cannot delete files.
    """

    reports_progress = True

    def __init__(
        self,
        *,
        name: str,
        edges: Sequence[str],
        coordinator: Actor[Coordinating],
        runtime: Runtime,
        open_root: Callable[[], Root],
        start: ListStart,
        pages: Pages,
        events: Events | None,
        must_settle: bool,
        deletions: Deletions | None = None,
    ) -> None:
        super().__init__(name=name, edges=edges, coordinator=coordinator, runtime=runtime, open_root=open_root)
        self._start, self._root, self._pages, self._events = start, open_root, pages, events
        self._must_settle, self._deletions = must_settle, deletions
        self._seen = SeenLoader()
        self._name_actors: dict[str, tuple[Actor[Receiver], Outlet]] = {}
        self._claimed: Event | None = None
        self._unclaimed: Exception | None = None
        self._has_warned = self._has_stopped = False

    def _new_executor(self) -> ListExecutor:
        start, events, now_s = self._start, self._events, self.now_s()
        source, path_filter = start.source, start.source.path_filter
        wait_s = None
        if events is not None:
            wait_s = wait_for_listing_s(start.listed, source, events.queue_url, self._runtime.clock.now())
        # A directory costs nothing to list.
        per_hour = None if source.location.is_local else source.discovery.max_requests_per_hour
        return ListExecutor(
            actor=self.name,
            source=source.name,
            url=source.location.url,
            path_filter=path_filter,
            pace=ListingPace(
                source.discovery.relist_s, RequestBudget(per_hour, start.spent, now_s), now_s + (wait_s or 0.0)
            ),
            seen=NameShards(start.name_actors) if start.name_actors else self._seen.index(),
            schema_known=start.schema_known,
            sampled=start.sampled,
            must_settle=self._must_settle,
            not_before_us=None if start.not_before is None else microseconds_of(start.not_before),
            events=None if events is None else events.watch(path_filter),
            must_list=wait_s is None,
            listed=start.listed,
            removes=source.policy.removes,
            guard=_guard(source.policy),
            order=source.order,
            is_frame=source.table == "frame",
        )

    # -- calls of other actors ------------------------------------------------------------------------------------

    async def take_seen(self, piece: SeenPiece) -> None:
        """Takes names that were handed on before the last commit; all of them come before `connect`."""
        self._seen.add(piece)

    async def meet(self, name_actors: Mapping[str, Actor[Receiver]]) -> None:
        """Opens edges to and from the name actors."""
        for name, actor in name_actors.items():
            self._name_actors[name] = actor, Outlet(self.name)
            self._inlet.add(name)

    async def connect(self, receivers: Mapping[str, Actor[Receiver]]) -> None:
        """Opens the edges out; the list step begins with the names that have come."""
        self._executor = self._new_executor()
        await super().connect(receivers)

    async def schema(self, found: bool) -> None:
        """The files that were sent ahead have shown the source's schema, or none of them could be read."""
        with self.guard():
            self.do(self._executor.on_schema(found, self.now_s()))

    async def mark(self, mark: int, at_once: bool) -> None:
        """Requests a report when all files that exist now are handed on; `at_once` as in `MarkListings`."""
        with self.guard():
            self.do(self._executor.on_mark(mark, self.now_s(), at_once=at_once))

    async def committed(self, epoch: int) -> None:
        """All epochs up to this one are committed."""
        with self.guard():
            self.do(self._executor.on_committed(epoch, self.now_s()))

    # -- the executor ---------------------------------------------------------------------------------------------

    def on_message(self, edge: str, message: Message) -> list[ListInstruction]:
        if isinstance(message, NameAnswer):
            return self._executor.on_names(edge, message)
        if not isinstance(message, Barrier):
            raise ProtocolError(f"{self.name}: {type(message).__name__} does not pass here")
        return self._executor.on_barrier(message, self.now_s())

    def on_time(self) -> list[ListInstruction]:
        return self._executor.on_time(self.now_s())

    def progress(self) -> ListProgress:
        return self._executor.progress()

    def end(self) -> None:
        """Messages that are received from now on are for the next reader: they wait for the last commit."""
        self._has_stopped = True
        super().end()

    # -- instructions ---------------------------------------------------------------------------------------------

    def perform(self, instruction: ListInstruction) -> None:
        match instruction:
            case SendToNames():
                receiver, outlet = self._name_actors[instruction.to]
                self._runtime.notify(receiver, Receiver.receive, outlet.send(instruction.message))
            case ReadPage():
                self.beside(self._read_page, instruction)
            case FindDeleted():
                self.beside(self._find_deleted, instruction)
            case WarnOf(name=name):
                self._log.warning("a file or directory is skipped", path=name.path, reason=name.reason)
            case ReportPause(reason=None):
                self._log.info("the source continues", source=self._start.source.name)
            case ReportPause(reason=reason):
                self._log.warning("the source is paused", source=self._start.source.name, reason=reason)
            case ReportRemovals(paused=0):
                self._log.info("removals go on", source=self._start.source.name)
            case ReportRemovals(paused=paused, known=known):
                self._log.warning(
                    "removals are paused: the rows of missing files stay in the views",
                    source=self._start.source.name, missing=paused, files=known,
                    next_step="bring the files back, or accept their removal with `slackwater allow-removals`",
                )  # fmt: skip
            case Receive() | LookAt() | DeleteMessages() | ExtendMessages() | ReleaseMessages():
                if self._events is None:
                    raise ProtocolError(f"{self.name}: {type(instruction).__name__} without a queue of events")
                self._ask(self._events, instruction)
            case _:
                self.perform_flow(instruction)

    def _ask(self, events: Events, instruction: EventInstruction) -> None:
        match instruction:
            case Receive():
                self.beside(self._receive, events, instruction)
            case LookAt():
                self.beside(self._look_at, events, instruction)
            case DeleteMessages():
                self.beside_leaving(self._if_accepted, events.delete, instruction.messages)
            case ExtendMessages():
                self.beside(self._if_accepted, events.extend, instruction.messages)
            case ReleaseMessages():
                self.beside_leaving(self._if_accepted, events.release, instruction.messages)
            case _:
                assert_never(instruction)

    async def _receive(self, events: Events, receive: Receive) -> None:
        if self._claimed is None or self._unclaimed is not None:
            self._claimed = self.beside(self._claim, events)
        await self._claimed.wait()
        if self._failure is not None:
            # The queue may be another pipeline's.
            return
        if self._unclaimed is not None:
            self._try_again("queue", self._unclaimed, self._receive, events, receive)
            return
        try:
            messages, depth = await events.receive(receive)
        except REFUSALS as error:
            self._try_again("queue", error, self._receive, events, receive)
            return
        if self._has_stopped:
            await events.release(messages)
            return
        self.do(self._executor.on_messages(receive, messages, depth, self.now_s()))

    async def _claim(self, events: Events) -> None:
        """Before the first message, and with every listing: a reader that was overwritten learns it then."""
        try:
            warning = await events.claim()
        except REFUSALS as error:
            self._unclaimed = error
            return
        self._unclaimed = None
        if warning is not None and not self._has_warned:
            self._has_warned = True
            self._log.warning("the queue cannot say who reads it", error=warning)

    def _try_again(
        self, operation: Operation, error: Exception, work: Callable[..., Coroutine[Any, Any, None]], *arguments: Any
    ) -> None:
        """Pauses the source, and repeats a refused request later."""
        self.do(self._executor.on_refused(operation, error, self.now_s()))
        self._runtime.later(self._executor.retry_s, partial(self._repeat, work, arguments))

    def _repeat(self, work: Callable[..., Coroutine[Any, Any, None]], arguments: tuple[Any, ...]) -> None:
        if not self._has_stopped:
            self.beside(work, *arguments)

    async def _if_accepted(
        self, request: Callable[[Sequence[QueueMessage]], Coroutine[Any, Any, None]], messages: Sequence[QueueMessage]
    ) -> None:
        """A request about messages of the queue; if it is refused, the queue delivers them again."""
        try:
            await request(messages)
        except REFUSALS as error:
            self._log.warning("the queue refuses a request", source=self._start.source.name, error=str(error))

    async def _look_at(self, events: Events, instruction: LookAt) -> None:
        await self._learn_deletions()
        try:
            found = await events.look_at(instruction.paths)
        except REFUSALS as error:
            self._try_again("look at an object", error, self._look_at, events, instruction)
            return
        self.do(self._executor.on_looked(found, self.now_s()))

    async def _read_page(self, instruction: ReadPage) -> None:
        if instruction.first:
            # Before the first request: a page that is older than a deletion would show the deleted object.
            await self._learn_deletions()
            self._pages.begin()
            if self._events is not None:
                self._claimed = self.beside(self._claim, self._events)
        try:
            page = await self._runtime.in_thread(partial(self._pages.read, instruction.most))
        except REFUSALS as error:
            self.do(self._executor.on_refused("listing", error, self.now_s()))
            return
        if page is None:
            self.do(self._executor.on_listing_end(self.now_s(), self._runtime.clock.now()))
            return
        self.do(self._executor.on_page(page, self.now_s()))

    async def _learn_deletions(self) -> None:
        if self._deletions is not None:
            self.do(self._executor.on_run_deletions(await self._runtime.in_thread(self._deletions.news)))

    async def _find_deleted(self, instruction: FindDeleted) -> None:
        found = await self._runtime.in_thread(partial(self._look_for, instruction))
        self.do(self._executor.on_deleted(found))

    def _look_for(self, instruction: FindDeleted) -> DeletedFound:
        return find_deleted(self._root().open(read_only=True), instruction.source, instruction.missing)


def _guard(policy: FilePolicy) -> RemovalGuard | None:
    return RemovalGuard(policy.max_removed_share, policy.max_removed_files) if policy.removes else None

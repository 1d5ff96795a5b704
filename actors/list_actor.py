"""The list step of one source on Ray."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from actors.actor_shell import ActorShell
from actors.instructions import Instruction, ReadPage
from actors.list_executor import ListExecutor
from actors.messages import Barrier, Message
from actors.object_store import ListingPage, ObjectStore
from actors.path_filter import PathFilter
from actors.reports import ListProgress
from actors.seen_index import SeenIndex
from actors.source import SourceDefinition
from state.errors import ProtocolError
from state.location import Location


class ListActor(ActorShell):
    """Hosts a `ListExecutor` and lists its bucket, a page at a time.

    Args:
        source: what to list.
        seen: what was handed on before the last commit.
        schema_known: whether the source's schema is decided.
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
    ) -> None:
        super().__init__(name=name, edges=edges, coordinator=coordinator, root=root)
        self._store = ObjectStore(source.location)
        self._pages: Iterator[ListingPage] = iter(())
        self._executor = ListExecutor(
            actor=name,
            source=source.name,
            path_filter=PathFilter(source.pattern),
            interval_s=source.discovery.interval_s,
            seen=seen,
            schema_known=schema_known,
            must_settle=source.location.is_local,
        )

    def on_message(self, edge: str, message: Message) -> list[Instruction]:
        if not isinstance(message, Barrier):
            raise ProtocolError(f"{self._name}: {type(message).__name__} does not pass here")
        return self._executor.on_barrier(message, self.now_s())

    def on_time(self) -> list[Instruction]:
        return self._executor.on_time(self.now_s())

    def progress(self) -> ListProgress:
        return self._executor.progress()

    async def schema(self, found: bool) -> None:
        """The file that was sent ahead has shown the source's schema, or could not be read."""
        with self._guard():
            self.do(self._executor.on_schema(found, self.now_s()))

    async def mark(self, mark: int) -> None:
        """Asks for word of when everything that is there now has been handed on."""
        with self._guard():
            self.do(self._executor.on_mark(mark))

    def perform(self, instruction: Instruction) -> None:
        if isinstance(instruction, ReadPage):
            self.run_guarded(self._read_page(instruction.first))
        else:
            super().perform(instruction)

    async def _read_page(self, first: bool) -> None:
        if first:
            self._pages = self._store.list_pages()
        page = await asyncio.to_thread(next, self._pages, None)
        if page is None:
            self.do(self._executor.on_listing_end(self.now_s(), self._clock.now()))
        else:
            self.do(self._executor.on_page(page, self.now_s()))

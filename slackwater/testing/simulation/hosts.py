"""The actors of the flow, each a host of the executor that also runs on Ray."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from actors.dispatch_executor import DispatchExecutor
from actors.edge import Outlet
from actors.fetch_executor import FetchExecutor
from actors.file_progress import Ending, FileProgress
from actors.file_queue import FileQueue
from actors.instructions import (
    CloseFiles,
    Deliver,
    EmitBlock,
    Grant,
    InferSchema,
    Instruction,
    ProposeSchema,
    ReadPage,
    ReadPiece,
)
from actors.list_executor import ListExecutor
from actors.merge_executor import MergeExecutor
from actors.messages import Barrier, Block, FileKey, FileVersion, Message, PathKey
from actors.path_filter import PathFilter
from actors.read_errors import ObjectChanged, ObjectVanished
from actors.reports import EpochBlocks, FetchProgress, ListProgress
from actors.seen_index import SeenIndex
from actors.source import SourceDefinition
from actors.vnode_mapping import VnodeMapping
from slackwater.testing.simulation.bucket import Content
from slackwater.testing.simulation.file_rows import ROW_BYTES, FileRows, Span
from slackwater.testing.simulation.host import Host
from state.errors import ProtocolError, RunFailedError, StorageUnavailableError

if TYPE_CHECKING:
    from slackwater.testing.simulation.attempt import SimulatedAttempt

SCHEMA = pa.schema([("x", pa.int64())])


class ListHost(Host):
    """The list step of one source.

    Args:
        source: what to list.
        seen: what was handed on before the last commit.
        schema_known: whether the source's schema is decided.
        must_settle: whether the bucket is a directory.
    """

    reports_progress = True

    def __init__(
        self,
        attempt: SimulatedAttempt,
        name: str,
        edges: Sequence[str],
        *,
        source: SourceDefinition,
        seen: SeenIndex,
        schema_known: bool,
        must_settle: bool,
    ) -> None:
        super().__init__(attempt, name, edges)
        self._source = source.name
        self._after: str | None = None
        self.executor = ListExecutor(
            actor=name,
            source=source.name,
            path_filter=PathFilter(source.pattern),
            interval_s=source.discovery.interval_s,
            seen=seen,
            schema_known=schema_known,
            must_settle=must_settle,
        )

    def on_message(self, edge: str, message: Message) -> list[Instruction]:
        assert isinstance(message, Barrier)
        return self.executor.on_barrier(message, self.now_s)

    def on_time(self) -> list[Instruction]:
        return self.executor.on_time(self.now_s)

    def progress(self) -> ListProgress:
        return self.executor.progress()

    def schema(self, found: bool) -> None:
        """The file that was sent ahead has shown the source's schema, or could not be read."""
        self.do(self.executor.on_schema(found, self.now_s))

    def mark(self, mark: int) -> None:
        """Asks for word of when everything that is there now has been handed on."""
        self.do(self.executor.on_mark(mark))

    def perform(self, instruction: Instruction) -> None:
        if isinstance(instruction, ReadPage):
            self.soon(self._read_page, instruction.first)
        else:
            super().perform(instruction)

    def _read_page(self, first: bool) -> None:
        page = self._world.bucket.page(self._source, None if first else self._after)
        if page is None:
            self.do(self.executor.on_listing_end(self.now_s, self._world.clock.now()))
            return
        self._after = page.paths[-1] if page.paths else ""
        self.do(self.executor.on_page(page, self.now_s))


class DispatchHost(Host):
    """The dispatch step."""

    def __init__(self, attempt: SimulatedAttempt, name: str, edges: Sequence[str], *, mapping: VnodeMapping) -> None:
        super().__init__(attempt, name, edges)
        self.executor = DispatchExecutor(actor=name, edges=edges, mapping=mapping)

    def on_message(self, edge: str, message: Message) -> list[Instruction]:
        return self.executor.on_message(edge, message)


class FetchHost(Host):
    """The fetch step of one share of the vnodes.  Each request is conditional, so a file may change between two.

    Args:
        schemas: of the sources, as far as they are decided.
        unfinished, without_rows: see `FileQueue`.
        poisoned: see `FetchExecutor`.
    """

    reports_progress = True

    def __init__(
        self,
        attempt: SimulatedAttempt,
        name: str,
        edges: Sequence[str],
        *,
        schemas: Iterable[str],
        unfinished: Iterable[FileProgress],
        without_rows: Iterable[FileKey],
        poisoned: Mapping[PathKey, str],
    ) -> None:
        super().__init__(attempt, name, edges)
        settings = attempt.definition.fetch
        self._edge = Outlet(name, settings.max_bytes_in_flight)
        self._piece_rows = max(1, settings.piece_bytes // ROW_BYTES)
        self._open: dict[FileVersion, int] = {}
        self.executor = FetchExecutor(
            actor=name,
            settings=settings,
            outlet=self._edge,
            queue=FileQueue(unfinished, without_rows),
            known_schemas=schemas,
            poisoned=poisoned,
        )

    def outlet(self) -> Outlet:
        return self._edge

    def on_message(self, edge: str, message: Message) -> list[Instruction]:
        return self.executor.on_message(message, self.now_s)

    def on_time(self) -> list[Instruction]:
        return self.executor.on_time(self.now_s)

    def progress(self) -> FetchProgress:
        return self.executor.progress()

    def schema(self, source: str) -> None:
        """The schema of a source is decided."""
        self.do(self.executor.on_schema(source, self.now_s))

    def grant(self, nbytes: int) -> None:
        """Spark has released bytes that came from here."""
        self.do(self.executor.on_grant(nbytes, self.now_s))

    def perform(self, instruction: Instruction) -> None:
        if isinstance(instruction, ReadPiece):
            self.soon(self._read, instruction.file, instruction.offset_rows)
        elif isinstance(instruction, InferSchema):
            self.soon(self._infer, instruction.file)
        elif isinstance(instruction, EmitBlock):
            rows = FileRows.joined(instruction.tables)
            self.send(Block(self.name, instruction.source, rows, instruction.rows, instruction.nbytes))
        elif isinstance(instruction, ProposeSchema):
            coordinator = self._attempt.coordinator
            coordinator.tell(coordinator.propose_schema, instruction.source, instruction.schema)
        elif isinstance(instruction, CloseFiles):
            self._open.clear()
        else:
            super().perform(instruction)

    def _infer(self, file: FileVersion) -> None:
        content = self._requested(file)
        if content is None:
            return
        if content.rows == 0:
            self._end(file, Ending("done"))
        elif content.bad_row == 0:
            self._end(file, Ending("quarantined", "row 1: not a number"))
        else:
            self.do(self.executor.on_inferred(file, SCHEMA, self.now_s))

    def _read(self, file: FileVersion, offset_rows: int) -> None:
        content = self._requested(file)
        if content is None:
            return
        start = self._open.get(file, offset_rows)
        if content.bad_row is not None and start >= content.bad_row:
            self._end(file, Ending("quarantined", f"row {start + 1}: not a number"))
            return
        end = min(start + self._world.random.randint(1, self._piece_rows), content.readable_rows)
        piece = FileRows((Span((file.source, file.path, file.version), start, end),) if end > start else ())
        last = end == content.rows
        self._open[file] = end
        if last:
            del self._open[file]
        cost = {"requests": 1, "bytes_read": piece.nbytes}
        self.do(self.executor.on_piece(file, piece, last=last, **cost, now_s=self.now_s))

    def _requested(self, file: FileVersion) -> Content | None:
        """The content of a file; None if the executor was told what became of the request instead."""
        try:
            content = self._world.bucket.read(file)
        except StorageUnavailableError as error:
            self._open.pop(file, None)
            self.do(self.executor.on_unavailable(file, error, requests=1, bytes_read=0, now_s=self.now_s))
            return None
        except (ObjectVanished, ObjectChanged) as error:
            self._end(file, Ending("vanished", str(error)))
            return None
        if content.kills == "fetch":
            raise RunFailedError(f"the actor {self.name} died: out of memory")
        return content

    def _end(self, file: FileVersion, ending: Ending) -> None:
        self._open.pop(file, None)
        self.do(self.executor.on_ending(file, ending, requests=1, bytes_read=0, now_s=self.now_s))


class MergeHost(Host):
    """The merge step, with the epochs that wait for the materializer.

    Args:
        senders: edge → the fetch actor at its other end.
    """

    def __init__(
        self, attempt: SimulatedAttempt, name: str, edges: Sequence[str], *, senders: Mapping[str, FetchHost]
    ) -> None:
        super().__init__(attempt, name, edges)
        self._senders = senders
        self.executor = MergeExecutor(actor=name, edges=edges)
        self.epochs: list[EpochBlocks] = []

    def on_message(self, edge: str, message: Message) -> list[Instruction]:
        return self.executor.on_message(edge, message)

    def release(self, epoch: int) -> None:
        """Spark has read the epoch's blocks: their bytes are free again."""
        self.do(self.executor.on_release(epoch))

    def perform(self, instruction: Instruction) -> None:
        if isinstance(instruction, Deliver):
            self.epochs.append(instruction.epoch)
            self._attempt.materializer.look_soon()
        elif isinstance(instruction, Grant):
            sender = self._senders[instruction.edge]
            sender.tell(sender.grant, instruction.nbytes)
        else:
            raise ProtocolError(f"{self.name} cannot perform {type(instruction).__name__}")

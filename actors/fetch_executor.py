"""Reads files and emits their rows, with offsets that travel with the rows.

A file's offset moves when its rows are emitted, never when they are read: what is read but not emitted at a barrier
belongs to a later epoch, and a restart reads it again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

import pyarrow as pa

from actors.edge import Outlet
from actors.file_progress import Ending, FileProgress
from actors.file_queue import FileQueue
from actors.instructions import (
    CloseFiles,
    EmitBlock,
    End,
    Fail,
    InferSchema,
    Instruction,
    ProposeSchema,
    ReadPiece,
    WakeAt,
    pass_on,
)
from actors.messages import (
    Barrier,
    ChangedFiles,
    FileKey,
    FileVersion,
    Message,
    NewFiles,
    PathKey,
    Pause,
    Resume,
    RetriedFiles,
    Throttle,
)
from actors.read_buffer import Piece, ReadBuffer
from actors.reports import CollectReport, FetchProgress
from actors.settings import FetchSettings
from actors.token_bucket import TokenBucket
from state.errors import ProtocolError
from state.records import EpochCounts

_BACKOFF_S = 0.5
_BUFFERED_PIECES = 4


class FetchExecutor:
    """The fetch step of one share of the vnodes: file names in, blocks of rows out.

    Args:
        actor: this actor's name in reports.
        settings: how much is read at once.
        outlet: the edge to the merger; its credit decides what may be emitted.
        queue: the files that were not finished at the last commit.
        known_schemas: the sources whose schema is decided.
        poisoned: paths that are given up, with the reason.
    """

    def __init__(
        self,
        *,
        actor: str,
        settings: FetchSettings,
        outlet: Outlet,
        queue: FileQueue,
        known_schemas: Iterable[str],
        poisoned: Mapping[PathKey, str],
    ) -> None:
        self._actor, self._settings, self._outlet, self._queue = actor, settings, outlet, queue
        self._schemas, self._poisoned = set(known_schemas), poisoned
        self._admitted: frozenset[PathKey] | None = frozenset()
        self._epoch: int | None = None
        self._paused = self._stopped = False
        self._open_tokens, self._byte_tokens = TokenBucket(None, 0.0), TokenBucket(None, 0.0)
        self._active: dict[FileKey, int] = {}
        self._partly_read: deque[FileProgress] = deque()
        self._undecided: dict[FileKey, FileProgress] = {}
        self._delayed: list[tuple[float, FileProgress]] = []
        self._buffers: dict[str, ReadBuffer] = {}
        self._files = self._rows = self._bytes = self._requests = 0
        self._activity = self._received = self._unsealed_bytes = 0

    def on_message(self, message: Message, now_s: float) -> list[Instruction]:
        """Takes file names, changes and barriers, in the order of the edge."""
        if isinstance(message, Barrier):
            return self._on_barrier(message, now_s)
        if self._epoch is None:
            raise ProtocolError(f"{self._actor}: {type(message).__name__} before the initial barrier")
        if isinstance(message, NewFiles):
            for file in message.files:
                self._queue.add(file, self._epoch)
            self._received += len(message.files)
        elif isinstance(message, ChangedFiles):
            for changed in message.files:
                self._queue.change(changed, self._epoch)
        elif isinstance(message, RetriedFiles):
            self._queue.retry(message.files)
        else:
            raise ProtocolError(f"{self._actor}: {type(message).__name__} does not pass here")
        self._activity += 1
        return self._go_on(now_s)

    def on_piece(
        self, file: FileVersion, table: pa.Table, *, last: bool, requests: int, bytes_read: int, now_s: float
    ) -> list[Instruction]:
        """Some rows were read; `requests` and `bytes_read` are what they cost."""
        progress = self._read(file, requests, bytes_read)
        progress.read_to += table.num_rows
        self._buffer(Piece(progress, table, progress.read_to, Ending("done") if last else None))
        if not last:
            self._partly_read.append(progress)
        return self._go_on(now_s)

    def on_ending(
        self, file: FileVersion, ending: Ending, *, requests: int, bytes_read: int, now_s: float
    ) -> list[Instruction]:
        """The file ends here without its last rows, or before it showed a schema.  The rows before stay."""
        progress = self._read(file, requests, bytes_read)
        self._buffer(Piece(progress, None, progress.read_to, ending))
        undecided = file.source not in self._schemas
        proposal: list[Instruction] = [ProposeSchema(file.source, None)] if undecided else []
        return proposal + self._go_on(now_s)

    def on_unavailable(
        self, file: FileVersion, error: Exception, *, requests: int, bytes_read: int, now_s: float
    ) -> list[Instruction]:
        """The store did not answer: tried again after a pause; after the last try the run fails."""
        progress = self._read(file, requests, bytes_read)
        progress.attempts += 1
        progress.unanswered += 1
        if progress.unanswered >= self._settings.max_attempts:
            return [Fail(error)]
        self._delayed.append((now_s + _BACKOFF_S * 2**progress.unanswered, progress))
        return self._go_on(now_s)

    def on_inferred(self, file: FileVersion, schema: pa.Schema, now_s: float) -> list[Instruction]:
        """The first file of a source has shown its schema; it is read when the schema is decided."""
        progress = self._queue.get(file)
        self._byte_tokens.take(-self._active.pop(progress.key))
        if file.source in self._schemas:
            self._partly_read.append(progress)
            return self._go_on(now_s)
        self._undecided[progress.key] = progress
        return [ProposeSchema(file.source, schema), *self._go_on(now_s)]

    def on_schema(self, source: str, now_s: float) -> list[Instruction]:
        """The schema of a source is decided."""
        self._schemas.add(source)
        for key in [key for key in self._undecided if key[0] == source]:
            self._partly_read.append(self._undecided.pop(key))
        return self._go_on(now_s)

    def on_grant(self, nbytes: int, now_s: float) -> list[Instruction]:
        """Spark has released bytes of this edge."""
        self._outlet.grant(nbytes)
        return self._go_on(now_s)

    def on_time(self, now_s: float) -> list[Instruction]:
        """A time that a `WakeAt` named has come."""
        return self._go_on(now_s)

    def progress(self) -> FetchProgress:
        """How far this step is."""
        sources = {source: tally.as_progress() for source, tally in self._queue.tallies.items()}
        return FetchProgress(self._actor, self._activity, self._received, self._unsealed_bytes, sources)

    def _on_barrier(self, barrier: Barrier, now_s: float) -> list[Instruction]:
        if self._epoch is not None and barrier.epoch.prev != self._epoch:
            raise ProtocolError(f"{self._actor}: barrier {barrier.epoch} does not follow epoch {self._epoch}")
        instructions = [] if self._epoch is None else self._emit(flush=True)
        instructions += pass_on(barrier, self._seal(barrier))
        initial = self._epoch is None
        self._epoch, self._admitted = barrier.epoch.curr, barrier.admitted
        if barrier.is_stop:
            self._stopped = True
            return [*instructions, CloseFiles(), End()]
        if initial and self._poisoned:
            self._files += self._queue.give_up(self._poisoned, self._epoch)
            self._activity += 1
        if isinstance(barrier.mutation, (Pause, Resume)):
            self._paused = isinstance(barrier.mutation, Pause)
        elif isinstance(barrier.mutation, Throttle):
            self._throttle(barrier.mutation, now_s)
        return [*instructions, *self._go_on(now_s)]

    def _throttle(self, throttle: Throttle, now_s: float) -> None:
        """Each fetch actor takes an equal share of the limits, as it has of the vnodes."""
        rates = (throttle.files_per_second, throttle.bytes_per_second)
        shares = [None if rate is None else rate / self._settings.num_fetchers for rate in rates]
        self._open_tokens, self._byte_tokens = (TokenBucket(share, now_s) for share in shares)

    def _seal(self, barrier: Barrier) -> CollectReport:
        counts = EpochCounts(self._files, self._rows, self._bytes, self._requests)
        self._files = self._rows = self._bytes = self._requests = self._unsealed_bytes = 0
        return CollectReport(
            self._actor,
            barrier.epoch.prev,
            self._queue.seal(),
            counts=counts,
            activity=self._activity,
            vanished=self._queue.take_vanished(),
            unfinished_since=self._queue.unfinished_since(),
        )

    def _read(self, file: FileVersion, requests: int, bytes_read: int) -> FileProgress:
        """Reading a piece of a file has ended, well or not."""
        progress = self._queue.account(file, requests=requests, bytes_read=bytes_read)
        self._byte_tokens.take(bytes_read - self._active.pop(progress.key))
        self._requests += requests
        self._bytes += bytes_read
        self._activity += 1
        return progress

    def _buffer(self, piece: Piece) -> None:
        source = piece.progress.file.source
        self._buffers.setdefault(source, ReadBuffer()).add(piece)
        if piece.ending is not None:
            self._queue.tallies[source].reading -= 1

    def _go_on(self, now_s: float) -> list[Instruction]:
        """Emits what is full, or what nothing more will join, and starts reads while there is room."""
        if self._epoch is None or self._stopped:
            return []
        due = [progress for at, progress in self._delayed if at <= now_s]
        self._delayed = [each for each in self._delayed if each[0] > now_s]
        self._partly_read.extend(due)
        instructions = self._start_reads(now_s)
        instructions += self._emit(flush=not self._active)
        instructions += self._start_reads(now_s)
        wakes = [at for at, _ in self._delayed] + self._throttled_until(now_s)
        return [*instructions, WakeAt(min(wakes))] if wakes else instructions

    def _throttled_until(self, now_s: float) -> list[float]:
        """When a limit lets the next piece be read, if a limit is what it waits for."""
        if self._paused or not (self._partly_read or self._queue.waiting):
            return []
        wait_s = self._byte_tokens.wait_s(now_s) or self._open_tokens.wait_s(now_s)
        return [now_s + wait_s] if wait_s else []

    def _start_reads(self, now_s: float) -> list[Instruction]:
        if self._paused:
            return []
        instructions: list[Instruction] = []
        piece_bytes = self._settings.piece_bytes
        room = _BUFFERED_PIECES * piece_bytes
        room -= sum(buffer.nbytes for buffer in self._buffers.values()) + sum(self._active.values())
        while len(self._active) < self._settings.concurrency and room > 0 and not self._byte_tokens.wait_s(now_s):
            if (progress := self._next_file(now_s)) is None:
                break
            self._active[progress.key] = min(progress.file.size, piece_bytes)
            self._byte_tokens.take(self._active[progress.key])
            room -= self._active[progress.key]
            if progress.file.source in self._schemas:
                instructions.append(ReadPiece(progress.file, progress.read_to))
            else:
                instructions.append(InferSchema(progress.file))
        return instructions

    def _next_file(self, now_s: float) -> FileProgress | None:
        """The admitted file that is read on or opened next."""
        if (progress := self._pop_admitted(self._partly_read)) is not None:
            return progress
        if self._open_tokens.wait_s(now_s):
            return None
        if (progress := self._pop_admitted(self._queue.waiting)) is not None:
            self._open_tokens.take(1)
            self._queue.tallies[progress.file.source].reading += 1
        return progress

    def _pop_admitted(self, files: deque[FileProgress]) -> FileProgress | None:
        if self._admitted is None:
            return files.popleft() if files else None
        progress = next((each for each in files if each.key[:2] in self._admitted), None)
        if progress is not None:
            files.remove(progress)
        return progress

    def _emit(self, *, flush: bool) -> list[Instruction]:
        """Emits full blocks, and with `flush` also the rest, as far as there is credit."""
        instructions: list[Instruction] = []
        block_bytes = self._settings.piece_bytes
        for source, buffer in self._buffers.items():
            while buffer and not self._paused and (flush or buffer.nbytes >= block_bytes):
                if not self._outlet.may_send(buffer.next_bytes(block_bytes)):
                    break
                pieces = buffer.take(block_bytes)
                tables = tuple(piece.table for piece in pieces if piece.table is not None and piece.table.num_rows)
                if tables:
                    nbytes = sum(table.nbytes for table in tables)
                    self._outlet.reserve(nbytes)
                    self._unsealed_bytes += nbytes
                    instructions.append(EmitBlock(source, tables, sum(t.num_rows for t in tables), nbytes))
                for piece in pieces:
                    self._advance(piece)
        return instructions

    def _advance(self, piece: Piece) -> None:
        """The piece's rows are emitted: the file's offset moves, or the file ends."""
        assert self._epoch is not None
        self._rows += self._queue.advance(piece.progress, piece.end_row, self._epoch)
        if piece.ending is not None:
            self._queue.finish(piece.progress, piece.ending, self._epoch)
            self._files += 1
        self._activity += 1

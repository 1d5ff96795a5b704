"""Reads files and emits their rows, with offsets that travel with the rows.

A file's offset moves when its rows are emitted, never when they are read: what is read but not emitted at a barrier
belongs to a later epoch, and a restart reads it again.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from actors.edge import Outlet
from actors.file_progress import Ending, FileProgress
from actors.file_queue import FileQueue
from actors.instructions import (
    CloseFile,
    CloseFiles,
    EmitBlock,
    End,
    Fail,
    InferSchema,
    Instruction,
    ProposeColumns,
    ProposeSchema,
    ReadPiece,
    Send,
    StagePiece,
    WakeAt,
    pass_on,
)
from actors.left_out import LeftOut
from actors.messages import (
    Barrier,
    ChangedFiles,
    Correction,
    FileKey,
    FileVersion,
    ForgottenFile,
    ForgottenFiles,
    GoneFile,
    GoneFiles,
    Message,
    NewFiles,
    PathKey,
    Pause,
    RereadFiles,
    Resume,
    RetriedFiles,
    StoredBlock,
    Throttle,
)
from actors.read_buffer import Piece, ReadBuffer
from actors.replacing_files import ReplacingFiles
from actors.reports import CollectReport, FetchProgress
from actors.rows import Rows
from actors.settings import FetchSettings
from actors.source import FilePolicy
from actors.token_bucket import TokenBucket
from state.errors import BadInputError, ProtocolError, SchemaError
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
        policies: what each source does with changed files and bad records.
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
        policies: Mapping[str, FilePolicy],
    ) -> None:
        self._actor, self._settings, self._outlet, self._queue = actor, settings, outlet, queue
        self._schemas, self._poisoned, self._policies = set(known_schemas), poisoned, policies
        self._admitted: frozenset[FileKey] | None = frozenset()
        self._epoch: int | None = None
        self._paused = self._stopped = False
        self._throttle(Throttle(), 0.0)
        self._most_files = _share(settings.max_files_per_epoch, settings)
        self._active: dict[FileKey, int] = {}
        self._partly_read: deque[FileProgress] = deque()
        self._undecided: dict[FileKey, FileProgress] = {}
        self._samples: dict[str, int] = {}
        self._left_out = LeftOut()
        self._delayed: list[tuple[float, FileProgress]] = []
        self._buffers: dict[str, ReadBuffer] = {}
        self._replacing = ReplacingFiles()
        self._abandoned: set[FileKey] = set()
        self._files = self._rows = self._bytes = self._requests = 0
        self._activity = self._received = self._unsealed_bytes = 0

    def on_message(self, message: Message, now_s: float) -> list[Instruction]:
        """Takes file names, changes and barriers, in the order of the edge."""
        if isinstance(message, Barrier):
            return self._on_barrier(message, now_s)
        if self._epoch is None:
            raise ProtocolError(f"{self._actor}: {type(message).__name__} before the initial barrier")
        instructions: list[Instruction] = []
        if isinstance(message, NewFiles):
            for file in message.files:
                self._queue.add(file, self._epoch)
                self._samples[file.source] = message.sample
            self._received += len(message.files)
        elif isinstance(message, ChangedFiles):
            for changed in message.files:
                policy = self._policies[changed.now.source].on_change
                if policy == "fail" and not self._queue.is_without_rows(changed):
                    return [Fail(_bad_input(changed.now, "it has changed since it was handed on", "on_change"))]
                self._queue.change(changed, self._epoch)
        elif isinstance(message, GoneFiles):
            instructions = self._note_gone(message.files)
        elif isinstance(message, RetriedFiles):
            self._queue.retry(message.files)
        elif isinstance(message, ForgottenFiles):
            instructions = self._forget(message.files)
        elif isinstance(message, RereadFiles):
            instructions = self._abandon(self._queue.reread(message.files, self._epoch))
        else:
            raise ProtocolError(f"{self._actor}: {type(message).__name__} does not pass here")
        self._activity += 1
        return [*instructions, *self._go_on(now_s)]

    def on_piece(
        self, file: FileVersion, rows: Rows, *, last: bool, requests: int, bytes_read: int, now_s: float
    ) -> list[Instruction]:
        """Some records were read; `requests` and `bytes_read` are what they cost."""
        if self._is_abandoned(file, requests, bytes_read):
            return [CloseFile(file), *self._go_on(now_s)]
        progress = self._read(file, requests, bytes_read)
        if rows.bad and self._policies[file.source].on_bad_record == "fail":
            return [Fail(_bad_input(file, f"row {rows.bad[0].row + 1}: {rows.bad[0].reason}"))]
        if rows.first_row != progress.read_to.row:
            raise ProtocolError(f"{file.path}: row {rows.first_row} comes after row {progress.read_to.row}")
        progress.read_to = replace(rows.anchor, row=rows.end_row)
        if progress.replaces:
            return [*self._store(Piece(progress, rows, Ending("done") if last else None)), *self._go_on(now_s)]
        self._buffer(Piece(progress, rows, Ending("done") if last else None))
        if not last:
            self._partly_read.append(progress)
        return self._go_on(now_s)

    def on_ending(
        self, file: FileVersion, ending: Ending, *, requests: int, bytes_read: int, now_s: float
    ) -> list[Instruction]:
        """The file ends here without its last rows, or before it showed a schema.  The rows before stay."""
        if self._is_abandoned(file, requests, bytes_read):
            return [CloseFile(file), *self._go_on(now_s)]
        progress = self._read(file, requests, bytes_read)
        if ending.is_gone and progress.row_offset and self._policies[file.source].on_change == "replace":
            progress.gone_epoch = self._current_epoch
            return [*self._forget([ForgottenFile(file.source, file.path)]), *self._go_on(now_s)]
        if ending.status == "quarantined" and self._policies[file.source].on_bad_record == "fail":
            return [Fail(_bad_input(file, ending.error or "it cannot be read"))]
        if progress.replaces:
            self._store(Piece(progress, None, ending))
        else:
            self._buffer(Piece(progress, None, ending))
        undecided = file.source not in self._schemas
        return (self._proposal(file, None) if undecided else []) + self._go_on(now_s)

    def on_unavailable(
        self, file: FileVersion, error: Exception, *, requests: int, bytes_read: int, now_s: float
    ) -> list[Instruction]:
        """The store did not answer: tried again after a pause; after the last try the run fails."""
        if self._is_abandoned(file, requests, bytes_read):
            return [CloseFile(file), *self._go_on(now_s)]
        progress = self._read(file, requests, bytes_read)
        progress.attempts += 1
        progress.unanswered += 1
        if progress.unanswered >= self._settings.max_attempts:
            return [Fail(error)]
        self._delayed.append((now_s + _BACKOFF_S * 2**progress.unanswered, progress))
        return self._go_on(now_s)

    def on_inferred(self, file: FileVersion, schema: pa.Schema | SchemaError, now_s: float) -> list[Instruction]:
        """A file of a source without a schema has shown one, if not a usable one; it is read when that is decided."""
        if self._is_abandoned(file):
            return [CloseFile(file), *self._go_on(now_s)]
        progress = self._queue.get(file)
        self._byte_tokens.take(-self._active.pop(progress.key))
        if file.source in self._schemas:
            self._partly_read.append(progress)
            return self._go_on(now_s)
        self._undecided[progress.key] = progress
        return self._proposal(file, schema) + self._go_on(now_s)

    def on_new_columns(
        self, file: FileVersion, columns: pa.Schema, *, requests: int, bytes_read: int, now_s: float
    ) -> list[Instruction]:
        """The next records have columns that the source lacks; they are read when it has them."""
        if self._is_abandoned(file, requests, bytes_read):
            return [CloseFile(file), *self._go_on(now_s)]
        progress = self._read(file, requests, bytes_read)
        self._undecided[progress.key] = progress
        return [ProposeColumns(file.source, columns), *self._go_on(now_s)]

    def on_staged(self, file: FileVersion, stored: StoredBlock, now_s: float) -> list[Instruction]:
        """What `StagePiece` asked for is durable."""
        if self._is_abandoned(file):
            return [CloseFile(file), *self._go_on(now_s)]
        progress = self._queue.get(file)
        del self._active[progress.key]
        progress.staged.append(stored)
        self._on_stored(progress)
        return self._go_on(now_s)

    def on_schema(self, source: str, now_s: float) -> list[Instruction]:
        """The schema of a source is decided, or has got columns."""
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
        return FetchProgress(
            self._actor, self._activity, self._received, self._unsealed_bytes, sources, not self._files_left()
        )

    def _on_barrier(self, barrier: Barrier, now_s: float) -> list[Instruction]:
        if self._epoch is not None and barrier.epoch.prev != self._epoch:
            raise ProtocolError(f"{self._actor}: barrier {barrier.epoch} does not follow epoch {self._epoch}")
        instructions = [] if self._epoch is None else [*self._emit(now_s, flush=True), *self._correct()]
        instructions += pass_on(barrier, self._seal(barrier))
        initial = self._epoch is None
        self._epoch, self._admitted = barrier.epoch.curr, barrier.admitted
        self._replacing.corrected.clear()
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
        most_rows = throttle.rows_per_second or self._settings.max_rows_per_second
        rates = (throttle.files_per_second, throttle.bytes_per_second, most_rows)
        shares = [None if rate is None else rate / self._settings.num_fetchers for rate in rates]
        self._open_tokens, self._byte_tokens, self._row_tokens = (TokenBucket(share, now_s) for share in shares)

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
            corrected=self._queue.take_corrected(),
            left_out=self._left_out.take(),
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
        self._buffers.setdefault(piece.progress.file.source, ReadBuffer()).add(piece)
        if piece.ending is not None:
            self._end_reading(piece.progress)

    def _end_reading(self, progress: FileProgress) -> None:
        if progress.is_reading:
            progress.is_reading = False
            self._queue.tallies[progress.file.source].reading -= 1

    def _go_on(self, now_s: float) -> list[Instruction]:
        """Emits what is full, or what nothing more will join, and starts reads while there is room."""
        if self._epoch is None or self._stopped:
            return []
        due = [progress for at, progress in self._delayed if at <= now_s]
        self._delayed = [each for each in self._delayed if each[0] > now_s]
        self._partly_read.extend(due)
        instructions = self._start_reads(now_s)
        instructions += self._emit(now_s, flush=not self._active)
        instructions += self._correct()
        instructions += self._start_reads(now_s)
        wakes = [at for at, _ in self._delayed] + self._throttled_until(now_s)
        return [*instructions, WakeAt(min(wakes))] if wakes else instructions

    def _throttled_until(self, now_s: float) -> list[float]:
        """When a limit lets the next piece be read or emitted, if a limit is what it waits for."""
        waits_s = []
        if not self._paused and (self._partly_read or self._queue.waiting):
            waits_s.append(self._byte_tokens.wait_s(now_s) or self._open_tokens.wait_s(now_s))
        if not self._paused and any(self._buffers.values()):
            waits_s.append(self._row_tokens.wait_s(now_s))
        return [now_s + wait_s for wait_s in waits_s if wait_s]

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
            progress.is_reading = True
        return progress

    def _pop_admitted(self, files: deque[FileProgress]) -> FileProgress | None:
        if self._admitted is None and not self._replacing.corrected and not self._abandoned:
            return files.popleft() if files else None
        progress = next((each for each in files if self._may_read(each)), None)
        if progress is not None:
            files.remove(progress)
        return progress

    def _may_read(self, progress: FileProgress) -> bool:
        is_held = progress.path_key in self._replacing.corrected or progress.key in self._abandoned
        return not is_held and (self._admitted is None or progress.key in self._admitted)

    # -- files that replace, and files that are given up ------------------------------------------------------------

    def _store(self, piece: Piece) -> list[Instruction]:
        """Takes a piece, or the end, of a file that replaces: it is read on when what was read is stored."""
        progress = piece.progress
        if piece.rows is not None:
            self._left_out.note(progress.file, piece.rows, self._current_epoch)
        if piece.ending is not None:
            self._end_reading(progress)
        if not self._replacing.add(piece):
            self._on_stored(progress)
            return []
        self._active[progress.key] = piece.nbytes
        return [StagePiece(piece, self._current_epoch)]

    def _on_stored(self, progress: FileProgress) -> None:
        if self._replacing.goes_on(progress):
            self._partly_read.append(progress)

    def _correct(self) -> list[Instruction]:
        """What replaces, and is stored to its end, comes into this epoch."""
        instructions: list[Instruction] = []
        while self._replacing and not self._paused and self._files_left():
            progress, ending = self._replacing.take()
            if ending.status == "done":
                self._rows += self._queue.advance_whole(progress, self._current_epoch)
                instructions.append(Send(Correction(*progress.key, tuple(progress.staged))))
            self._queue.finish(progress, ending, self._current_epoch)
            self._files += 1
            self._activity += 1
        return instructions

    def _forget(self, files: Sequence[ForgottenFile]) -> list[Instruction]:
        instructions = self._abandon(self._queue.forget(files, self._current_epoch))
        self._replacing.corrected.update((file.source, file.path) for file in files)
        return [*instructions, *(Send(Correction(file.source, file.path)) for file in files)]

    def _note_gone(self, files: Sequence[GoneFile]) -> list[Instruction]:
        self._queue.note_gone(files, self._current_epoch)
        objects = dict.fromkeys(ForgottenFile(each.source, each.path) for each in files)
        return self._forget([each for each in objects if self._policies[each.source].on_change == "replace"])

    def _abandon(self, files: Iterable[FileProgress]) -> list[Instruction]:
        """No row of these comes any more; what is being read or stored of them is waited for."""
        instructions: list[Instruction] = []
        for progress in files:
            if progress in self._partly_read:
                self._partly_read.remove(progress)
            self._replacing.drop(progress)
            self._delayed = [each for each in self._delayed if each[1] is not progress]
            self._undecided.pop(progress.key, None)
            if progress.file.source in self._buffers:
                self._buffers[progress.file.source].drop(progress)
            self._end_reading(progress)
            self._files += 1
            if progress.key in self._active:
                self._abandoned.add(progress.key)
            else:
                instructions.append(CloseFile(progress.file))
        return instructions

    def _is_abandoned(self, file: FileVersion, requests: int = 0, bytes_read: int = 0) -> bool:
        """Whether an answer is about what was given up; what it cost counts."""
        key = file.source, file.path, file.version
        if key not in self._abandoned:
            return False
        self._abandoned.discard(key)
        self._active.pop(key)
        self._requests += requests
        self._bytes += bytes_read
        return True

    # -- limits ----------------------------------------------------------------------------------------------------

    def _files_left(self) -> int:
        """How many more files may end in this epoch."""
        return self._most_files - self._files

    def _emit(self, now_s: float, *, flush: bool) -> list[Instruction]:
        """Emits full blocks, and with `flush` also the rest, as far as there is credit and the limits allow."""
        instructions: list[Instruction] = []
        block_bytes = self._settings.piece_bytes
        for source, buffer in self._buffers.items():
            while buffer and not self._paused and (flush or buffer.nbytes >= block_bytes):
                if not self._files_left() or self._row_tokens.wait_s(now_s):
                    break
                if not self._outlet.may_send(buffer.next_bytes(block_bytes)):
                    break
                pieces = buffer.take(block_bytes, self._files_left())
                if filled := tuple(piece for piece in pieces if piece.table is not None):
                    nbytes = sum(piece.nbytes for piece in filled)
                    self._outlet.reserve(nbytes)
                    self._unsealed_bytes += nbytes
                    block = EmitBlock(source, filled, nbytes, self._current_epoch)
                    self._row_tokens.take(block.rows)
                    instructions.append(block)
                for piece in pieces:
                    self._advance(piece)
        return instructions

    def _advance(self, piece: Piece) -> None:
        """The piece's rows are emitted: the file's offset moves, or the file ends."""
        epoch = self._current_epoch
        if piece.rows is not None:
            self._rows += self._queue.advance(piece.progress, piece.rows, epoch)
            self._left_out.note(piece.progress.file, piece.rows, epoch)
        if piece.ending is not None:
            self._queue.finish(piece.progress, piece.ending, epoch)
            self._files += 1
        self._activity += 1

    def _proposal(self, file: FileVersion, schema: pa.Schema | SchemaError | None) -> list[Instruction]:
        return [ProposeSchema(file.source, file.path, schema, self._samples.get(file.source, 0))]

    @property
    def _current_epoch(self) -> int:
        assert self._epoch is not None, "nothing is emitted before the initial barrier"
        return self._epoch


def _share(limit: int | None, settings: FetchSettings) -> int:
    """A fetch actor's part of a limit for all of them, at least one."""
    return sys.maxsize if limit is None else max(1, limit // settings.num_fetchers)


def _bad_input(file: FileVersion, reason: str, option: str = "on_bad_record") -> BadInputError:
    return BadInputError(
        f"source {file.source}: {file.path}: {reason}; mend or remove the file, or declare the source without "
        f'{option}="fail"'
    )

"""Reads files and emits their rows, with offsets that travel with the rows.

A file's offset moves when its rows are emitted, never when they are read: what is read but not emitted at a barrier
belongs to a later epoch, and a restart reads it again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import replace

import pyarrow as pa

from actors.exchange.edge import Outlet
from actors.fetching.file_progress import Ending, FileProgress
from actors.fetching.file_queue import FileQueue
from actors.fetching.instructions import CloseFile, CloseFiles, EmitBlock, HandOver, StagePiece
from actors.fetching.instructions import FetchInstruction as Instruction
from actors.fetching.limits import FetchLimits
from actors.fetching.read_buffers import Piece, ReadBuffers
from actors.fetching.read_scheduler import ReadScheduler
from actors.fetching.replacements import Replacements
from actors.fetching.schema_reports import ExtraColumns, SchemaProposals
from actors.fetching.vnode_moves import Handover, VnodeArrivals
from actors.file_errors import bad_input
from actors.files import FileKey, FileVersion, ForgottenFile
from actors.protocol.barrier import Barrier, Pause, Resume, Throttle, Update
from actors.protocol.blocks import Correction, StoredBlock
from actors.protocol.instructions import End, Fail, ProposeColumns, Send, WakeAt, pass_on
from actors.protocol.messages import (
    ChangedFiles,
    ForgottenFiles,
    GoneFiles,
    Message,
    NewFiles,
    RereadFiles,
    RetriedFiles,
)
from actors.protocol.reports import CollectReport, FetchProgress
from actors.rows import Rows
from actors.settings import FetchSettings
from actors.sources.source import FilePolicy
from state.errors import ProtocolError, SchemaError
from state.tables.records import EpochCounts

_BACKOFF_S = 0.5


class FetchExecutor:
    """The fetch step of one share of the vnodes: file names in, blocks of rows out.

    Args:
        actor: this actor's name in reports.
        settings: how much is read at once.
        num_fetchers: how many fetch actors there are.
        outlet: the edge to the merger; its credit decides what may be emitted.
        queue: the files that were not finished at the last commit.
        known_schemas: the sources whose schema is decided.
        poisoned: versions that are given up, with the reason.
        policies: what each source does with changed files and bad records.
    """

    def __init__(
        self,
        *,
        actor: str,
        settings: FetchSettings,
        num_fetchers: int,
        outlet: Outlet,
        queue: FileQueue,
        known_schemas: Iterable[str],
        poisoned: Mapping[FileKey, str],
        policies: Mapping[str, FilePolicy],
    ) -> None:
        self._actor, self._settings, self._outlet, self._queue = actor, settings, outlet, queue
        self._schemas, self._poisoned, self._policies = set(known_schemas), poisoned, policies
        self._limits = FetchLimits(settings, num_fetchers)
        self._epoch: int | None = None
        self._paused = self._stopped = False
        self._shown = SchemaProposals()
        self._left_out = ExtraColumns()
        self._buffers = ReadBuffers(settings.piece_bytes, self._limits, outlet)
        self._replacing = Replacements()
        self._reads = ReadScheduler(
            settings=settings,
            limits=self._limits,
            queue=queue,
            decided=self._schemas,
            corrected=self._replacing.corrected,
        )
        self._arrivals = VnodeArrivals()
        self._moving = self._ready = 0
        self._is_held_back = False
        self._files = self._rows = self._bytes = self._requests = 0
        self._activity = self._received = self._unsealed_bytes = 0

    def on_message(self, message: Message, now_s: float) -> list[Instruction]:
        """Takes file names, changes and barriers, in the order of the edge, and handovers."""
        if isinstance(message, Handover):
            self._arrivals.add(message)
            return self._on_arrivals(now_s)
        if self._arrivals.is_waiting:
            self._arrivals.hold(message)
            return []
        return self._take(message, now_s)

    def _take(self, message: Message, now_s: float) -> list[Instruction]:
        if isinstance(message, Barrier):
            return self._on_barrier(message, now_s)
        if self._epoch is None:
            raise ProtocolError(f"{self._actor}: {type(message).__name__} before the initial barrier")
        instructions: list[Instruction] = []
        if isinstance(message, NewFiles):
            for file in message.files:
                self._queue.add(file, self._epoch)
                self._shown.samples[file.source] = message.sample
            self._received += len(message.files)
        elif isinstance(message, ChangedFiles):
            for changed in message.files:
                policy = self._policies[changed.now.source].on_change
                if policy == "fail" and not self._queue.is_without_rows(changed):
                    return [Fail(bad_input(changed.now, "it has changed since it was handed on", "on_change"))]
                self._queue.change(changed, self._epoch)
        elif isinstance(message, GoneFiles):
            instructions = self._forget(self._queue.note_gone(message.files, self._epoch))
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
            return [Fail(bad_input(file, f"row {rows.bad[0].row + 1}: {rows.bad[0].reason}"))]
        if rows.first_row != progress.read_to.row:
            raise ProtocolError(f"{file.path}: row {rows.first_row} comes after row {progress.read_to.row}")
        progress.read_to = replace(rows.anchor, row=rows.end_row)
        piece = Piece(progress, rows, Ending("done") if last else None)
        if progress.replaces:
            return [*self._store(piece), *self._go_on(now_s)]
        self._buffer(piece)
        if not last:
            self._reads.read_on(progress)
        return self._go_on(now_s)

    def on_ending(
        self, file: FileVersion, ending: Ending, *, requests: int, bytes_read: int, now_s: float
    ) -> list[Instruction]:
        """The file ends here without its last rows, or before it showed a schema.  The rows before stay."""
        if self._is_abandoned(file, requests, bytes_read):
            return [CloseFile(file), *self._go_on(now_s)]
        progress = self._read(file, requests, bytes_read)
        if ending.is_gone and progress.row_offset and self._policies[file.source].on_change == "replace":
            gone = self._queue.remove(progress, self._current_epoch)
            return [*self._forget([gone]), *self._go_on(now_s)]
        if ending.status == "quarantined" and self._policies[file.source].on_bad_record == "fail":
            return [Fail(bad_input(file, ending.error or "it cannot be read"))]
        if progress.replaces:
            self._store(Piece(progress, None, ending))
        else:
            self._buffer(Piece(progress, None, ending))
        undecided = file.source not in self._schemas
        return [*(self._shown.show(progress, None) if undecided else ()), *self._go_on(now_s)]

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
        self._reads.retry_at(progress, now_s + _BACKOFF_S * 2**progress.unanswered)
        return self._go_on(now_s)

    def on_inferred(self, file: FileVersion, schema: pa.Schema | SchemaError, now_s: float) -> list[Instruction]:
        """A file of a source without a schema has shown one, if not a usable one; it is read when that is decided."""
        if self._is_abandoned(file):
            return [CloseFile(file), *self._go_on(now_s)]
        progress = self._queue.get(file)
        self._reads.end(progress, 0)
        self._reads.await_schema(progress)
        if file.source in self._schemas:
            self._reads.on_schema(file.source)
            return self._go_on(now_s)
        return [*self._shown.show(progress, schema), *self._go_on(now_s)]

    def on_new_columns(
        self, file: FileVersion, columns: pa.Schema, *, requests: int, bytes_read: int, now_s: float
    ) -> list[Instruction]:
        """The next records have columns that the source lacks; they are read when it has them."""
        if self._is_abandoned(file, requests, bytes_read):
            return [CloseFile(file), *self._go_on(now_s)]
        progress = self._read(file, requests, bytes_read)
        self._reads.await_schema(progress)
        return [ProposeColumns(file.source, columns), *self._go_on(now_s)]

    def on_staged(self, file: FileVersion, stored: StoredBlock, now_s: float) -> list[Instruction]:
        """What `StagePiece` asked for is durable."""
        if self._is_abandoned(file):
            return [CloseFile(file), *self._go_on(now_s)]
        progress = self._queue.get(file)
        self._reads.stored(progress)
        progress.staged.append(stored)
        self._on_stored(progress)
        return self._go_on(now_s)

    def on_schema(self, source: str, now_s: float) -> list[Instruction]:
        """The schema of a source is decided, or has got columns."""
        self._schemas.add(source)
        self._reads.on_schema(source)
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
        if self._ready < self._moving and self._reads.may_move:
            self._ready = self._moving
        counts = self._activity, self._received, self._unsealed_bytes, self._outlet.in_flight_bytes
        return FetchProgress(
            self._actor,
            *counts,
            sources,
            is_full=not self._files_left(),
            is_held_back=self._is_held_back,
            moved=self._queue.moved,
            ready=self._ready,
        )

    def _on_barrier(self, barrier: Barrier, now_s: float) -> list[Instruction]:
        if self._epoch is not None and barrier.epoch.prev != self._epoch:
            raise ProtocolError(f"{self._actor}: barrier {barrier.epoch} does not follow epoch {self._epoch}")
        if isinstance(barrier.mutation, Update):
            return self._on_update(barrier, barrier.mutation, now_s)
        instructions = [] if self._epoch is None else [*self._emit(now_s, flush=True), *self._correct()]
        instructions += pass_on(barrier, self._seal(barrier))
        initial = self._epoch is None
        self._begin_epoch(barrier)
        if barrier.is_stop:
            self._stopped = True
            return [*instructions, CloseFiles(), End()]
        if initial and self._poisoned:
            self._files += self._queue.give_up(self._poisoned, self._current_epoch)
            self._activity += 1
        if isinstance(barrier.mutation, (Pause, Resume)):
            self._paused = isinstance(barrier.mutation, Pause)
        elif isinstance(barrier.mutation, Throttle):
            self._limits.throttle(barrier.mutation, now_s)
        return [*instructions, *self._go_on(now_s)]

    def _begin_epoch(self, barrier: Barrier) -> None:
        self._epoch, self._reads.admitted = barrier.epoch.curr, barrier.admitted
        self._replacing.corrected.clear()

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
        self._reads.end(progress, bytes_read)
        self._requests += requests
        self._bytes += bytes_read
        self._activity += 1
        return progress

    def _buffer(self, piece: Piece) -> None:
        self._buffers.add(piece)
        if piece.ending is not None:
            self._queue.end_reading(piece.progress)

    def _go_on(self, now_s: float) -> list[Instruction]:
        """Emits what is full, or what nothing more will join, and starts reads while there is room."""
        if self._epoch is None or self._stopped:
            return []
        self._reads.on_time(now_s)
        instructions = self._start_reads(now_s)
        instructions += self._emit(now_s, flush=not self._reads.is_active)
        instructions += self._correct()
        instructions += self._start_reads(now_s)
        reads, emits = not self._paused and self._reads.is_waiting, not self._paused and bool(self._buffers)
        throttled = self._limits.times_s(now_s, reads=reads, emits=emits)
        self._is_held_back = bool(throttled) or self._buffers.has_full_block
        wakes = self._reads.times_s + throttled
        return [*instructions, WakeAt(min(wakes))] if wakes else instructions

    def _start_reads(self, now_s: float) -> list[Instruction]:
        return [] if self._paused else self._reads.start(now_s, self._buffers.nbytes)

    # -- vnodes that move ------------------------------------------------------------------------------------------

    def on_moving(self, number: int, vnodes: Set[int], now_s: float, *, rest: bool) -> list[Instruction]:
        """Vnodes of this fetch actor are about to move, see `ReadOrder`; `progress` says when they can.

        Args:
            number: of the rescaling.
            vnodes: that go to others.
            now_s: of the monotonic clock.
            rest: whether open files stay where they are, too.
        """
        self._moving = number
        self._reads.move(vnodes, rest=rest)
        return self._go_on(now_s)

    def _on_update(self, barrier: Barrier, update: Update, now_s: float) -> list[Instruction]:
        """The vnodes are owned otherwise from here on: what goes leaves behind the barrier, what comes is waited for.

        A fetch actor that begins here has nothing to seal and nobody expects it to pass this barrier on.
        """
        leaves = self._actor not in update.after.owners
        instructions: list[Instruction] = []
        if self._epoch is None:
            self._paused = update.paused
            self._limits.throttle(update.throttle, now_s)
        else:
            instructions += [*self._emit(now_s, flush=True), *self._correct()]
            report = self._seal(barrier)
            handed_over = self._hand_over(barrier.epoch.curr, update)
            last_progress = self.progress() if leaves else None
            instructions += [*pass_on(barrier, replace(report, last_progress=last_progress)), *handed_over]
        self._begin_epoch(barrier)
        self._limits.share(len(update.after.owners), now_s)
        self._reads.move(frozenset(), rest=False)
        if leaves:
            self._stopped = True
            return [*instructions, CloseFiles(), End()]
        self._arrivals.expect(barrier.epoch.curr, update.before.givers_to(self._actor, update.after))
        return [*instructions, *self._on_arrivals(now_s)]

    def _hand_over(self, epoch: int, update: Update) -> list[Instruction]:
        receivers = update.before.moves_from(self._actor, update.after)
        going = [each for each in self._queue.begun.values() if self._queue.vnode_of(each.path_key) in receivers]
        instructions = self._let_go(going)
        handovers = self._queue.hand_over(receivers, self._actor, epoch, self._reads.active)
        samples = dict(self._shown.samples)
        return [*instructions, *(HandOver(name, replace(each, samples=samples)) for name, each in handovers.items())]

    def _on_arrivals(self, now_s: float) -> list[Instruction]:
        """What was handed over is here when all of it has come; then the messages that waited for it are taken."""
        for handover in self._arrivals.take():
            self._queue.take_over(handover)
            for each in handover.files:
                if each.ending is not None:
                    self._replacing.goes_on(each)
            self._shown.learn(handover.samples)
        instructions = self._go_on(now_s)
        while (message := self._arrivals.next_held()) is not None:
            instructions += self._take(message, now_s)
        return instructions

    # -- files that replace, and files that are given up ------------------------------------------------------------

    def _store(self, piece: Piece) -> list[Instruction]:
        """Takes a piece, or the end, of a file that replaces: it is read on when what was read is stored."""
        progress = piece.progress
        if piece.rows is not None:
            self._left_out.note(progress.file, piece.rows, self._current_epoch)
        if piece.ending is not None:
            self._queue.end_reading(progress)
        if not self._replacing.add(piece):
            self._on_stored(progress)
            return []
        self._reads.store(progress, piece.nbytes)
        return [StagePiece(piece, self._current_epoch)]

    def _on_stored(self, progress: FileProgress) -> None:
        if self._replacing.goes_on(progress):
            self._reads.read_on(progress)

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

    def _abandon(self, files: Collection[FileProgress]) -> list[Instruction]:
        """No row of these comes any more; what is being read or stored of them is waited for."""
        for progress in files:
            self._queue.end_reading(progress)
            self._files += 1
        return self._let_go(files)

    def _let_go(self, files: Collection[FileProgress]) -> list[Instruction]:
        """Nothing more is done for these here."""
        self._buffers.drop(frozenset(files))
        for progress in files:
            self._replacing.drop(progress)
        return [CloseFile(each.file) for each in files if not self._reads.drop(each)]

    def _is_abandoned(self, file: FileVersion, requests: int = 0, bytes_read: int = 0) -> bool:
        """Whether an answer is about what was given up; what it cost counts."""
        if not self._reads.is_dropped((file.source, file.path, file.version)):
            return False
        self._queue.note_cost(file.source, requests=requests, bytes_read=bytes_read)
        self._requests += requests
        self._bytes += bytes_read
        return True

    # -- limits ----------------------------------------------------------------------------------------------------

    def _files_left(self) -> int:
        """How many more files may end in this epoch."""
        return self._limits.most_files - self._files

    def _emit(self, now_s: float, *, flush: bool) -> list[Instruction]:
        """Emits full blocks, and with `flush` also the rest, as far as there is credit and the limits allow."""
        instructions: list[Instruction] = []
        if self._paused:
            return []
        for source, pieces, nbytes in self._buffers.take(now_s, self._files_left, flush=flush):
            if filled := tuple(piece for piece in pieces if piece.table is not None):
                self._unsealed_bytes += nbytes
                instructions.append(EmitBlock(source, filled, nbytes, self._current_epoch))
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

    @property
    def _current_epoch(self) -> int:
        assert self._epoch is not None, "nothing is emitted before the initial barrier"
        return self._epoch

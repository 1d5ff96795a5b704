"""The fetch step without Ray: names of files in, blocks of rows out.

A file's offset moves when its rows are emitted, never when they are read: rows that are read but not emitted at a
barrier belong to a later epoch, and a restart reads them again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import replace
from typing import assert_never

import pyarrow as pa

from actors.exchange.edge import Outlet
from actors.fetching.emission import Emission
from actors.fetching.file_progress import Ending, FileProgress
from actors.fetching.file_versions import FileVersions
from actors.fetching.handover import Handover, VnodeArrivals
from actors.fetching.instructions import CloseFile, CloseFiles, FetchInstruction
from actors.fetching.limits import FetchLimits
from actors.fetching.open_epoch import OpenEpoch
from actors.fetching.read_buffers import Piece, ReadBuffers
from actors.fetching.read_outcomes import (
    ColumnsFound,
    FileEnded,
    PieceRead,
    ReadOutcome,
    SourceRefused,
    StoreUnavailable,
)
from actors.fetching.read_scheduler import ReadScheduler
from actors.fetching.replacements import Replacements
from actors.fetching.schema_reports import SchemaProposals, UnmatchedColumns
from actors.fetching.vnode_moves import VnodeMoves
from actors.file_errors import bad_input
from actors.files import FileKey, FileVersion, ForgottenFile
from actors.protocol.barrier import Barrier, Pause, Resume, Throttle, Update
from actors.protocol.blocks import BadRecords, StoredBlock
from actors.protocol.instructions import End, Fail, ProposeColumns, Send, WakeAt, pass_on
from actors.protocol.messages import (
    ChangedFiles,
    DeletedFiles,
    ForgottenFiles,
    Message,
    NewFiles,
    RereadFiles,
    RetriedFiles,
)
from actors.protocol.reports import CollectReport, FetchProgress
from actors.rows import Rows
from actors.settings import FetchSettings
from actors.sources.source import FilePolicy
from state.errors import ProtocolError

_BACKOFF_S = 0.5


class FetchExecutor:
    """The fetch step of one share of the vnodes.

    Messages and results of reads come in here; the rest of the room does the work, see its page.

    Args:
        actor: this actor's name in reports.
        settings: limits on reads at the same time.
        outlet: the edge to the merger; its credit limits what is emitted.
        files: the files that were not finished at the last commit.
        known_schemas: the sources whose schema is decided.
        poisoned: versions that are given up, with the reason.
        policies: source → what to do with changed files and bad records.
    """

    def __init__(
        self,
        *,
        actor: str,
        settings: FetchSettings,
        num_fetchers: int,
        outlet: Outlet,
        files: FileVersions,
        known_schemas: Iterable[str],
        poisoned: Mapping[FileKey, str],
        policies: Mapping[str, FilePolicy],
    ) -> None:
        self._actor, self._settings, self._outlet = actor, settings, outlet
        self._files, self._queue = files, files.queue
        self._schemas, self._poisoned, self._policies = set(known_schemas), poisoned, policies
        self._limits = FetchLimits(settings, num_fetchers)
        self._epoch = epoch = OpenEpoch(self._limits)
        self._proposals, self._unmatched = SchemaProposals(), UnmatchedColumns()
        self._arrivals = VnodeArrivals()
        self._reads = ReadScheduler(
            settings=settings, limits=self._limits, queue=files.queue, decided=self._schemas, epoch=epoch
        )
        self._buffers = ReadBuffers(settings.piece_bytes, self._limits, outlet)
        self._emission = Emission(epoch=epoch, buffers=self._buffers, files=files, unmatched=self._unmatched)
        self._replacements = Replacements(epoch=epoch, files=files, reads=self._reads, unmatched=self._unmatched)
        self._moves = VnodeMoves(
            actor=actor, files=files, reads=self._reads, replacements=self._replacements, proposals=self._proposals
        )
        self._paused = self._stopped = self._is_held_back = False
        self._received = 0

    # -- messages --------------------------------------------------------------------------------------------------

    def on_message(self, message: Message, now_s: float) -> list[FetchInstruction]:
        """Takes file names, changes and barriers, in the order of the edge, and handovers."""
        if isinstance(message, Handover):
            self._arrivals.add(message)
            return self._on_arrivals(now_s)
        if self._arrivals.is_waiting:
            self._arrivals.hold(message)
            return []
        return self._take(message, now_s)

    def _on_arrivals(self, now_s: float) -> list[FetchInstruction]:
        """Takes the expected handovers when all are here, and then the messages that waited for them."""
        for handover in self._arrivals.take():
            self._moves.take_over(handover)
        instructions = self._proceed(now_s)
        while (message := self._arrivals.next_held()) is not None:
            instructions += self._take(message, now_s)
        return instructions

    def _take(self, message: Message, now_s: float) -> list[FetchInstruction]:
        if isinstance(message, Barrier):
            return self._on_barrier(message, now_s)
        if not self._epoch.is_open:
            raise ProtocolError(f"{self._actor}: {type(message).__name__} before the initial barrier")
        epoch = self._epoch.number
        instructions: list[FetchInstruction] = []
        match message:
            case NewFiles():
                for file in message.files:
                    self._files.add(file, epoch)
                    self._proposals.samples[file.source] = message.sample
                self._received += len(message.files)
            case ChangedFiles():
                for changed in message.files:
                    policy = self._policies[changed.source].on_change
                    if policy == "fail" and not self._files.is_without_rows(changed):
                        return [Fail(bad_input(changed.now, "the file has changed since it was listed", "on_change"))]
                    self._files.change(changed, epoch)
            case DeletedFiles():
                instructions = self._forget(self._files.note_deleted(message.files, epoch))
            case RetriedFiles():
                self._files.retry(message.files)
            case ForgottenFiles():
                instructions = self._forget(message.files)
            case RereadFiles():
                instructions = self._give_up(self._files.reread(message.files, epoch))
            case _:
                raise ProtocolError(f"{self._actor}: the fetch step takes no {type(message).__name__}")
        self._epoch.activity += 1
        return [*instructions, *self._proceed(now_s)]

    # -- results of instructions -----------------------------------------------------------------------------------

    def on_read(self, outcomes: Iterable[ReadOutcome], now_s: float) -> list[FetchInstruction]:
        """Takes the outcomes of the reads of one instruction."""
        instructions = [step for outcome in outcomes for step in self._take_outcome(outcome, now_s)]
        return [*instructions, *self._proceed(now_s)]

    def _take_outcome(self, outcome: ReadOutcome, now_s: float) -> list[FetchInstruction]:
        progress = self._read(outcome)
        if progress is None:
            return [CloseFile(outcome.file)]
        match outcome:
            case PieceRead():
                return self._on_piece(progress, outcome.rows, last=outcome.last)
            case FileEnded():
                return self._on_ending(progress, outcome.ending)
            case StoreUnavailable():
                return self._on_unavailable(progress, outcome.error, now_s)
            case SourceRefused():
                self._reads.refuse(progress, now_s)
                return []
            case ColumnsFound():
                # They are read when the source has them.
                self._reads.await_schema(progress)
                return [ProposeColumns(outcome.file.source, outcome.columns)]
            case _:
                assert_never(outcome)

    def _on_piece(self, progress: FileProgress, rows: Rows, *, last: bool) -> list[FetchInstruction]:
        file = progress.file
        self._reads.grant(file.source)
        if rows.bad and self._policies[file.source].on_bad_record == "fail":
            return [Fail(bad_input(file, f"row {rows.bad[0].row + 1}: {rows.bad[0].reason}"))]
        if rows.first_row != progress.read_to.row:
            raise ProtocolError(f"{file.path}: row {rows.first_row} was read in place of row {progress.read_to.row}")
        progress.read_to = rows.anchor.at(rows.end_row)
        piece = Piece(progress, rows, Ending("done") if last else None)
        if progress.replaces:
            return self._replacements.add(piece)
        self._buffer(piece)
        if not last:
            self._reads.read_on(progress)
        return []

    def _on_ending(self, progress: FileProgress, ending: Ending) -> list[FetchInstruction]:
        file = progress.file
        policy = self._policies[file.source]
        if ending.is_deleted and progress.row_offset and policy.on_change == "replace":
            return self._forget([self._files.remove(progress, self._epoch.number)])
        if ending.status == "quarantined" and policy.on_bad_record == "fail":
            return [Fail(bad_input(file, ending.error or "the file cannot be read"))]
        if progress.replaces:
            self._replacements.add(Piece(progress, None, ending))
        else:
            self._buffer(Piece(progress, None, ending))
        undecided = file.source not in self._schemas
        return [*self._proposals.propose(progress, None)] if undecided else []

    def _on_unavailable(self, progress: FileProgress, error: Exception, now_s: float) -> list[FetchInstruction]:
        """Reads a file again after a pause; after the last attempt the run fails."""
        progress.attempts += 1
        progress.unanswered += 1
        if progress.unanswered >= self._settings.max_attempts:
            return [Fail(error)]
        self._reads.retry_at(progress, now_s + _BACKOFF_S * 2**progress.unanswered)
        return []

    def on_inferred(self, file: FileVersion, schema: pa.Schema, now_s: float) -> list[FetchInstruction]:
        """Takes the schema of a file; the file is read when the schema of its source is decided."""
        if self._was_given_up(file):
            return self._close(file, now_s)
        progress = self._queue.get(file)
        self._reads.end(progress, 0)
        self._reads.await_schema(progress)
        if file.source in self._schemas:
            self._reads.on_schema(file.source)
            return self._proceed(now_s)
        return [*self._proposals.propose(progress, schema), *self._proceed(now_s)]

    def on_staged(self, file: FileVersion, stored: StoredBlock, now_s: float) -> list[FetchInstruction]:
        """Takes note that the rows of a `StagePiece` are durable."""
        if self._was_given_up(file):
            return self._close(file, now_s)
        self._replacements.on_staged(self._queue.get(file), stored)
        return self._proceed(now_s)

    def _read(self, outcome: ReadOutcome) -> FileProgress | None:
        """Accounts for a read that has ended, well or not; None for a file that was given up meanwhile."""
        requests, bytes_read = outcome.requests, outcome.bytes_read
        if self._was_given_up(outcome.file, requests, bytes_read):
            return None
        progress = self._queue.account(outcome.file, requests=requests, bytes_read=bytes_read)
        self._reads.end(progress, bytes_read)
        self._epoch.add_cost(requests, bytes_read)
        self._epoch.activity += 1
        return progress

    def _was_given_up(self, file: FileVersion, requests: int = 0, bytes_read: int = 0) -> bool:
        """True if an answer is about a file that was given up meanwhile; its cost counts."""
        if not self._reads.is_dropped((file.source, file.path, file.version)):
            return False
        self._queue.add_cost(file.source, requests=requests, bytes_read=bytes_read)
        self._epoch.add_cost(requests, bytes_read)
        return True

    def _close(self, file: FileVersion, now_s: float) -> list[FetchInstruction]:
        return [CloseFile(file), *self._proceed(now_s)]

    def _buffer(self, piece: Piece) -> None:
        self._buffers.add(piece)
        if piece.ending is not None:
            self._queue.end_reading(piece.progress)

    # -- news from the coordinator, Spark and the clock ------------------------------------------------------------

    def on_schema(self, source: str, now_s: float) -> list[FetchInstruction]:
        """Reads with the schema of a source, which is decided or has further columns."""
        self._schemas.add(source)
        self._reads.on_schema(source)
        return self._proceed(now_s)

    def on_moving(self, number: int, vnodes: Set[int], now_s: float, *, rest: bool) -> list[FetchInstruction]:
        """Gets ready to hand vnodes over; `progress` reports when it is.

        Args:
            vnodes: the vnodes that go to others.
            now_s: time of the monotonic clock.
            rest: whether open files stop at the end of their piece, too.
        """
        self._moves.prepare(number, vnodes, rest=rest)
        return self._proceed(now_s)

    def on_grant(self, nbytes: int, now_s: float) -> list[FetchInstruction]:
        """Takes back the credit of bytes that Spark has released."""
        self._outlet.grant(nbytes)
        return self._proceed(now_s)

    def on_time(self, now_s: float) -> list[FetchInstruction]:
        """Proceeds at the time of a `WakeAt`."""
        return self._proceed(now_s)

    def progress(self) -> FetchProgress:
        """Progress of this step, for the coordinator."""
        return FetchProgress(
            self._actor,
            self._epoch.activity,
            self._received,
            self._epoch.unsealed_bytes,
            self._outlet.in_flight_bytes,
            {source: tally.as_progress() for source, tally in self._queue.tallies.items()},
            is_full=not self._epoch.files_left(),
            is_held_back=self._is_held_back,
            moved=self._moves.moved,
            ready=self._moves.ready(),
        )

    # -- barriers --------------------------------------------------------------------------------------------------

    def _on_barrier(self, barrier: Barrier, now_s: float) -> list[FetchInstruction]:
        initial = not self._epoch.is_open
        if not initial and barrier.epoch.prev != self._epoch.number:
            raise ProtocolError(f"{self._actor}: barrier {barrier.epoch} does not follow epoch {self._epoch.number}")
        if isinstance(barrier.mutation, Update):
            return self._on_update(barrier, barrier.mutation, now_s)
        instructions = [] if initial else self._flush(now_s)
        instructions += pass_on(barrier, self._seal(barrier))
        self._epoch.begin(barrier)
        if barrier.is_stop:
            return [*instructions, *self._end()]
        if initial and self._poisoned:
            self._epoch.files += self._files.give_up(self._poisoned, self._epoch.number)
            self._epoch.activity += 1
        match barrier.mutation:
            case Pause():
                self._paused = True
            case Resume():
                self._paused = False
            case Throttle() as throttle:
                self._limits.throttle(throttle, now_s)
        return [*instructions, *self._proceed(now_s)]

    def _on_update(self, barrier: Barrier, update: Update, now_s: float) -> list[FetchInstruction]:
        """Hands vnodes over behind the barrier, and waits for those that come.

        A fetch actor that begins with this barrier has nothing to seal, and the merger expects no barrier from it.
        """
        leaves = self._actor not in update.after.owners
        instructions: list[FetchInstruction] = []
        if self._epoch.is_open:
            instructions += self._flush(now_s)
            report = self._seal(barrier)
            handed_over = self._let_go(self._moves.leaving(update))
            handed_over += self._moves.hand_over(update, barrier.epoch.curr)
            last_progress = self.progress() if leaves else None
            instructions += [*pass_on(barrier, replace(report, last_progress=last_progress)), *handed_over]
        else:
            self._paused = update.paused
            self._limits.throttle(update.throttle, now_s)
        self._epoch.begin(barrier)
        self._limits.share(len(update.after.owners), now_s)
        self._reads.move(frozenset(), rest=False)
        if leaves:
            return [*instructions, *self._end()]
        self._arrivals.expect(barrier.epoch.curr, update.before.givers_to(self._actor, update.after))
        return [*instructions, *self._on_arrivals(now_s)]

    def _flush(self, now_s: float) -> list[FetchInstruction]:
        """The last rows of the open epoch, and the number of its bad records."""
        instructions = self._emit(now_s, flush=True)
        counts = self._files.state.take_bad_records()
        return [*instructions, Send(BadRecords(counts))] if counts else instructions

    def _seal(self, barrier: Barrier) -> CollectReport:
        counts = self._epoch.seal()
        return CollectReport(
            self._actor,
            barrier.epoch.prev,
            self._files.state.seal(),
            counts=counts,
            activity=self._epoch.activity,
            vanished=self._files.state.take_vanished(),
            corrected=self._files.state.take_corrected(),
            unmatched=self._unmatched.take(),
            unfinished_since=self._files.unfinished_since(),
            event_times=self._files.state.take_event_times(),
        )

    def _end(self) -> list[FetchInstruction]:
        self._stopped = True
        return [CloseFiles(), End()]

    # -- work ------------------------------------------------------------------------------------------------------

    def _proceed(self, now_s: float) -> list[FetchInstruction]:
        """Emits full blocks, and smaller ones that nothing more will join, and starts reads while there is room."""
        if not self._epoch.is_open or self._stopped:
            return []
        self._reads.on_time(now_s)
        instructions = self._start_reads(now_s)
        instructions += self._emit(now_s, flush=not self._reads.is_active)
        instructions += self._start_reads(now_s)
        reads, emits = not self._paused and self._reads.is_waiting, not self._paused and bool(self._buffers)
        throttled = self._limits.times_s(now_s, reads=reads, emits=emits)
        self._is_held_back = bool(throttled) or self._buffers.has_full_block
        wakes = self._reads.times_s + throttled
        return [*instructions, WakeAt(min(wakes))] if wakes else instructions

    def _start_reads(self, now_s: float) -> list[FetchInstruction]:
        return [] if self._paused else self._reads.start(now_s, self._buffers.nbytes)

    def _emit(self, now_s: float, *, flush: bool) -> list[FetchInstruction]:
        """Rows and then corrections come into the open epoch, unless the run is paused."""
        if self._paused:
            return []
        return [*self._emission.emit(now_s, flush=flush), *self._replacements.correct()]

    # -- files that are given up -----------------------------------------------------------------------------------

    def _forget(self, files: Collection[ForgottenFile]) -> list[FetchInstruction]:
        """Takes objects out of the views in this epoch; their unfinished versions end."""
        ended = self._files.forget(files, self._epoch.number)
        # The next file may show the schema in place of one that was sent ahead.
        undecided = [each for each in ended if each.file.source not in self._schemas]
        proposals = [proposal for each in undecided for proposal in self._proposals.propose(each, None)]
        return [*proposals, *self._give_up(ended), *self._replacements.forget(files)]

    def _give_up(self, files: Collection[FileProgress]) -> list[FetchInstruction]:
        """Counts files that have ended before their last row, and drops their rows."""
        for progress in files:
            self._queue.end_reading(progress)
            self._epoch.files += 1
        return self._let_go(files)

    def _let_go(self, files: Collection[FileProgress]) -> list[FetchInstruction]:
        """Drops rows of files that are not emitted; an answer that is still to come is ignored when it comes."""
        self._buffers.drop(frozenset(files))
        for progress in files:
            self._replacements.drop(progress)
        return [CloseFile(each.file) for each in files if not self._reads.drop(each)]

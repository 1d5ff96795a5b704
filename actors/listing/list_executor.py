"""List step of one source: finds new files by listing the prefix again and again, and by events.

The table `seen` decides which files are new, not a cursor: late, out-of-order and back-dated names are found.  A file
is marked as seen in the epoch in which it is handed on, and its fetch actor queues it in the same epoch: a crash
forgets both or neither.

An event makes the step look at one object, with the same result as a page of a listing.  A page may be older than a
look, and a look older than the files handed on meanwhile: where the two contradict each other, the step looks again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import pyarrow as pa

from actors.files import ChangedFile, FileVersion, ReadingOrder
from actors.listing.epoch_writer import EpochWriter
from actors.listing.event_look_up import EventLookUp
from actors.listing.instructions import ListInstruction, ReadPage, ReportPause, ReportRemovals, WarnOf
from actors.listing.known_names import KnownNames
from actors.listing.listing_digests import ListingDigests
from actors.listing.listing_marks import FrameListing, ListingMarks
from actors.listing.listing_pace import ListingPace
from actors.listing.listing_state import NEVER_LISTED, ListedState, ListingTally
from actors.listing.missing_files import DeletedFound, MissingNames
from actors.listing.page_look_up import PageLookUp
from actors.listing.removal_guard import RemovalGuard
from actors.listing.run_deletions import RunDeletion
from actors.listing.settling_files import SettlingFiles
from actors.listing.skipped_names import SkippedNames
from actors.listing.step_queue import StepQueue
from actors.listing.unsent_files import UnsentFiles
from actors.listing.vanished_names import VanishedNames
from actors.names.name_messages import NameAnswer
from actors.names.name_shards import Names, NameShards, SendToNames
from actors.names.questions import Asking, CountPresent
from actors.notifications.event_watch import EventWatch
from actors.notifications.instructions import Receive
from actors.notifications.message_tracker import QueueDepth, QueueMessage
from actors.objects.listing_page import ListingPage
from actors.objects.page_reader import SIDE_BY_SIDE
from actors.protocol.barrier import AllowRemovals, Barrier, Pause, Reread, Resume
from actors.protocol.instructions import End, Fail, Send, WakeAt, pass_on
from actors.protocol.messages import ChangedFiles, DeletedFiles
from actors.protocol.reports import CollectReport, ListProgress
from actors.sources.foreign_tables import ForeignTables
from actors.sources.path_filter import PathFilter
from actors.sources.refusals import Operation, Refusals
from state.errors import ProtocolError, RunFailedError
from state.tables.fingerprint import delivery_fingerprint, path_fingerprints

_SETTLE_S = 1.0
_CONFIRM_S = 10.0
_LOOK_AGAIN_S = 60.0
_BUSY_FILES = 100


class ListExecutor:
    """The list step of one source: barriers, pages and looks in; new, changed and deleted files out.

    Args:
        actor: this actor's name in reports.
        source: the name of the source.
        url: the URL of the source.
        path_filter: the paths that the source takes.
        pace: the times of listings and pages.
        seen: the versions that were handed on before, in this process or in shards.
        schema_known, sampled, order: see `UnsentFiles`.
        must_settle: True if a file is accepted only when two listings show the same version of it (local files).
        not_before_us: files written before this time are left out, in microseconds since 1970; None for no limit.
        events: the watch of a queue of events; None if only listings report files.
        must_list: True if the events may miss files until a listing has ended.
        listed: the last listing in the store.
        removes: True if the rows of deleted files are retracted: then such a file is read again when it is back.
        guard: pauses removals; None to pause none.
        is_frame: True for a static table that came with the pipeline, see `FrameListing`.
    """

    def __init__(
        self,
        *,
        actor: str,
        source: str,
        url: str,
        path_filter: PathFilter,
        pace: ListingPace,
        seen: Names,
        schema_known: bool,
        must_settle: bool,
        sampled: int = 0,
        not_before_us: int | None = None,
        events: EventWatch | None = None,
        must_list: bool = True,
        listed: ListedState = NEVER_LISTED,
        removes: bool = False,
        guard: RemovalGuard | None = None,
        order: ReadingOrder | None = None,
        is_frame: bool = False,
    ) -> None:
        self._actor, self._source = actor, source
        self._filter, self._pace, self._events = path_filter, pace, events
        self._is_paused = self._is_stopped = self._is_busy = False
        # The listing under way: whether there is one, whether a page is asked for, and whether the last one has come.
        self._is_listing = self._awaits_page = self._has_last_page = False
        self._steps = StepQueue(seen)
        self._shards = seen.owners if isinstance(seen, NameShards) else ()
        self._removes = removes
        self._unsent = UnsentFiles(order, schema_known=schema_known, sampled=sampled)
        self._names = KnownNames(seen, self._unsent, MissingNames(source), ListingDigests())
        self._guard, self._reported_paused, self._has_hurried = guard or RemovalGuard(), 0, False
        self._writer = EpochWriter(source, url, seen, events)
        self._looks = EventLookUp(
            source=source,
            events=events,
            names=self._names,
            writer=self._writer,
            removes=removes,
            not_before_us=not_before_us,
        )
        self._tally = ListingTally(listed, must_list=must_list)
        self._settling, self._skipped = SettlingFiles(), SkippedNames(path_filter)
        self._foreign, self._reported_pause = ForeignTables(url), False
        self._refusals, self._reported_refusal = Refusals(), False
        self._pages = PageLookUp(
            source=source,
            names=self._names,
            guard=self._guard,
            looks=self._looks,
            writer=self._writer,
            tally=self._tally,
            settling=self._settling if must_settle else None,
            removes=removes,
            not_before_us=not_before_us,
        )
        self._vanished = VanishedNames(source, self._names, self._looks)
        self._marks, self._complete_mark = ListingMarks(), 0
        self._frame = FrameListing(is_frame=is_frame)
        self.retry_s = 0.0
        self._sent = 0
        self._now_s = 0.0

    # -- the epoch ------------------------------------------------------------------------------------------------

    def on_barrier(self, barrier: Barrier, now_s: float) -> list[ListInstruction]:
        """Seals the epoch, passes the barrier on, and continues with the budget that it brings."""
        return self._steps.run(self._take_barrier(barrier, now_s))

    def _take_barrier(self, barrier: Barrier, now_s: float) -> Asking[list[ListInstruction]]:
        if self._writer.epoch is not None and barrier.epoch.prev != self._writer.epoch:
            raise ProtocolError(f"{self._actor}: barrier {barrier.epoch} does not follow epoch {self._writer.epoch}")
        instructions: list[ListInstruction] = [*pass_on(barrier, self._seal(barrier))]
        instructions += [SendToNames(name, barrier) for name in self._shards]
        self._writer.epoch = barrier.epoch.curr
        yield from self._vanished.take(barrier.vanished)
        if any(each.source == self._source for each in barrier.vanished):
            self._frame.on_vanished()
        if barrier.is_stop:
            self._is_stopped = True
            return [*instructions, *(self._events.release() if self._events else []), End()]
        match barrier.mutation:
            case Pause():
                self._is_paused = True
            case Resume():
                self._is_paused = False
            case Reread(files=files):
                # Their fetch actors queue them in this epoch; a listing must not find them a second time.
                own = [file for file in files if file.source == self._source]
                for file in own:
                    self._looks.on_reread(file.path)
                self._writer.mark_seen(own)
            case AllowRemovals(sources=sources):
                if self._source in sources and self._guard.paused:
                    # The next listing tells whether the files are still missing.
                    self._guard.allow()
                    self._pace.hurry(now_s)
        self._unsent.budget = barrier.list_budget.get(self._source, 0)
        self._is_busy = barrier.backlog >= _BUSY_FILES
        return [*instructions, *(yield from self._continue(now_s))]

    def on_committed(self, epoch: int, now_s: float) -> list[ListInstruction]:
        """All epochs up to this one are committed."""
        return self._steps.run(self._take_commit(epoch, now_s))

    def _take_commit(self, epoch: int, now_s: float) -> Asking[list[ListInstruction]]:
        self._frame.on_committed(epoch)
        if self._events is None:
            return []
        self._events.on_committed(epoch)
        self._names.missing.on_committed()
        return (yield from self._continue(now_s))

    def on_mark(self, mark: int, now_s: float, *, at_once: bool = False) -> list[ListInstruction]:
        """A mark was made.

        It is complete when every file is handed on that was in the bucket at the mark.  A listing that begins after the
        mark shows these files, or the queue of events reports them.

        Args:
            at_once: see `MarkListings`.
        """
        return self._steps.run(self._take_mark(mark, now_s, at_once=at_once))

    def _take_mark(self, mark: int, now_s: float, *, at_once: bool) -> Asking[list[ListInstruction]]:
        self._marks.on_mark(mark, at_once=at_once)
        return (yield from self._continue(now_s))

    def on_schema(self, found: bool, now_s: float) -> list[ListInstruction]:
        """The files sent ahead have shown the schema; or none of them could be read, and the next ones go ahead."""
        return self._steps.run(self._take_schema(found, now_s))

    def _take_schema(self, found: bool, now_s: float) -> Asking[list[ListInstruction]]:
        self._unsent.on_schema(found)
        return (yield from self._continue(now_s))

    def on_time(self, now_s: float) -> list[ListInstruction]:
        """The time of a `WakeAt` has come."""
        return self._steps.run(self._continue(now_s))

    def on_names(self, owner: str, answer: NameAnswer) -> list[ListInstruction]:
        """Takes the answer of a name actor to its part of a question."""
        return self._steps.on_answer(owner, answer)

    # -- listings -------------------------------------------------------------------------------------------------

    def on_page(self, page: ListingPage, now_s: float) -> list[ListInstruction]:
        """Takes the new and the changed files of a page."""
        return self._steps.run(self._take_page(page, now_s))

    def _take_page(self, page: ListingPage, now_s: float) -> Asking[list[ListInstruction]]:
        self._awaits_page, self._has_last_page = False, page.is_last
        self._refusals.grant("listing")
        self._pace.on_page(page.requests, now_s)
        batches = [self._filter.taken(batch) for batch in page.table.to_batches()]
        self._foreign.take_page(page, batches)
        if self._foreign.paused is not None:
            self._tally.on_page(page.requests, 0)
            return [*self._pause(), *(yield from self._continue(now_s))]
        self._tally.on_page(page.requests, sum(rows.num_rows for rows in batches))
        warnings = [WarnOf(name) for name in self._skipped.news(page.skipped)]
        for warning in warnings:
            self._writer.quarantine_name(warning.name)
        changed: list[ChangedFile] = []
        for rows in batches:
            try:
                changed += yield from self._pages.take(rows)
            except RunFailedError as error:
                return [Fail(error)]
        return [*warnings, *self._send_changed(changed), *(yield from self._continue(now_s))]

    def on_listing_end(self, now_s: float, now: datetime) -> list[ListInstruction]:
        """The last page of this listing was taken; `now` is the time of the wall clock."""
        return self._steps.run(self._end_listing(now_s, now))

    def _end_listing(self, now_s: float, now: datetime) -> Asking[list[ListInstruction]]:
        if self._foreign.paused is not None:
            return (yield from self._end_paused_listing(now_s))
        self._foreign.end_listing()
        self._tally.end_listing(now)
        self._awaits_page = self._is_listing = self._has_last_page = False
        settling = self._settling.end_listing()
        yield from self._pages.end_listing(now_s)
        missing = self._names.missing
        doubtful = self._looks.is_doubtful
        self._marks.end_listing(*settling, must_confirm=missing.is_suspecting, is_doubtful=doubtful)
        self._frame.end_listing(is_known=self._is_as_known)
        # Without a wait, at most every second listing comes early for missing names: files may be deleted all the time.
        may_hurry = self._marks.is_awaited or not self._has_hurried
        self._has_hurried = (missing.is_suspecting or doubtful) and not self._is_busy and may_hurry
        pause_s = _SETTLE_S if self._settling else _CONFIRM_S if self._has_hurried else None
        self._pace.end(now_s, pause_s, is_busy=self._is_busy)
        asked = [] if self._guard.paused else missing.ask(self._writer.epoch, self._tally.listings)
        return [*asked, *(yield from self._continue(now_s))]

    def on_refused(self, operation: Operation, error: Exception, now_s: float) -> list[ListInstruction]:
        """The store or the queue refuses a request, or the bucket or directory does not exist: the source pauses.

        A listing is made again by this step, and the other operations are repeated by the caller: after `retry_s`.
        """
        return self._steps.run(self._take_refusal(operation, error, now_s))

    def _take_refusal(self, operation: Operation, error: Exception, now_s: float) -> Asking[list[ListInstruction]]:
        self.retry_s = self._refusals.refuse(operation, error)
        if operation == "listing":
            self._awaits_page = self._is_listing = self._has_last_page = False
            self._foreign.drop_listing()
            self._settling.end_listing()
            self._names.digests.forget()
            self._tally.drop_listing()
            self._pace.end(now_s, is_busy=self._is_busy)
            if self._marks.is_awaited:
                self._pace.hurry(now_s)
            self._pace.rest_until(now_s + self.retry_s)
        self._writer.activity += 1
        return (yield from self._continue(now_s))

    def _report_refusal(self) -> list[ListInstruction]:
        """Reports the begin and the end of a pause by refused requests, which the next epoch records."""
        reason = self._refusals.paused
        if (reason is not None) == self._reported_refusal:
            return []
        self._reported_refusal = reason is not None
        self._writer.require_commit()
        return [ReportPause(reason)]

    def _pause(self) -> list[ListInstruction]:
        """Hands no file on until the pause ends; a later listing finds the unsent files again."""
        if self._reported_pause:
            return []
        self._reported_pause = True
        self._unsent.clear()
        self._names.digests.forget()
        self._tally.drop_listing()
        self._writer.require_commit()
        return [ReportPause(self._foreign.paused)]

    def _end_paused_listing(self, now_s: float) -> Asking[list[ListInstruction]]:
        """Ends a listing of which no name was taken, and the pause if it showed no reason for one."""
        self._awaits_page = self._is_listing = self._has_last_page = False
        self._foreign.end_listing()
        self._settling.end_listing()
        self._looks.end_listing()
        self._tally.drop_listing()
        self._pace.end(now_s, _LOOK_AGAIN_S, is_busy=self._is_busy)
        reported: list[ListInstruction] = []
        if self._foreign.paused is None:
            self._reported_pause = False
            self._pace.hurry(now_s)
            reported = [ReportPause(None)]
        else:
            # A run until all is read must not wait for the user.
            self._marks.end_listing(set(), set())
        return [*reported, *(yield from self._continue(now_s))]

    def on_run_deletions(self, files: Sequence[RunDeletion]) -> list[ListInstruction]:
        """Records the files that the run has deleted or moved: a new file with their name is another version."""
        if not files:
            return []
        keys = path_fingerprints(self._source, pa.array([each.path for each in files], pa.string()))
        deliveries = [delivery_fingerprint(each.version, each.last_modified) for each in files]
        self._names.seen.set_deleted_by_run(keys, [each.version for each in files], deliveries)
        # The next listing may show another object with the same etag, and so the same digest.
        self._names.digests.forget()
        return []

    def on_deleted(self, found: DeletedFound) -> list[ListInstruction]:
        """Takes the rows that the store has of missing names."""
        return self._steps.run(self._take_deleted(found))

    def _take_deleted(self, found: DeletedFound) -> Asking[list[ListInstruction]]:
        if self._guard.paused or self._foreign.paused is not None:
            found = DeletedFound(found.epoch)
        files, keys, paths = self._names.missing.on_found(found)
        if self._is_stopped:
            return []
        self._guard.on_removed(len({file.path for file in files}), self._now_s)
        for path in paths:
            self._looks.settle(path, self._writer.open_epoch if files else 0)
        if self._removes:
            self._names.seen.set_deleted(keys)
        else:
            self._names.seen.set_missing(keys)
        if paths:
            # The next listing may show these names as the last one did.
            self._names.digests.forget()
        if files:
            self._writer.require_commit()
        instructions: list[ListInstruction] = [Send(DeletedFiles(files))] if files else []
        return [*instructions, *(yield from self._continue(self._now_s))]

    # -- events ---------------------------------------------------------------------------------------------------

    def on_messages(
        self, receive: Receive, messages: Sequence[QueueMessage], depth: QueueDepth | None, now_s: float
    ) -> list[ListInstruction]:
        """Takes the answer of the queue of events to a `Receive`."""
        return self._steps.run(self._take_messages(receive, messages, depth, now_s))

    def _take_messages(
        self, receive: Receive, messages: Sequence[QueueMessage], depth: QueueDepth | None, now_s: float
    ) -> Asking[list[ListInstruction]]:
        assert self._events is not None, "only the watch of events receives"
        self._refusals.grant("queue")
        for poison in self._events.on_messages(receive, messages, depth, now_s, self._writer.open_epoch):
            self._writer.quarantine(poison)
        self._foreign.take_names(self._events.take_signs())
        return (yield from self._continue(now_s))

    def on_looked(self, found: Mapping[str, FileVersion | None], now_s: float) -> list[ListInstruction]:
        """Takes the objects at the paths of a `LookAt`; None where no object is."""
        return self._steps.run(self._take_looked(found, now_s))

    def _take_looked(self, found: Mapping[str, FileVersion | None], now_s: float) -> Asking[list[ListInstruction]]:
        assert self._events is not None, "only the watch of events looks"
        self._refusals.grant("look at an object")
        self._foreign.take_accepted([path for path, file in found.items() if file is not None])
        if self._foreign.paused is not None:
            return [*self._pass_looked_over(self._events, found, now_s), *(yield from self._continue(now_s))]
        changed = yield from self._looks.on_looked(self._events, found)
        return [*self._send_changed(changed), *(yield from self._continue(now_s))]

    def _pass_looked_over(
        self, events: EventWatch, found: Mapping[str, FileVersion | None], now_s: float
    ) -> list[ListInstruction]:
        """Drops the objects of a look.  The listing that ends the pause shows them again, without a message."""
        events.on_looked()
        for path in found:
            self._looks.settle(path, self._writer.open_epoch)
        reported = self._pause()
        if reported:
            self._pace.hurry(now_s)
        return reported

    # -- inside ---------------------------------------------------------------------------------------------------

    def _send_changed(self, changed: Sequence[ChangedFile]) -> list[ListInstruction]:
        self._writer.activity += len(changed)
        return [Send(ChangedFiles(tuple(changed)))] if changed else []

    def _continue(self, now_s: float) -> Asking[list[ListInstruction]]:
        """Sends the files that may be sent, and asks for the next page or look, or for the time when that may be."""
        self._now_s = now_s
        instructions = self._send_new()
        if self._writer.epoch is None or self._is_stopped:
            return instructions
        wakes: list[float] = []
        if self._events is not None:
            may_go_on = not self._is_paused and not self._unsent and self._foreign.paused is None
            mark = self._marks.last if self._marks.last > self._complete_mark else 0
            instructions += self._events.ask(now_s, mark, may_go_on=may_go_on)
            instructions += yield from self._ask_for_paths(now_s)
            wakes += self._events.wakes(mark, may_go_on=may_go_on)
        may_list = not self._unsent or (self._unsent.may_grow and self._is_listing)
        if not self._is_paused and not self._awaits_page and may_list:
            instructions += self._list(now_s, wakes)
        self._complete_marks()
        instructions += [*self._report_removals(), *self._report_refusal()]
        return [*instructions, WakeAt(min(wakes))] if wakes else instructions

    def _ask_for_paths(self, now_s: float) -> Asking[list[ListInstruction]]:
        """Asks the store for the names that messages wait for, unless removals pause."""
        missing = self._names.missing
        if not missing.may_ask_for_paths or self._foreign.paused is not None:
            return []
        if not self._guard.paused:
            present = yield from CountPresent().asked()
            self._guard.decide(missing.count, present, now_s)
        if not self._guard.paused:
            return missing.ask_for_paths()
        # Messages about them would fill the tracker, and keep events of new files away; a restart lists instead.
        for path in missing.take_paths():
            self._looks.settle(path, self._writer.open_epoch)
        self._writer.require_commit()
        return []

    def _report_removals(self) -> list[ListInstruction]:
        """Tells the begin and the end of a pause."""
        paused = self._guard.paused
        is_news, self._reported_paused = bool(paused) != bool(self._reported_paused), paused
        return [ReportRemovals(paused, self._guard.known)] if is_news else []

    def _send_new(self) -> list[ListInstruction]:
        is_paused = self._is_paused or self._foreign.paused is not None
        if self._is_stopped or is_paused or (new := self._unsent.take(is_listing=self._is_listing)) is None:
            return []
        self._writer.mark_seen(new.files)
        self._sent += len(new.files)
        self._writer.activity += len(new.files)
        return [Send(new)]

    def _list(self, now_s: float, wakes: list[float]) -> list[ListInstruction]:
        """Asks for the next page, or adds the time when that may be to `wakes`."""
        if not self._is_listing and self._marks.needs_listing and not self._knows_without_listing:
            self._pace.request(now_s)
        next_s = self._pace.next_s(now_s, is_listing=self._is_listing, is_busy=self._is_busy)
        if next_s > now_s and not self._has_last_page:
            wakes.append(next_s)
            return []
        if not self._is_listing:
            self._marks.begin_listing()
            self._frame.begin_listing(self._writer.last_epoch)
            self._foreign.begin_listing()
            self._pace.begin(now_s)
            self._pages.begin_listing()
        pages = 0 if self._has_last_page else self._pace.ask(SIDE_BY_SIDE, now_s)
        instruction = ReadPage(first=not self._is_listing, most=pages)
        self._is_listing = self._awaits_page = True
        return [instruction]

    def _complete_marks(self) -> None:
        """With events, a mark is also complete when everything is handed on that the queue had at the mark."""
        if self._unsent or self._names.missing.awaits_answer:
            return
        self._tally.on_all_sent()
        complete = self._marks.last if self._frame.is_current else self._marks.complete
        if self._events is not None and self._foreign.paused is None:
            if not self._tally.must_list and self._events.is_complete(self._marks.last):
                complete = self._marks.last
            elif self._events.is_looking:
                # A page may have caused the look.
                return
        if complete > self._complete_mark:
            self._complete_mark = complete
            self._writer.activity += 1

    def _seal(self, barrier: Barrier) -> CollectReport:
        state = None
        if self._writer.needs_state:
            needs_listing = self._names.missing.needs_listing or self._paused_reason is not None
            state = self._tally.row(self._pace, self._events, self._now_s, needs_listing=needs_listing)
        return CollectReport(
            self._actor,
            barrier.epoch.prev,
            self._writer.seal(state),
            activity=self._writer.activity,
            complete_mark=self._complete_mark,
            is_refused=self._refusals.is_lasting,
        )

    @property
    def _knows_without_listing(self) -> bool:
        """True if a mark becomes complete without a listing, or by the repetition of a refused listing."""
        has_events = self._events is not None and not self._tally.must_list
        return self._frame.is_current or has_events or self._refusals.paused is not None

    @property
    def _is_as_known(self) -> bool:
        """True if the listing that has ended has shown exactly the files that were handed on."""
        is_settled = not self._settling and not self._unsent and not self._names.missing.is_suspecting
        return is_settled and self._tally.listed > 0 and self._tally.found == 0

    @property
    def _paused_reason(self) -> str | None:
        return self._foreign.paused or self._refusals.paused

    def progress(self) -> ListProgress:
        """The progress of this step since its start."""
        return ListProgress(
            actor=self._actor,
            source=self._source,
            activity=self._writer.activity,
            sent=self._sent,
            held=len(self._unsent),
            unsettled=self._settling.unsettled,
            listings=self._tally.listings,
            listed=self._tally.listed,
            requests=self._tally.requests,
            spent=self._pace.budget.spent(self._now_s),
            period_s=self._pace.period_s,
            stretched_by=self._pace.stretched_by,
            found=self._tally.found,
            listed_at=self._tally.listed_at,
            paused_removals=self._guard.paused,
            paused=self._paused_reason,
            messages=None if self._events is None else self._events.progress(),
        )

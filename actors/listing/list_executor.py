"""Finds new files by listing the prefix again and again, or by events; `seen` makes that exact.

No cursor decides what is new, so late, out-of-order and back-dated names are found.  A file is marked as seen in the
epoch in which it is handed on, and the fetch actor queues it in the same epoch: a crash forgets both or neither.

An event makes the list actor look at one object, which tells the same of it as a page of a listing.  A page may be
older than a look, and a look older than what was handed on meanwhile: where they contradict each other, it looks again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import numpy as np
import pyarrow as pa

from actors.files import ChangedFile, FileVersion, Vanished
from actors.listing.instructions import ListInstruction as Instruction
from actors.listing.instructions import ReadPage
from actors.listing.listing_digests import ListingDigest, ListingDigests
from actors.listing.listing_marks import ListingMarks
from actors.listing.listing_pace import ListingPace
from actors.listing.listing_state import NEVER_LISTED, ListedState
from actors.listing.missing_files import GoneFound, MissingNames
from actors.listing.seen_index import SeenIndex, Sight
from actors.listing.settling_files import SettlingFiles
from actors.listing.unsent_files import UnsentFiles
from actors.notifications.event_watch import EventWatch
from actors.notifications.instructions import Receive
from actors.notifications.message_tracker import QueueDepth, QueueMessage
from actors.objects.listing_page import ListingPage, microseconds_of, time_of
from actors.objects.page_reader import SIDE_BY_SIDE
from actors.protocol.barrier import Barrier, Pause, Reread, Resume
from actors.protocol.instructions import End, Fail, Send, WakeAt, pass_on
from actors.protocol.messages import ChangedFiles, GoneFiles
from actors.protocol.reports import CollectReport, ListProgress
from actors.sources.path_filter import PathFilter
from state.errors import ProtocolError, RunFailedError
from state.tables.delta import DeltaBuilder
from state.tables.fingerprint import path_fingerprint, path_fingerprints, version_fingerprints
from state.tables.keys import encode_key
from state.vnode import vnode_of

_SETTLE_S = 1.0
_GONE_AT_ONCE = 100_000
_VANISHES = 5
_BUSY_FILES = 100


class ListExecutor:
    """The list step of one source: pages of the bucket in, new files out.

    Args:
        actor: this actor's name in reports.
        source: the source's name.
        path_filter: which paths the source takes.
        pace: when pages may be asked for.
        seen: what was handed on before.
        schema_known, sampled, order: see `UnsentFiles`.
        must_settle: whether a file is taken only when two listings show the same version of it (local files).
        not_before_us: what was written earlier, in microseconds since 1970, is left out; None for nothing.
        events: what else tells of files; None if listings alone do.
        must_list: whether a listing must have ended before events can have told of everything.
        listed: the last listing, as far as it is known.
        removes: whether the rows of files that are gone leave the views: then they are read when they are back.
    """

    def __init__(
        self,
        *,
        actor: str,
        source: str,
        path_filter: PathFilter,
        pace: ListingPace,
        seen: SeenIndex,
        schema_known: bool,
        must_settle: bool,
        sampled: int = 0,
        not_before_us: int | None = None,
        events: EventWatch | None = None,
        must_list: bool = True,
        listed: ListedState = NEVER_LISTED,
        removes: bool = False,
        order: str | None = None,
    ) -> None:
        self._actor, self._source = actor, source
        self._filter, self._pace, self._seen = path_filter, pace, seen
        self._must_settle, self._not_before_us = must_settle, not_before_us
        self._events, self._must_list, self._removes = events, must_list, removes
        self._epoch: int | None = None
        self._paused = self._stopped = self._is_busy = False
        self._held = UnsentFiles(order, schema_known=schema_known, sampled=sampled)
        self._listing = self._page_asked = self._is_last = False
        self._chunks = ListingDigests()
        # Names that were looked at since the listing began: its pages may show what was there before.
        self._looked: dict[bytes, str] = {}
        self._absent = MissingNames(source)
        self._marked_in = 0
        self._vanished: dict[bytes, tuple[bytes, int]] = {}
        self._young = SettlingFiles()
        self._marks, self._complete_mark = ListingMarks(), 0
        self._delta = DeltaBuilder()
        self._marked = False
        self._activity = self._sent = self._listings = self._listed = self._listed_now = self._requests = 0
        self._found, self._found_now = listed.found, 0
        self._now_s = 0.0
        self._listed_at = listed.listed_at
        self._ended_at: datetime | None = None

    def on_barrier(self, barrier: Barrier, now_s: float) -> list[Instruction]:
        """Seals the epoch, passes the barrier on, and goes on with the budget it brings."""
        if self._epoch is not None and barrier.epoch.prev != self._epoch:
            raise ProtocolError(f"{self._actor}: barrier {barrier.epoch} does not follow epoch {self._epoch}")
        instructions = pass_on(barrier, self._seal(barrier))
        self._epoch = barrier.epoch.curr
        for vanished in barrier.vanished:
            if vanished.source == self._source:
                self._forget(vanished)
        if barrier.is_stop:
            self._stopped = True
            return [*instructions, *(self._events.release() if self._events else []), End()]
        if isinstance(barrier.mutation, (Pause, Resume)):
            self._paused = isinstance(barrier.mutation, Pause)
        elif isinstance(barrier.mutation, Reread):
            # Their fetch actors queue them in this epoch: no listing finds them once more.
            for file in barrier.mutation.files:
                if file.source == self._source:
                    self._mark_seen(file.path, file.version)
        self._held.budget = barrier.list_budget.get(self._source, 0)
        self._is_busy = barrier.backlog >= _BUSY_FILES
        return [*instructions, *self._go_on(now_s)]

    def on_page(self, page: ListingPage, now_s: float) -> list[Instruction]:
        """Takes the new and the changed files out of a page."""
        self._page_asked, self._is_last = False, page.is_last
        self._requests += page.requests
        self._pace.on_page(page.requests, now_s)
        changed: list[ChangedFile] = []
        for batch in page.table.to_batches():
            rows = self._filter.taken(batch)
            self._listed_now += rows.num_rows
            chunks = self._chunks.unknown(rows)
            if chunks:
                try:
                    changed += self._look_up(rows, chunks)
                except _TwoNames as twice:
                    return [Fail(RunFailedError(str(twice)))]
        return [*self._send_changed(changed), *self._go_on(now_s)]

    def on_listing_end(self, now_s: float, now: datetime) -> list[Instruction]:
        """The last page of this listing has been taken."""
        self._ended_at = now
        self._page_asked = self._listing = self._is_last = False
        self._listings += 1
        self._listed, self._listed_now = self._listed_now, 0
        self._found, self._found_now = self._found_now, 0
        self._marks.end_listing(*self._young.end_listing())
        self._pace.end(now_s, _SETTLE_S if self._young else None, is_busy=self._is_busy)
        return [*self._find_gone(), *self._go_on(now_s)]

    def on_gone(self, found: GoneFound) -> list[Instruction]:
        """What the store knows of the files that are not there."""
        files, names, paths = self._absent.on_found(found)
        if self._stopped:
            return []
        for path in paths:
            self._settle(path, self._current_epoch if files else 0)
        self._seen.set_gone(names)
        if paths:
            # The next listing may show them as the last one did.
            self._chunks.forget()
        self._activity += bool(files)
        instructions: list[Instruction] = [Send(GoneFiles(files))] if files else []
        return [*instructions, *self._go_on(self._now_s)]

    def on_messages(
        self, receive: Receive, messages: Sequence[QueueMessage], depth: QueueDepth | None, now_s: float
    ) -> list[Instruction]:
        """The queue of events has answered."""
        assert self._events is not None, "nobody else receives"
        for poison in self._events.on_messages(receive, messages, depth, now_s, self._current_epoch):
            poison.quarantine(self._delta, self._source)
            self._activity += 1
        return self._go_on(now_s)

    def on_looked(self, found: Mapping[str, FileVersion | None], now_s: float) -> list[Instruction]:
        """What there is at the paths that were to be looked at; None where there is nothing."""
        assert self._events is not None, "nobody else looks"
        doubtful = self._events.on_looked()
        looked = [path for path in found if path not in doubtful]
        keys = path_fingerprints(self._source, pa.array(looked, pa.string()))
        if self._listing:
            self._looked.update(zip(keys, looked, strict=True))
        changed = []
        for path, key, before in zip(looked, keys, self._seen.lookup(keys), strict=True):
            changed += self._take_look(path, key, before, found[path])
        return [*self._send_changed(changed), *self._go_on(now_s)]

    def on_committed(self, epoch: int, now_s: float) -> list[Instruction]:
        """All epochs up to this one are committed."""
        if self._events is None:
            return []
        self._events.on_committed(epoch)
        self._absent.on_committed()
        return self._go_on(now_s)

    def on_mark(self, mark: int, now_s: float) -> list[Instruction]:
        """Asks for word of when everything is handed on that the next listing to begin finds, or the queue has."""
        self._marks.on_mark(mark)
        return self._go_on(now_s)

    def on_schema(self, found: bool, now_s: float) -> list[Instruction]:
        """The files that were sent ahead have shown the schema, or none could be read: then the next ones go ahead."""
        self._held.on_schema(found)
        return self._go_on(now_s)

    def on_time(self, now_s: float) -> list[Instruction]:
        """A time that a `WakeAt` named has come."""
        return self._go_on(now_s)

    def _look_up(self, rows: pa.RecordBatch, chunks: list[ListingDigest]) -> list[ChangedFile]:
        """Puts the new files of these chunks among the held ones; returns those that changed since they were handed on.

        Raises:
            _TwoNames: two names have one fingerprint.
        """
        looked_up = np.concatenate([np.arange(chunk.start, chunk.stop) for chunk in chunks])
        if len(looked_up) < rows.num_rows:
            rows = rows.take(pa.array(looked_up))
        keys = path_fingerprints(self._source, rows["path"])
        versions = version_fingerprints(rows["etag"], rows["size"], rows["modified_us"])
        sights = self._seen.show(keys, versions)
        for path in self._absent.discard(keys):
            self._look_again(path)
        if not self._removes:
            sights[sights == Sight.BACK] = Sight.SAME
        is_seen = is_known = sights == Sight.SAME
        if self._not_before_us is not None:
            is_known = is_seen | ((sights == Sight.NEW) & (rows["modified_us"].to_numpy() < self._not_before_us))
        self._note_known(chunks, is_seen, is_known)
        news = np.flatnonzero(~is_known).tolist()
        changed = []
        for at, row in zip(news, rows.take(pa.array(news, pa.int64())).to_pylist(), strict=True):
            path, version = row["path"], versions[at]
            if keys[at] in self._looked:
                self._look_again(path)
                continue
            if sights[at] == Sight.TWICE:
                raise _TwoNames(
                    f"source {self._source}: {path} was listed twice in two versions, or has the fingerprint of "
                    "another name: rename it"
                )
            is_new = sights[at] == Sight.NEW
            may_be_young = self._must_settle and sights[at] != Sight.BACK
            if may_be_young and self._young.is_young(path, version, is_new=is_new):
                continue
            file = FileVersion(self._source, path, version, row["etag"], row["size"], time_of(row["modified_us"]))
            self._found_now += 1
            if is_new:
                self._held.add(file)
            else:
                (before,) = self._seen.lookup([keys[at]])
                assert before is not None, "its sight was not NEW"
                changed.append(ChangedFile(before, file))
                self._mark_seen(path, version)
        return changed

    def _take_look(self, path: str, key: bytes, before: bytes | None, file: FileVersion | None) -> list[ChangedFile]:
        """Takes what is there now at a path of which this version was handed on before; returns what has changed."""
        if file is None:
            if before is not None:
                self._absent.add(key, before, self._marked_in, path)
            elif path not in self._held:
                # Who has taken the root over may know it: that nobody has, the commit of this epoch shows.
                self._settle(path, self._current_epoch)
                self._marked = True
                self._activity += 1
            return []
        self._absent.discard([key])
        is_back = self._seen.take_back(key) and self._removes
        if before is None:
            limit = self._not_before_us
            if path in self._held or limit is None or microseconds_of(file.last_modified) >= limit:
                self._held.add(file)
            else:
                self._settle(path, 0)
            return []
        if before == file.version and not is_back:
            self._settle(path, self._marked_in)
            return []
        # A later listing may show the version of before as well.
        self._chunks.forget()
        self._mark_seen(path, file.version)
        return [ChangedFile(before, file)]

    def _look_again(self, path: str) -> None:
        if self._events is not None:
            self._events.look_at([path])

    def _settle(self, path: str, epoch: int) -> None:
        if self._events is not None:
            self._events.settle(path, epoch)

    def _send_changed(self, changed: Sequence[ChangedFile]) -> list[Instruction]:
        self._activity += len(changed)
        return [Send(ChangedFiles(tuple(changed)))] if changed else []

    def _note_known(self, chunks: Iterable[ListingDigest], is_seen: np.ndarray, is_known: np.ndarray) -> None:
        """The next listing need not look up the chunks of which everything is known."""
        at = 0
        for chunk in chunks:
            end = at + chunk.stop - chunk.start
            if is_known[at:end].all():
                self._chunks.put(chunk, int(np.count_nonzero(is_seen[at:end])))
            at = end

    def _forget(self, vanished: Vanished) -> None:
        """The name is new again, if this is its version.

        What is listed again and again and is never there has a name that cannot be read, like one that ends in `/`.
        """
        path, version = vanished.path, vanished.version
        key = path_fingerprint(self._source, path)
        if vanished.is_removed:
            if self._seen.lookup([key]) == [version]:
                self._seen.set_gone([key])
                self._chunks.forget()
                self._look_again(path)
            return
        before, times = self._vanished.get(key, (version, 0))
        self._vanished[key] = version, 1 if before != version else times + 1
        if self._vanished[key][1] < _VANISHES and self._seen.forget(key, version):
            self._chunks.forget()
            self._absent.discard([key])
            self._look_again(path)

    def _find_gone(self) -> list[Instruction]:
        """Asks for what a complete listing has not shown; for that, the next one may have to look up every name."""
        if self._chunks.skipped:
            if not self._seen.shows_all(self._chunks.skipped):
                self._chunks.forget()
        else:
            for key, version in self._seen.take_absent(_GONE_AT_ONCE).items():
                if key in self._looked:
                    self._look_again(self._looked[key])
                else:
                    self._absent.add(key, version, self._marked_in)
        self._looked.clear()
        return self._absent.ask(self._epoch, self._listings)

    def _go_on(self, now_s: float) -> list[Instruction]:
        """Sends what may be sent, and asks for what comes next, or for the time when that may be."""
        self._now_s = now_s
        instructions = self._send_held()
        if self._epoch is None or self._stopped:
            return instructions
        wakes: list[float] = []
        if self._events is not None:
            may_go_on = not self._paused and not self._held
            mark = self._marks.last if self._marks.last > self._complete_mark else 0
            instructions += self._events.ask(now_s, mark, may_go_on=may_go_on)
            instructions += self._absent.ask_for_paths()
            wakes += self._events.wakes(mark, may_go_on=may_go_on)
        may_list = not self._held or (self._held.may_grow and self._listing)
        if not self._paused and not self._page_asked and may_list:
            instructions += self._list_on(now_s, wakes)
        self._complete_marks()
        return [*instructions, WakeAt(min(wakes))] if wakes else instructions

    def _list_on(self, now_s: float, wakes: list[float]) -> list[Instruction]:
        """Asks for the next page, or for the time when that may be."""
        next_s = self._pace.next_s(now_s, is_listing=self._listing, is_busy=self._is_busy)
        if next_s > now_s and not self._is_last:
            wakes.append(next_s)
            return []
        if not self._listing:
            self._marks.begin_listing()
            self._pace.begin(now_s)
            self._seen.begin_listing()
            self._chunks.begin_listing()
        pages = 0 if self._is_last else self._pace.ask(SIDE_BY_SIDE, now_s)
        instruction = ReadPage(first=not self._listing, most=pages)
        self._listing = self._page_asked = True
        return [instruction]

    def _complete_marks(self) -> None:
        """With events, a mark is complete also when all is handed on that the queue had."""
        if self._held:
            return
        if self._ended_at is not None:
            # All that the listing has found is handed on: a restart need not find it once more.
            self._listed_at, self._ended_at, self._must_list = self._ended_at, None, False
        complete = self._marks.complete
        if self._events is not None:
            if not self._must_list and self._events.is_complete(self._marks.last):
                complete = self._marks.last
            elif self._events.is_looking:
                # A page made it look at something again.
                return
        if complete > self._complete_mark:
            self._complete_mark = complete
            self._activity += 1

    def _send_held(self) -> list[Instruction]:
        if self._stopped or self._paused or (new := self._held.take(is_listing=self._listing)) is None:
            return []
        for file in new.files:
            self._mark_seen(file.path, file.version)
        self._sent += len(new.files)
        self._activity += len(new.files)
        return [Send(new)]

    def _mark_seen(self, path: str, version: bytes) -> None:
        key = path_fingerprint(self._source, path)
        self._seen.put(key, version)
        self._delta.put("seen", key, vnode_of(path), source=self._source, version=version)
        self._marked = True
        self._marked_in = self._current_epoch
        if self._events is not None:
            self._events.settle(path, self._current_epoch)
            self._events.on_handed_on(path)

    @property
    def _current_epoch(self) -> int:
        assert self._epoch is not None, "nothing is handed on before the first barrier"
        return self._epoch

    def _seal(self, barrier: Barrier) -> CollectReport:
        if self._marked:
            key = encode_key(self._source)
            self._delta.put(
                "list_state",
                key,
                0,
                source=self._source,
                listed_at=self._listed_at,
                pages=self._listings,
                requests=self._requests,
                requests_last_hour=self._pace.budget.last_hour(self._now_s),
                period_s=self._pace.period_s,
                stretched_by=self._pace.stretched_by,
                found=self._found,
                # What a queue tells is worth something from the first listing on.
                queue=None if self._events is None or self._must_list else self._events.queue,
                **({} if self._events is None else self._events.state()),
            )
        self._marked = False
        return CollectReport(
            self._actor,
            barrier.epoch.prev,
            self._delta.build(),
            activity=self._activity,
            complete_mark=self._complete_mark,
        )

    def progress(self) -> ListProgress:
        """How far this step is."""
        return ListProgress(
            actor=self._actor,
            source=self._source,
            activity=self._activity,
            sent=self._sent,
            held=len(self._held),
            unsettled=self._young.unsettled,
            listings=self._listings,
            listed=max(self._listed, self._listed_now),
            requests=self._requests,
            spent=self._pace.budget.spent(self._now_s),
            period_s=self._pace.period_s,
            stretched_by=self._pace.stretched_by,
            found=self._found,
            listed_at=self._listed_at,
            messages=None if self._events is None else self._events.progress(),
        )


class _TwoNames(Exception):
    """Two names have one fingerprint."""

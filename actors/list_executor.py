"""Finds new files by listing the prefix again and again; `seen` makes that exact.

No cursor decides what is new, so late, out-of-order and back-dated names are found.  A file is marked as seen in the
epoch in which it is handed on, and the fetch actor queues it in the same epoch: a crash forgets both or neither.
"""

from __future__ import annotations

from collections import deque
from datetime import datetime

from actors.instructions import End, Instruction, ReadPage, Send, WakeAt, pass_on
from actors.messages import Barrier, ChangedFile, ChangedFiles, FileVersion, NewFiles, Pause, Resume
from actors.object_store import ListingPage
from actors.path_filter import PathFilter
from actors.reports import CollectReport, ListProgress
from actors.seen_index import SeenIndex
from state.delta import DeltaBuilder
from state.errors import ProtocolError
from state.fingerprint import path_fingerprint, version_fingerprint
from state.keys import encode_key
from state.vnode import vnode_of

_SETTLE_S = 1.0


class ListExecutor:
    """The list step of one source: pages of the bucket in, new files out.

    Args:
        actor: this actor's name in reports.
        source: the source's name.
        path_filter: which paths the source takes.
        interval_s: seconds from the end of one listing to the start of the next.
        seen: what was handed on before.
        schema_known: False until the first file has shown the schema; until then only one file is out at a time.
        must_settle: whether a file is taken only when two listings show the same version of it (local files).
    """

    def __init__(
        self,
        *,
        actor: str,
        source: str,
        path_filter: PathFilter,
        interval_s: float,
        seen: SeenIndex,
        schema_known: bool,
        must_settle: bool,
    ) -> None:
        self._actor, self._source = actor, source
        self._filter, self._interval_s, self._seen = path_filter, interval_s, seen
        self._schema_known, self._must_settle = schema_known, must_settle
        self._probing = False
        self._epoch: int | None = None
        self._paused = self._stopped = False
        self._budget = 0
        self._held: deque[FileVersion] = deque()
        self._listing = self._page_asked = False
        self._next_listing_s = 0.0
        self._settled: dict[str, bytes] = {}
        self._settling: dict[str, bytes] = {}
        self._unsettled: set[str] = set()
        self._mark, self._listing_mark, self._pending_mark, self._complete_mark = 1, 0, 0, 0
        self._pending: set[str] = set()
        self._delta = DeltaBuilder()
        self._marked = False
        self._activity = self._sent = self._listings = self._listed = self._listed_now = self._requests = 0
        self._num_unsettled = 0
        self._listed_at: datetime | None = None

    def on_barrier(self, barrier: Barrier, now_s: float) -> list[Instruction]:
        """Seals the epoch, passes the barrier on, and goes on with the budget it brings."""
        if self._epoch is not None and barrier.epoch.prev != self._epoch:
            raise ProtocolError(f"{self._actor}: barrier {barrier.epoch} does not follow epoch {self._epoch}")
        instructions = pass_on(barrier, self._seal(barrier))
        self._epoch = barrier.epoch.curr
        for vanished in barrier.vanished:
            if vanished.source == self._source:
                self._seen.forget(path_fingerprint(vanished.source, vanished.path), vanished.version)
        if barrier.is_stop:
            self._stopped = True
            return [*instructions, End()]
        if isinstance(barrier.mutation, (Pause, Resume)):
            self._paused = isinstance(barrier.mutation, Pause)
        self._budget = barrier.list_budget.get(self._source, 0)
        return [*instructions, *self._go_on(now_s)]

    def on_page(self, page: ListingPage, now_s: float) -> list[Instruction]:
        """Takes the new and the changed files out of a page."""
        self._page_asked = False
        self._requests += page.requests
        changed = self._sift(page)
        instructions: list[Instruction] = [Send(ChangedFiles(changed))] if changed else []
        return [*instructions, *self._go_on(now_s)]

    def on_listing_end(self, now_s: float, now: datetime) -> list[Instruction]:
        """The last page of this listing has been taken."""
        self._listed_at = now
        self._page_asked = self._listing = False
        self._listings += 1
        self._listed, self._listed_now = self._listed_now, 0
        self._settled, self._settling = self._settling, {}
        self._complete_listing()
        unsettled_pause_s = min(self._interval_s, _SETTLE_S)
        self._next_listing_s = now_s + (unsettled_pause_s if self._settled else self._interval_s)
        return self._go_on(now_s)

    def on_mark(self, mark: int) -> list[Instruction]:
        """Asks for word of when everything is handed on that the next listing to begin finds."""
        self._mark = max(self._mark, mark)
        return []

    def on_schema(self, found: bool, now_s: float) -> list[Instruction]:
        """The file that was sent ahead has shown the schema, or could not be read: then the next one goes ahead."""
        self._schema_known = self._schema_known or found
        self._probing = False
        return self._go_on(now_s)

    def on_time(self, now_s: float) -> list[Instruction]:
        """A time that a `WakeAt` named has come."""
        return self._go_on(now_s)

    def _sift(self, page: ListingPage) -> tuple[ChangedFile, ...]:
        """Puts the page's new files among the held ones; returns those that changed since they were handed on."""
        accepts = self._filter.accepts
        objects = [each for each in page.objects() if accepts(each[0])]
        self._listed_now += len(objects)
        keys = [path_fingerprint(self._source, path) for path, *_ in objects]
        changed = []
        for seen, (path, etag, size, last_modified) in zip(self._seen.lookup(keys), objects, strict=True):
            version = version_fingerprint(etag, size, last_modified)
            if seen == version:
                continue
            if self._must_settle and self._settled.get(path) != version:
                self._settling[path] = version
                if seen is None or path not in self._settled:
                    # What was read and changes in every listing is waited for once, not for ever.
                    self._unsettled.add(path)
                continue
            file = FileVersion(self._source, path, version, etag, size, last_modified)
            if seen is None:
                self._held.append(file)
            else:
                changed.append(ChangedFile(seen, file))
                self._mark_seen(path, version)
        self._activity += len(changed)
        return tuple(changed)

    def _go_on(self, now_s: float) -> list[Instruction]:
        """Sends what may be sent, and asks for the next page or for the time of the next listing."""
        instructions = self._send_held()
        if self._epoch is None or self._stopped or self._paused or self._page_asked or self._held:
            pass
        elif self._listing or now_s >= self._next_listing_s:
            if not self._listing:
                self._listing_mark = self._mark
            instructions.append(ReadPage(first=not self._listing))
            self._listing = self._page_asked = True
        else:
            instructions.append(WakeAt(self._next_listing_s))
        return instructions

    def _complete_listing(self) -> None:
        """A mark is complete when a listing that began after it has ended, and what was too young in it is sent."""
        unsettled, self._unsettled = self._unsettled, set()
        self._num_unsettled = len(unsettled)
        if self._pending_mark > self._complete_mark:
            self._pending &= unsettled
        elif self._listing_mark > self._complete_mark:
            self._pending_mark, self._pending = self._listing_mark, unsettled
        if self._pending_mark > self._complete_mark and not self._pending:
            self._complete_mark = self._pending_mark
            self._activity += 1

    def _send_held(self) -> list[Instruction]:
        if self._stopped or self._paused or self._probing:
            return []
        allowed = min(len(self._held), self._budget if self._schema_known else min(1, self._budget))
        if allowed <= 0:
            return []
        files = tuple(self._held.popleft() for _ in range(allowed))
        for file in files:
            self._mark_seen(file.path, file.version)
        self._budget -= allowed
        self._sent += allowed
        self._activity += allowed
        self._probing = not self._schema_known
        return [Send(NewFiles(files))]

    def _mark_seen(self, path: str, version: bytes) -> None:
        key = path_fingerprint(self._source, path)
        self._seen.put(key, version)
        self._delta.put("seen", key, vnode_of(path), source=self._source, version=version)
        self._marked = True

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
            unsettled=self._num_unsettled,
            listings=self._listings,
            listed=max(self._listed, self._listed_now),
            requests=self._requests,
        )

"""The watermarks of the sources: event times before which no row is expected.

Files arrive in no order of event time, and a backlog is read in the order of a hash.  So the watermark does not follow
single rows.  It moves when everything is finished that was in the bucket at a mark (see `CaughtUp`).  The new watermark
is the highest event time of the files listed up to the mark, less the lateness of the source.

A mark is made when rows would move the watermark, or when a source had no rows for its `idle` time.  The watermark of
an idle source follows the clock, its `idle` time behind.

A watermark never goes back.  It is in force from a barrier on, and part of the epoch that this barrier ends: the same
commit has it, and the highest event time so far, from which an attempt after a crash goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from actors.coordination.caught_up import FIRST_MARK
from actors.protocol.barrier import Barrier
from actors.protocol.reports import CollectReport
from actors.rows import highest
from actors.sources.event_time import EventTime
from state.tables.catalog import put_watermark
from state.tables.delta import Delta, DeltaBuilder
from state.tables.records import SourceWatermark

_FIRST_US = (datetime(1, 1, 1, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
"""The first time that Python and Spark can show."""
_SECOND_US = 1_000_000
_IDLE_STEP = 0.25
"""The watermark of an idle source moves by such a part of its idle time: each move is a commit."""


class _Source:
    """The watermark of one source.

    Attributes:
        at: the watermark; None until a mark is reached.

    Args:
        committed: as of the last commit.
        time_us: gives the time of the epoch that would be made now, in microseconds since 1970.
        now_s: time of the monotonic clock.
    """

    def __init__(
        self,
        event_time: EventTime,
        actor: str,
        committed: SourceWatermark,
        time_us: Callable[[], int],
        now_s: float,
    ) -> None:
        self._lateness_us, self._idle_us = event_time.lateness_us, event_time.idle_us
        self._actor, self._committed, self._time_us = actor, committed, time_us
        # When the last rows came, and the watermark at the mark that is waited for if none come until then.
        self._rows_s = now_s
        self._idle_at: int | None = None
        self.at = committed.at
        # The highest event time of files that were listed up to the mark, and of those listed later.
        self._high = committed.high
        self._later: int | None = None
        # The mark that is waited for, and the epoch in which everything up to it was handed on.
        self._mark: int | None = FIRST_MARK
        self._listed_epoch: int | None = None

    def on_epoch(self, epoch: int, source: str, reports: Mapping[str, CollectReport], now_s: float) -> None:
        """Takes the reports of an epoch, each epoch once and in their order."""
        if any(source in report.event_times for report in reports.values()):
            self._rows_s, self._idle_at = now_s, None
        for report in reports.values():
            for listed, high in report.event_times.get(source, {}).items():
                if self._listed_epoch is not None and listed > self._listed_epoch:
                    self._later = highest(self._later, high)
                else:
                    self._high = highest(self._high, high)
        if self._mark is None:
            return
        if self._listed_epoch is None and reports[self._actor].complete_mark >= self._mark:
            self._listed_epoch = epoch
        if self._listed_epoch is None:
            return
        since = [each.unfinished_since[source] for each in reports.values() if source in each.unfinished_since]
        if min(since, default=epoch + 1) > self._listed_epoch:
            self.at = highest(highest(self.at, self._next), self._idle_at)
            self._high, self._later = highest(self._high, self._later), None
            self._mark = self._listed_epoch = self._idle_at = None

    def needs_mark(self, now_s: float) -> bool:
        """True if a mark would move the watermark: new rows have higher event times, or the source is idle."""
        if self._mark is not None:
            return False
        return highest(self.at, self._next) != self.at or self.idle_in_s(now_s) <= 0.0

    def idle_in_s(self, now_s: float) -> float:
        """Seconds until the source is idle, and the watermark a quarter of the idle time behind; infinity for never."""
        if self._idle_us is None or self._mark is not None:
            return float("inf")
        idle_s = self._rows_s + self._idle_us / _SECOND_US - now_s
        if self.at is None:
            return idle_s
        return max(idle_s, (self.at + self._idle_us * (1 + _IDLE_STEP) - self._time_us()) / _SECOND_US)

    @property
    def _next(self) -> int | None:
        """The watermark when everything is finished up to the mark, unless the present one is higher."""
        return None if self._high is None else max(_FIRST_US, self._high - self._lateness_us)

    def await_mark(self, mark: int, now_s: float) -> None:
        """Waits for a mark, which is made now."""
        if self._idle_us is not None and self.idle_in_s(now_s) <= 0.0:
            self._idle_at = max(_FIRST_US, self._time_us() - self._idle_us)
        self._mark = mark

    def changed(self, source: str, in_force: int | None) -> SourceWatermark | None:
        """The row that the commit of the last epoch must record; None if it is recorded already."""
        now = SourceWatermark(source, in_force, highest(self._high, self._later))
        if now == self._committed:
            return None
        self._committed = now
        return now


class Watermarks:
    """The watermarks of all sources with an event time.

    Args:
        event_times: source → its event time.
        lists: name of each list actor → its source.
        committed: source → its watermark, as of the last commit.
        make_mark: makes a mark, and returns its number.
        time_us: gives the time of the epoch that would be made now, in microseconds since 1970.
        now_s: time of the monotonic clock.
    """

    def __init__(
        self,
        event_times: Mapping[str, EventTime],
        lists: Mapping[str, str],
        committed: Mapping[str, SourceWatermark],
        make_mark: Callable[[], int],
        time_us: Callable[[], int],
        now_s: float,
    ) -> None:
        actors = {source: actor for actor, source in lists.items()}
        self._sources = {
            name: _Source(event_time, actors[name], committed.get(name, SourceWatermark(name)), time_us, now_s)
            for name, event_time in event_times.items()
        }
        self._make_mark = make_mark

    @property
    def latest(self) -> dict[str, int]:
        """Source → its watermark, for the next barrier; a source without one is missing."""
        return {name: each.at for name, each in self._sources.items() if each.at is not None}

    def on_epoch(self, barrier: Barrier, reports: Mapping[str, CollectReport], now_s: float) -> Delta:
        """Takes the reports of an epoch, just before it is committed.

        Args:
            barrier: that ends the epoch.
            reports: actor → its report.
            now_s: time of the monotonic clock.

        Returns:
            The rows that the commit records.
        """
        delta, epoch = DeltaBuilder(), barrier.epoch.prev
        for name, each in self._sources.items():
            each.on_epoch(epoch, name, reports, now_s)
            if (changed := each.changed(name, barrier.watermarks.get(name))) is not None:
                put_watermark(delta, changed)
        return delta.build()

    def idle_in_s(self, now_s: float) -> float:
        """Seconds until a source is idle that is not known as idle, so that a mark is due; infinity for never."""
        return min((each.idle_in_s(now_s) for each in self._sources.values()), default=float("inf"))

    def mark(self, now_s: float) -> int | None:
        """A mark that sources wait for from now on; None if none needs one."""
        waiting = [each for each in self._sources.values() if each.needs_mark(now_s)]
        if not waiting:
            return None
        mark = self._make_mark()
        for each in waiting:
            each.await_mark(mark, now_s)
        return mark

"""The watermarks of the sources: event times before which no row is expected.

Files come in no order of event time, and a backlog is read in the order of a hash.  So the watermark does not follow
the rows that came: it moves when everything is finished that was in the bucket at a mark (see `CaughtUp`), to the
highest event time of the files that were listed up to then, less the lateness of the source.

A mark is made when rows would move the watermark.  A watermark never goes back.  It is in force from a barrier on, and
part of the epoch that this barrier ends: the same commit has it, and the highest event time so far, from which an
attempt after a crash goes on.
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


class _Source:
    """The watermark of one source.

    Attributes:
        at: the watermark; None until a mark is reached.

    Args:
        event_time: of the source.
        actor: its list actor.
        committed: as of the last commit.
    """

    def __init__(self, event_time: EventTime, actor: str, committed: SourceWatermark) -> None:
        self._lateness_us, self._actor, self._committed = event_time.lateness_us, actor, committed
        self.at = committed.at
        # The highest event time of files that were listed up to the mark, and of those listed later.
        self._high = committed.high
        self._later: int | None = None
        # The mark that is waited for, and the epoch in which everything up to it was handed on.
        self._mark: int | None = FIRST_MARK
        self._listed_epoch: int | None = None

    def on_epoch(self, epoch: int, source: str, reports: Mapping[str, CollectReport]) -> None:
        """Takes the reports of an epoch, each epoch once and in their order."""
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
            self.at = highest(self.at, self._next)
            self._high, self._later = highest(self._high, self._later), None
            self._mark = self._listed_epoch = None

    @property
    def needs_mark(self) -> bool:
        """Whether rows have come that move the watermark when everything is finished up to a mark."""
        return self._mark is None and highest(self.at, self._next) != self.at

    @property
    def _next(self) -> int | None:
        """The watermark when everything is finished up to the mark, unless the present one is higher."""
        return None if self._high is None else max(_FIRST_US, self._high - self._lateness_us)

    def await_mark(self, mark: int) -> None:
        """Waits for a mark."""
        self._mark = mark

    def changed(self, source: str, in_force: int | None) -> SourceWatermark | None:
        """What the commit of the last epoch has to record; None if that is recorded."""
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
    """

    def __init__(
        self,
        event_times: Mapping[str, EventTime],
        lists: Mapping[str, str],
        committed: Mapping[str, SourceWatermark],
        make_mark: Callable[[], int],
    ) -> None:
        actors = {source: actor for actor, source in lists.items()}
        self._sources = {
            name: _Source(event_time, actors[name], committed.get(name, SourceWatermark(name)))
            for name, event_time in event_times.items()
        }
        self._make_mark = make_mark

    @property
    def latest(self) -> dict[str, int]:
        """Source → its watermark, for the next barrier; a source without one is missing."""
        return {name: each.at for name, each in self._sources.items() if each.at is not None}

    def on_epoch(self, barrier: Barrier, reports: Mapping[str, CollectReport]) -> Delta:
        """Takes the reports of an epoch, just before it is committed.

        Returns:
            What the commit records.
        """
        delta, epoch = DeltaBuilder(), barrier.epoch.prev
        for name, each in self._sources.items():
            each.on_epoch(epoch, name, reports)
            if (changed := each.changed(name, barrier.watermarks.get(name))) is not None:
                put_watermark(delta, changed)
        return delta.build()

    def mark(self) -> int | None:
        """A mark that sources wait for from now on; None if none needs one."""
        waiting = [each for each in self._sources.values() if each.needs_mark]
        if not waiting:
            return None
        mark = self._make_mark()
        for each in waiting:
            each.await_mark(mark)
        return mark

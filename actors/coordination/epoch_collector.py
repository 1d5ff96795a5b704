"""The epochs in flight with the reports of their actors; complete epochs leave strictly in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from actors.coordination.epoch_times import EpochTimes
from actors.protocol.barrier import Barrier, Update
from actors.protocol.reports import CollectReport
from actors.protocol.run_state import EpochInFlight, EpochPhase
from state.errors import ProtocolError
from state.tables.delta import Delta
from state.tables.expectations import ViewExpectations
from state.tables.records import CatalogView, EpochCounts, EpochSeconds, ViewVersion


@dataclass(frozen=True)
class CollectedEpoch:
    """A complete epoch: the merged reports of all its actors.

    Args:
        barrier: the barrier that ends the epoch.
        views: the views that the materializer has written, with their new versions.
        changed_views: the views of the catalog that begin or change with the epoch.
        dropped: the names of the views that end with it.
        expectations: view → its expectations if they change with it; None if they were removed.
        reports: actor → its report.
    """

    barrier: Barrier
    delta: Delta
    counts: EpochCounts
    seconds: EpochSeconds
    times: EpochTimes
    views: Mapping[str, ViewVersion]
    changed_views: tuple[CatalogView, ...]
    dropped: tuple[str, ...]
    expectations: Mapping[str, ViewExpectations | None]
    reports: Mapping[str, CollectReport]

    @property
    def epoch(self) -> int:
        return self.barrier.epoch.prev

    def views_after(self, before: Mapping[str, ViewVersion]) -> dict[str, ViewVersion]:
        """The version of every view from this epoch on.

        Args:
            before: the versions as of the epoch before.
        """
        return {name: view for name, view in before.items() if name not in self.dropped} | dict(self.views)


@dataclass(frozen=True)
class Outstanding:
    """Reports that have not come for an epoch.

    Args:
        actors: the actors that have not reported, in the order of the flow.
        injected_s: the time of its barrier, by the monotonic clock.
    """

    epoch: int
    actors: tuple[str, ...]
    injected_s: float


@dataclass
class _Open:
    barrier: Barrier
    actors: tuple[str, ...]
    reports: dict[str, CollectReport]
    opened_s: float
    injected_s: float
    collected_s: dict[str, float]
    aligned_s: float = 0.0
    materialized_s: float = 0.0

    @property
    def phase(self) -> EpochPhase:
        if not self.aligned_s:
            return "align"
        return "collect" if self.materialized_s else "spark"


class EpochCollector:
    """The barriers in flight and the reports that came for them.

    Args:
        actors: the actors that report, in the order of the flow; a barrier can replace the fetch actors.
        merger, materializer: the two among them whose reports end a phase.
        now_s: time of the monotonic clock.
    """

    def __init__(self, *, actors: Iterable[str], merger: str, materializer: str, now_s: float) -> None:
        self._actors = tuple(actors)
        self._merger, self._materializer = merger, materializer
        self._open: deque[_Open] = deque()
        self._opened_s = now_s

    def on_barrier(self, barrier: Barrier, now_s: float) -> None:
        """A barrier was injected."""
        self._open.append(_Open(barrier, self._actors, {}, self._opened_s, injected_s=now_s, collected_s={}))
        self._opened_s = now_s
        if isinstance(barrier.mutation, Update):
            # Fetch actors that begin here seal nothing at this barrier.
            others = [name for name in self._actors if name not in barrier.mutation.before.owners]
            behind = others.index(self._merger)
            self._actors = (*others[:behind], *barrier.mutation.after.owners, *others[behind:])

    def on_collect(self, report: CollectReport, now_s: float) -> None:
        """An actor has finished an epoch.

        Raises:
            ProtocolError: the report is not expected.
        """
        epoch = next((each for each in self._open if each.barrier.epoch.prev == report.epoch), None)
        if epoch is None or report.actor not in epoch.actors or report.actor in epoch.reports:
            raise ProtocolError(f"{report.actor} collected epoch {report.epoch}, which is not expected of it")
        epoch.reports[report.actor] = report
        if report.actor == self._merger:
            epoch.aligned_s = now_s
        elif report.actor == self._materializer:
            epoch.materialized_s = now_s
            return  # its time is the phase `spark`; `collected_s` has the other actors
        epoch.collected_s[report.actor] = now_s - epoch.injected_s

    def in_flight(self) -> list[EpochInFlight]:
        """The epochs that are not complete, the oldest first, each with its phase."""
        return [EpochInFlight(each.barrier.epoch.prev, each.phase) for each in self._open]

    def outstanding(self) -> Outstanding | None:
        """The oldest epoch for which a report other than the materializer's has not come."""
        for epoch in self._open:
            missing = tuple(name for name in epoch.actors if name not in epoch.reports and name != self._materializer)
            if missing:
                return Outstanding(epoch.barrier.epoch.prev, missing, epoch.injected_s)
        return None

    def take_complete(self, now_s: float) -> CollectedEpoch | None:
        """The oldest epoch, if all its reports have come."""
        if not self._open or len(self._open[0].reports) < len(self._open[0].actors):
            return None
        epoch = self._open.popleft()
        # In a fixed order: the commit must not depend on the order in which the reports have come.
        reports = [epoch.reports[actor] for actor in sorted(epoch.reports)]
        materialized = epoch.reports[self._materializer]
        return CollectedEpoch(
            barrier=epoch.barrier,
            delta=Delta.merge([report.delta for report in reports]),
            counts=EpochCounts(
                files=sum(report.counts.files for report in reports),
                rows=sum(report.counts.rows for report in reports),
                bytes=sum(report.counts.bytes for report in reports),
                requests=sum(report.counts.requests for report in reports),
            ),
            seconds=EpochSeconds(
                fetch=epoch.injected_s - epoch.opened_s,
                align=epoch.aligned_s - epoch.injected_s,
                spark=epoch.materialized_s - epoch.aligned_s,
                collect=now_s - epoch.injected_s,
            ),
            times=EpochTimes(
                opened_s=epoch.opened_s - epoch.injected_s,
                aligned_s=epoch.aligned_s - epoch.injected_s,
                materialized_s=epoch.materialized_s - epoch.injected_s,
                collected_s=epoch.collected_s,
                complete_s=now_s - epoch.injected_s,
                work_s=materialized.work_s,
                work=materialized.work,
                planned_queries=materialized.planned_queries,
            ),
            views=materialized.views or {},
            changed_views=materialized.changed_views,
            dropped=materialized.dropped,
            expectations=materialized.expectations,
            reports=epoch.reports,
        )

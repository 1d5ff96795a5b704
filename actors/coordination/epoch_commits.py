"""Commits of the complete epochs, one after the other, each with the changes of the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from actors.coordination.epoch_collector import CollectedEpoch
from actors.coordination.epoch_times import youngest_files
from actors.coordination.instructions import Commit, CoordinateInstruction, ReportUnmatched
from actors.protocol.barrier import BarrierKind
from actors.protocol.run_state import CommittedEpoch, EpochInFlight
from actors.recovery.catalog_changes import CatalogChanges
from state.errors import ProtocolError
from state.tables.delta import Delta
from state.tables.epoch_trace import EpochTrace
from state.tables.expectations import published_after
from state.tables.records import CatalogView, EpochRecord, ViewVersion


@dataclass(frozen=True)
class EndedCommit:
    """A commit that has succeeded.

    Args:
        epoch: the epoch as it was collected, with the changes of the catalog.
        committed: the entry for the published state.
        changed: the views that have another version than before.
    """

    epoch: CollectedEpoch
    committed: CommittedEpoch
    changed: Mapping[str, ViewVersion]


class EpochCommits:
    """The commit under way, at most one, and the views as of the last commit.

    Args:
        catalog: changes that the next commit carries.
        views: name → version, as of the last commit.
        epoch: the epoch of the last commit.
    """

    def __init__(self, catalog: CatalogChanges, views: Mapping[str, ViewVersion], epoch: int) -> None:
        self._catalog, self._epoch = catalog, epoch
        self._views = dict(views)
        self._under_way: CollectedEpoch | None = None
        self._since_s = 0.0
        self._commit_before: tuple[int, float] | None = None

    @property
    def views(self) -> Mapping[str, ViewVersion]:
        """Name → version, as of the last commit."""
        return self._views

    @property
    def is_under_way(self) -> bool:
        """True if a commit is asked for and not done."""
        return self._under_way is not None

    def in_flight(self) -> list[EpochInFlight]:
        """The epoch that is being committed."""
        return [] if self._under_way is None else [EpochInFlight(self._under_way.epoch, "commit")]

    def begin(self, epoch: CollectedEpoch, now_s: float, watermarks: Delta = Delta()) -> list[CoordinateInstruction]:
        """Asks for the commit of an epoch, unless it has changed nothing.

        Args:
            now_s: time of the monotonic clock.
            watermarks: the watermarks that it records.

        Returns:
            News of columns that are left out, and the commit if one is under way now.
        """
        if epoch.barrier.kind is BarrierKind.INITIAL:
            return []  # no message of this attempt precedes it
        unmatched = [each for report in epoch.reports.values() for each in report.unmatched]
        new = self._catalog.put_unmatched(unmatched)
        instructions: list[CoordinateInstruction] = [ReportUnmatched(each) for each in new]
        gate = self._catalog.gate
        self._catalog.expect(epoch.expectations)
        published = published_after(gate, self._catalog.gate, last=self._epoch, epoch=epoch.epoch)
        catalog = self._catalog.take_delta(map(self._standing, epoch.changed_views), epoch.dropped)
        epoch = replace(epoch, delta=Delta.merge([epoch.delta, catalog, watermarks]))
        views = epoch.views_after(self._views)
        if not epoch.delta.is_empty or views != self._views:
            self._under_way, self._since_s = epoch, now_s
            corrected = tuple(each for report in epoch.reports.values() for each in report.corrected)
            times = epoch.times
            trace = EpochTrace.of(times.spans(), self._commit_before, times.planned_queries).to_json()
            instructions.append(
                Commit(epoch.epoch, epoch.delta, views, epoch.counts, epoch.seconds, corrected, trace, published)
            )
        return instructions

    def end(self, record: EpochRecord, now_s: float) -> EndedCommit:
        """The commit under way has succeeded.

        Args:
            record: the epoch's row in the store.
            now_s: time of the monotonic clock.

        Raises:
            ProtocolError: no commit is under way.
        """
        if self._under_way is None:
            raise ProtocolError(f"epoch {record.epoch} was committed without a request")
        epoch, self._under_way = self._under_way, None
        commit_s = now_s - self._since_s
        self._commit_before = (record.epoch, commit_s)
        changed = {name: view for name, view in epoch.views.items() if self._views.get(name) != view}
        self._views, self._epoch = epoch.views_after(self._views), record.epoch
        committed = CommittedEpoch(
            epoch=record.epoch,
            committed_at=record.committed_at,
            counts=record.counts,
            seconds=record.seconds,
            commit_s=commit_s,
            freshness_s={
                source: max(0.0, (record.committed_at - written_at).total_seconds())
                for source, written_at in youngest_files(epoch.delta).items()
            },
        )
        return EndedCommit(epoch, committed, changed)

    def _standing(self, view: CatalogView) -> CatalogView:
        """The row of a view in the catalog.  A view stops at a committed epoch.

        The materializer counts epochs, too, that are not committed, since they have changed nothing.
        """
        if view.stopped_epoch is None:
            return view
        known = self._catalog.views.get(view.name)
        if known is not None and known.created_epoch == view.created_epoch and known.stopped_epoch is not None:
            return replace(view, stopped_epoch=known.stopped_epoch)
        return replace(view, stopped_epoch=min(view.stopped_epoch, self._epoch))

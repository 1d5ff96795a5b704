"""The append and aggregate views that readers see: each epoch's rows go into them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from actors.protocol.blocks import Block
from spark_bridge.changes.change_set import ChangeLog, ChangeSet
from spark_bridge.changes.corrections import CorrectedRows
from spark_bridge.changes.view import Guard, View, no_guard
from spark_bridge.datasets.index_audit import IndexAudit
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.session.spark_errors import ends_run
from spark_bridge.ingest.epoch_rows import EpochRows, LateRows
from spark_bridge.ingest.followed_watermarks import follows_watermarks, is_behind
from spark_bridge.maintenance.append_view import AppendView
from spark_bridge.maintenance.backfills import lacks_columns
from spark_bridge.maintenance.expiring_rows import AgingRows, ExpiringRows
from spark_bridge.maintenance.shared_views import SharedViews
from spark_bridge.operators.group.aggregate_view import AggregateView
from spark_bridge.operators.group.closing_view import ClosingSessions, ClosingView
from spark_bridge.plans.view_plan import ViewPlan
from spark_bridge.work_cost import count
from state.errors import RunFailedError, ViewFailedError
from state.location import Location
from state.tables.epoch_trace import WorkCost
from state.tables.records import ViewVersion
from state.tables.stored_rows import declared_name


class IncrementalViews:
    """Holds the plans of these views, and keeps each view open once it was used.

    Args:
        root: the directory of the pipeline.
    """

    def __init__(self, catalyst: Catalyst, root: Location) -> None:
        self._catalyst, self._root = catalyst, root
        self._open: dict[str, View] = {}
        self._backfilled: set[str] = set()
        self._failed: dict[str, EpochRows] = {}
        self._read: frozenset[str] = frozenset()
        self.plans: dict[str, ViewPlan] = {}

    @property
    def num_rows(self) -> dict[str, int | None]:
        """Name → number of rows of each view; None for a view that is not open."""
        return {name: self._open[name].num_rows if name in self._open else None for name in self.plans}

    def make(self, plan: ViewPlan) -> View:
        """The maintenance of an append or aggregate view, neither created nor open."""
        if plan.expiry is not None:
            return (AgingRows if plan.expiry.ages else ExpiringRows)(self._catalyst, self._root, plan)
        if plan.closing is not None:
            kind = ClosingView if plan.closing.session_time is None else ClosingSessions
            return kind(self._catalyst, self._root, plan)
        return (AppendView if plan.view_class == "append" else AggregateView)(self._catalyst, self._root, plan)

    def declare(self, plans: Mapping[str, ViewPlan], shared: SharedViews, read: Collection[str] = ()) -> None:
        """Replaces the plans.  A view with another plan is opened again.

        Args:
            plans: name → plan.
            shared: the views that have the rows of others; one that takes the place of another one has its datasets.
            read: the views whose changes other views follow.
        """
        before = {name: shared.before(name) for name in plans}
        self._open = {
            name: self._open[old]
            for name, old in before.items()
            if old in self._open and (old != name or plans[name] is self.plans.get(name))
        }
        self.plans, self._read = dict(plans), frozenset(read)
        for name, view in self._open.items():
            self._keep_changes(name, view)

    def open(self, versions: Mapping[str, ViewVersion]) -> None:
        """Continues from recorded versions.

        Raises:
            StorageError: a version cannot be opened.
        """
        self._open = {}
        for name in self.plans:
            if name in versions:
                self._opened(versions[name])

    def add(self, plan: ViewPlan, view: View) -> None:
        """Adds a backfill that is complete."""
        self.plans[plan.name], self._open[plan.name] = plan, view
        self._keep_changes(plan.name, view)
        self._backfilled.add(plan.name)

    def drop(self, name: str) -> None:
        """Forgets a view, if it is one of these."""
        for each in (self.plans, self._open, self._failed):
            each.pop(name, None)

    def require_columns(self, blocks: Mapping[str, Sequence[Block]]) -> None:
        """Refuses rows that were read before a view needed further columns of them.

        Args:
            blocks: source → the epoch's new rows.

        Raises:
            RunFailedError: naming the view; the next attempt reads the rows again.
        """
        for name in self._backfilled:
            if name in self.plans and lacks_columns(self.plans[name], blocks):
                raise RunFailedError(
                    f"view {declared_name(name)!r}: rows were read before it was added, without columns that it uses; "
                    "they are read again"
                )

    def work(
        self,
        epoch: int,
        rows: EpochRows,
        sources: Collection[str],
        versions: Mapping[str, ViewVersion],
        waiting: Collection[str],
    ) -> dict[str, Callable[[], ViewVersion]]:
        """Name → the work on each view that the epoch creates or changes.

        Args:
            sources: the sources that have new rows.
            versions: the recorded versions; a view without one is created.
            waiting: the declared views that lack rows: what they read keeps its rows for them.
        """
        untimed, work = replace(rows, watermarks={}), dict[str, Callable[[], ViewVersion]]()
        for name, plan in self.plans.items():
            given, version = rows if follows_watermarks(plan, waiting) else untimed, versions.get(name)
            is_touched = version is None or not {*sources}.isdisjoint(plan.sources)
            if is_touched or is_behind(plan, version, given.watermarks):
                work[name] = partial(self._apply, epoch, plan, given, version)
        return work

    def has_closing(
        self, versions: Mapping[str, ViewVersion], watermarks: Mapping[str, int], waiting: Collection[str]
    ) -> bool:
        """Whether windows can be closed, or rows expire, by watermarks that passed when nothing was done.

        Args:
            watermarks: source → its watermark.
            waiting: see `work`.
        """
        return any(
            is_behind(plan, versions[name], watermarks)
            for name, plan in self.plans.items()
            if name in versions and follows_watermarks(plan, waiting)
        )

    @property
    def closing(self) -> dict[str, ClosingView]:
        """Name → view, of the open ones that show a group when its window closes."""
        return {name: view for name, view in self._open.items() if isinstance(view, ClosingView)}

    @property
    def num_late(self) -> dict[str, int]:
        """Declared view → the number of its late rows, of the open ones that tell them apart."""
        counts: Counter[str] = Counter()
        for name, view in self._with_late.items():
            counts[declared_name(name)] += view.num_late
        return counts

    def take_late(self) -> list[LateRows]:
        """The late rows of the last epoch."""
        return [late for view in self._with_late.values() for late in view.take_late()]

    @property
    def _with_late(self) -> dict[str, ClosingView | ExpiringRows]:
        return {name: view for name, view in self._open.items() if isinstance(view, ClosingView | ExpiringRows)}

    def correction_work(
        self, rows: CorrectedRows, versions: Mapping[str, ViewVersion]
    ) -> dict[str, Callable[[], ViewVersion]]:
        """Name → the work on each view that reads a corrected source, or to which new rows could not be applied."""
        failed, self._failed = self._failed, {}
        return {
            name: partial(self._correct, rows, versions[name], failed.get(name))
            for name, plan in self.plans.items()
            if name in failed or not rows.sources.isdisjoint(plan.sources)
        }

    @property
    def has_failed(self) -> bool:
        """True if the new rows of an epoch could not be applied to a view, which `correction_work` computes again."""
        return bool(self._failed)

    def take_changes(self, guard: Guard = no_guard) -> tuple[dict[str, ChangeSet], list[ViewFailedError]]:
        """The changes of the views since the last call.

        Args:
            guard: around the work on a view.

        Returns:
            Name → changes, of the views whose changes others follow; and the errors of views.
        """
        taken, failed = dict[str, ChangeSet](), list[ViewFailedError]()
        for name, view in self._open.items():
            try:
                with guard(name):
                    changes = view.changes.take()
            except ViewFailedError as error:
                failed.append(error)
                continue
            if changes is not None:
                taken[name] = changes
        return taken, failed

    def log(self, version: ViewVersion) -> ChangeLog:
        """The changes of a view, of which this is the version."""
        return self._opened(version).changes

    def tidy(self, audit: IndexAudit | None) -> bool:
        """See `View.tidy`."""
        return any(view.tidy(audit) for view in self._open.values())

    def _apply(self, epoch: int, plan: ViewPlan, rows: EpochRows, version: ViewVersion | None) -> ViewVersion:
        count(WorkCost(given=sum(rows.counts.get(source, 0) for source in plan.columns)))
        if version is not None:
            view = self._opened(version)
            applied = self._tried(plan.name, view, rows, lambda: view.apply(rows))
            return version if applied is None else replace(applied, name=plan.name)
        view = self.make(plan)
        created = self._tried(plan.name, view, rows, lambda: view.create(epoch, rows))
        if created is None:
            created = view.create(epoch, EpochRows({}, 0, rows.parallelism, rows.time_us))
        self._open[plan.name] = view
        self._keep_changes(plan.name, view)
        return created

    def _tried(self, name: str, view: View, rows: EpochRows, work: Callable[[], ViewVersion]) -> ViewVersion | None:
        """The result of the work; None if it has failed and the end of the epoch computes its groups again."""
        try:
            return work()
        except (PySparkException, Py4JError) as error:
            if not (type(view) is AggregateView and view.computes_again) or ends_run(error):
                raise
            self._failed[name] = rows
            return None

    def _correct(self, rows: CorrectedRows, version: ViewVersion, failed: EpochRows | None) -> ViewVersion:
        view = self._opened(version)
        if failed is None:
            return replace(view.correct(rows), name=version.name)
        assert isinstance(view, AggregateView), "others are not computed again"
        return replace(view.apply_again(failed, rows), name=version.name)

    def _opened(self, version: ViewVersion) -> View:
        name = version.name
        if name not in self._open:
            view = self.make(self.plans[name])
            view.open(version)
            self._open[name] = view
            self._keep_changes(name, view)
        return self._open[name]

    def _keep_changes(self, name: str, view: View) -> None:
        view.changes.is_kept = name in self._read

"""Runs every view over an epoch's new rows and writes its new version."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from actors.protocol.blocks import Block, Correction
from spark_bridge.analysis.correctable import require_correctable
from spark_bridge.analysis.declaration import Declaration
from spark_bridge.analysis.view_definition import ViewDefinition
from spark_bridge.analysis.view_plan import APPEND, FULL, ViewPlan
from spark_bridge.analysis.view_planner import PlannedView, ViewPlanner
from spark_bridge.catalyst.catalyst import Catalyst
from spark_bridge.catalyst.epoch_timestamps import epoch_time_us
from spark_bridge.datasets.stored_rows import StoredRows
from spark_bridge.hand_over.epoch_rows import EpochRows, EpochViews
from spark_bridge.hand_over.history import OpenHistory, PutBlock, block_of_table, no_history
from spark_bridge.hand_over.row_hand_over import RowHandOver
from spark_bridge.session.spark_jobs import SparkJobs
from spark_bridge.views.aggregate_view import AggregateView
from spark_bridge.views.append_view import AppendView
from spark_bridge.views.backfill import Backfill
from spark_bridge.views.backfills import Backfills, is_narrow
from spark_bridge.views.corrections import CorrectedRows, corrected_sources
from spark_bridge.views.full_view import FullView
from spark_bridge.views.full_views import FullViews
from spark_bridge.views.view import ShownView, View
from spark_bridge.work_times import WorkTimes
from state.clock import Clock, SystemClock
from state.epoch import epoch_time
from state.errors import RunFailedError, ViewError
from state.location import Location
from state.tables.records import CatalogView, ViewVersion
from state.tables.stored_rows import base_name, is_stored_rows, next_name, source_of_rows, stored_rows_name

_ROWS = "over the rows of an epoch"
_CORRECTION = "over the rows of corrected files"
_AS_A_WHOLE = "over all rows"
_HISTORY = "over rows that were ingested before"
_HAND_OVER = "hand-over to Spark"
_CORRECTED = ", corrected files"


class Materializer:
    """Keeps the declared views up to date, in the process that holds the SparkSession.

    Args:
        spark: the session.
        root: where the pipeline writes.
        clock: measures how long an epoch takes.
        materialized: the sources whose rows are stored.
        replacing: those of them whose changed files replace what was read of them.
        open_history: gives a backfill what was ingested before it.
        put_block: makes a block of rows that this process has.
    """

    def __init__(
        self,
        spark: SparkSession,
        root: Location,
        clock: Clock | None = None,
        *,
        materialized: Collection[str] = (),
        replacing: Collection[str] = (),
        open_history: OpenHistory = no_history,
        put_block: PutBlock = block_of_table,
    ) -> None:
        self._spark = spark
        self._catalyst = Catalyst(spark)
        self._root = root
        self._materialized, self._replacing = materialized, replacing
        self._clock = clock or SystemClock()
        self._planned: Mapping[str, PlannedView] = {}
        self._plans: dict[str, ViewPlan] = {}
        self._versions: dict[str, ViewVersion] = {}
        self._begun: dict[str, ViewVersion] = {}
        self._views: dict[str, View] = {}
        self._stored: dict[str, StoredRows] = {}
        self._new: set[str] = set()
        self._were_late: set[str] = set()
        self._dropped: set[str] = set()
        self._ingested: set[str] = set()
        self._rows_epoch = 0
        self._jobs = SparkJobs(spark)
        self._planner = ViewPlanner(spark, self._jobs, materialized)
        self._rows = RowHandOver(spark, self._jobs, materialized, put_block)
        self._late = Backfills(self._made, open_history, self._rows.piece, self._clock)
        self._full = FullViews(lambda name, refresh: self._jobs.run("view", _AS_A_WHOLE, {name: refresh})[name])

    def declare(
        self,
        definitions: Sequence[ViewDefinition],
        schemas: Mapping[str, pa.Schema | None],
        known: Mapping[str, CatalogView],
    ) -> Declaration:
        """Analyses the declared views.  Call it again when a source's schema becomes known, or a view comes or goes.

        Nothing changes when it raises.

        Args:
            definitions: all declared views.
            schemas: of all declared sources; None while a schema is not known.
            known: the views of the catalog.

        Raises:
            ViewError: two views of one name, or a view that cannot be built.
            NotIncrementalError: a view cannot be maintained epoch by epoch.
            DefinitionChangedError: the catalog has another view of the name.
            SparkLostError: the Spark application is gone.
        """
        by_name = {definition.name: definition for definition in definitions}
        for definition in definitions:
            if by_name[definition.name] is not definition:
                raise ViewError(f"view {definition.name!r} is declared twice; rename one of them")
        planned = self._planner.planned(by_name, schemas, known)
        plans = {name: each.plan for name, each in planned.items()}
        declaration = Declaration.of(by_name, plans, known, self._ingested)
        going_on = {name: version for name, version in self._versions.items() if name not in declaration.late}
        require_correctable(self._root, plans.values(), going_on, self._materialized, self._replacing)
        for name in [name for name in self._views if plans.get(name) is not self._plans.get(name)]:
            del self._views[name]
        self._planned, self._rows.schemas = planned, dict(schemas)
        full = {name: plan for name, plan in plans.items() if plan.view_class == FULL}
        # What a view replaces stays as it is, and is shown, until it is replaced.
        late = {name: plans[name] for name in declaration.late if name not in full}
        self._plans = {name: plan for name, plan in plans.items() if name not in late and name not in full}
        self._new = {name for name in declaration.new if name not in full}
        self._drop(declaration.abandoned)
        self._late.declare(by_name, late, self._begun)
        self._declare_full(full, {*declaration.new, *declaration.late})
        self._begun = {}
        return declaration

    def open(self, views: Mapping[str, ViewVersion], epoch: int = 0, ingested: Set[str] = frozenset()) -> None:
        """Goes on from these versions, and from nothing else: what was written since is not built upon.

        Args:
            views: as the last epoch records them.
            epoch: that one.
            ingested: the sources of which rows were ingested by then.

        Raises:
            StorageError: a version cannot be opened.
        """
        self._versions = {name: view for name, view in views.items() if view.pinned_epoch is None}
        self._begun = {name: view for name, view in views.items() if view.pinned_epoch is not None}
        self._views, self._stored = {}, {}
        self._rows_epoch = epoch
        self._ingested = {*ingested}
        for name in self._plans:
            if name in self._versions:
                self._opened(name)

    def drop(self, name: str) -> None:
        """The next epoch ends a view, be it maintained, frozen or on its way.  `declare` it no more."""
        self._late.drop(name)
        self._full.drop(name)
        self._plans.pop(name, None)
        self._views.pop(name, None)
        self._drop([name, next_name(name)])

    def run_epoch(
        self, epoch: int, blocks: Mapping[str, Sequence[Block]], corrections: Sequence[Correction] = ()
    ) -> EpochViews:
        """Brings every view up to date with the epoch's rows, and creates those that are declared and not there.

        A view without new rows keeps its version.  When one view fails the others are finished first, so that nothing
        goes on behind the caller's back.

        Args:
            epoch: its number names the datasets of the views that it creates.
            blocks: the new rows of each source; the references are held until all views are written.
            corrections: files whose rows are replaced or taken out, behind the new rows.

        Raises:
            CommitRefusedError: somebody else has written to a view.
            CommitUnknownError: the outcome of a view's commit is not known.
            SparkLostError: the Spark application is gone.
            RunFailedError: Spark failed, or rows came without columns that a view needs; the message names the view.
        """
        times = WorkTimes(self._clock)
        with_rows = {source: filled for source, each in blocks.items() if (filled := [b for b in each if b.rows])}
        for name in self._were_late:
            if name in self._plans and is_narrow(self._plans[name], with_rows):
                raise RunFailedError(
                    f"view {name!r}: rows were read before it was added, without columns that it uses; "
                    "they are read again"
                )
        read = {source for plan in self._incremental for source in plan.sources}
        with times.timed(_HAND_OVER):
            rows = self._rows.epoch(epoch, with_rows, read, _ROWS)
        due = [
            plan
            for name, plan in self._plans.items()
            if name not in self._versions or any(source in with_rows for source in plan.sources)
        ]
        work: dict[str, Callable[[], ViewVersion]] = {
            plan.name: partial(self._bring_up_to_date, epoch, plan, rows) for plan in due
        }
        for source, each in with_rows.items():
            if stored := [block.stored for block in each if block.stored is not None]:
                work[stored_rows_name(source)] = partial(self._stored_rows(source).apply, stored)
        full_work = self._full.create_work(epoch)
        late_work = self._late.work(epoch, rows, with_rows)
        begun = [each for each in self._late if each.version is None and next_name(each.plan.name) in late_work]
        versions = self._jobs.run("view", _ROWS, times.timing("", {**work, **full_work, **late_work}))
        created = [
            self._planned[plan.name].catalog_view(plan.name, epoch) for plan in due if plan.name not in self._versions
        ]
        created += [self._planned[each.plan.name].catalog_view(next_name(each.plan.name), epoch) for each in begun]
        created += [self._planned[base_name(name)].catalog_view(name, epoch) for name in full_work]
        self._versions.update({name: versions[name] for name in work})
        corrected = self._correct(epoch, corrections, times)
        restarted = self._late.restart(corrected)
        created = [each for each in created if each.name not in restarted]
        self._drop(self._late.take_restarted())
        for complete in self._late.take_complete():
            created.append(self._shown(complete, epoch))
        created += self._take_recomputed(epoch)
        dropped = self._take_dropped()
        self._ingested.update(with_rows)
        if with_rows or corrected:
            self._rows_epoch = epoch
        self._full.on_rows(corrected.union(with_rows))
        self._begin_recomputation()
        views = {**self._versions, **self._late.recorded(), **self._full.recorded(epoch)}
        return EpochViews(views, tuple(created), dropped, times.spans)

    @property
    def has_news(self) -> bool:
        """Whether the next epoch creates, shows, replaces or ends a view, whatever rows it has."""
        late = any(each.version is None or each.is_complete for each in self._late)
        return bool(self._new or self._dropped) or late or self._full.has_news

    @property
    def behind(self) -> frozenset[str]:
        """The recomputed views that lack rows, but for those that wait for their interval to be over."""
        return self._full.behind

    def shown(self) -> list[ShownView]:
        """Every view that epochs show, as far as it is."""
        views: dict[str, View | FullView | None] = {name: self._views.get(name) for name in self._plans}
        views |= {plan.name: self._full.get(plan.name) for plan in self._full.plans}
        return [
            ShownView(
                name,
                plan.view_class,
                None if view is None else view.num_rows,
                self._seconds_behind(self._versions[name]),
            )
            for name, view in views.items()
            if name in self._versions and (plan := self._planned[name].plan)
        ]

    def _seconds_behind(self, version: ViewVersion) -> float:
        if version.reflects_epoch is None or version.reflects_epoch >= self._rows_epoch:
            return 0.0
        return (epoch_time(self._rows_epoch) - epoch_time(version.reflects_epoch)).total_seconds()

    @property
    def backfilling(self) -> dict[str, float]:
        """How much of what was ingested before it each backfill has, from 0 to 1."""
        return self._late.fractions

    @property
    def blocked(self) -> dict[str, tuple[str, ...]]:
        """Backfills that cannot become complete → the files that they miss."""
        return self._late.blocked

    def backfill(self) -> bool:
        """Brings one backfill a piece further: call it between two epochs.  Returns whether the next has to record it.

        Raises:
            As `run_epoch`, and StorageError: what was ingested cannot be read.
        """
        self._begin_recomputation()
        due = self._late.next_due()
        if due is None:
            return False
        piece = {due.plan.name: partial(self._late.take_piece, due)}
        return self._jobs.run("view", _HISTORY, piece)[due.plan.name]

    def columns(self) -> dict[str, tuple[str, ...]]:
        """Source → the columns that the views use which are planned so far."""
        return self._rows.columns([*self._incremental, *self._full.plans])

    def tidy(self) -> None:
        """Does at most one bounded task that keeps the views' datasets fast: call it between two epochs.

        It makes a version that no epoch names, and that the next epoch with rows builds upon.

        Raises:
            CommitRefusedError, CommitUnknownError: as `run_epoch`; recover in the same way.
        """
        maintained: list[View | StoredRows | Backfills] = [*self._views.values(), *self._stored.values(), self._late]
        for each in maintained:
            if each.tidy():
                return

    def close(self) -> None:
        """Ends the threads; the session is the caller's."""
        self._late.close()
        self._full.close()
        self._jobs.close()

    # -- one epoch -------------------------------------------------------------------------------------------------

    @property
    def _incremental(self) -> list[ViewPlan]:
        """Everything that is computed from the rows of an epoch."""
        return [*self._plans.values(), *(each.plan for each in self._late)]

    def _made(self, plan: ViewPlan) -> View:
        return (AppendView if plan.view_class == APPEND else AggregateView)(self._catalyst, self._root, plan)

    def _opened(self, name: str) -> View:
        if name not in self._views:
            view = self._made(self._plans[name])
            view.open(self._versions[name])
            self._views[name] = view
        return self._views[name]

    def _bring_up_to_date(self, epoch: int, plan: ViewPlan, rows: EpochRows) -> ViewVersion:
        if plan.name in self._versions:
            return self._opened(plan.name).apply(rows)
        view = self._made(plan)
        version = view.create(epoch, rows)
        self._views[plan.name] = view
        return version

    def _stored_rows(self, source: str) -> StoredRows:
        if source not in self._stored:
            rows = self._stored[source] = StoredRows(self._root, source)
            version = self._versions.get(stored_rows_name(source))
            if version is not None:
                rows.open(version)
        return self._stored[source]

    def _correct(self, epoch: int, corrections: Sequence[Correction], times: WorkTimes) -> frozenset[str]:
        """Puts files into the views in place of what these hold of them.  Returns the sources of the files."""
        sources = corrected_sources(corrections)
        if not sources:
            return frozenset()
        before = self._stored_versions()
        for source, each in sources.items():
            stored = self._stored_rows(source).correct(each.files.keys(), each.blocks, epoch)
            if stored is not None:
                self._versions[stored.name] = stored
        rows = CorrectedRows(
            self._spark,
            self._root,
            self._rows.schemas,
            sources,
            before,
            self._stored_versions(),
            self._rows.parallelism,
            epoch_time_us(epoch),
        )
        work = {
            name: partial(self._opened(name).correct, rows)
            for name, plan in self._plans.items()
            if not sources.keys().isdisjoint(plan.sources)
        }
        self._versions.update(self._jobs.run("view", _CORRECTION, times.timing(_CORRECTED, work)))
        return frozenset(sources)

    # -- views that come and go ------------------------------------------------------------------------------------

    def _shown(self, complete: Backfill, epoch: int) -> CatalogView:
        """From this epoch on a backfill is one like all others."""
        name = complete.plan.name
        complete.close()
        self._plans[name], self._views[name] = complete.plan, complete.view
        self._versions[name] = complete.finished()
        self._were_late.add(name)
        self._drop([next_name(name)])
        return self._planned[name].catalog_view(name, epoch, complete.missing)

    def _declare_full(self, plans: Mapping[str, ViewPlan], fresh: Collection[str]) -> None:
        """The views that are recomputed; those that are `fresh` take the place of nothing, or of another view."""
        views: dict[str, FullView] = {}
        shown: dict[str, bool] = {}
        for name, plan in plans.items():
            kept = self._full.get(name)
            if kept is not None and kept.plan is plan:
                views[name] = kept
                continue
            planned = self._planned[name]
            view = views[name] = FullView(self._spark, self._root, planned.definition, plan, planned.known_schemas)
            recorded = self._begun.get(next_name(name)) if name in fresh else self._versions[name]
            if recorded is not None:
                view.open(recorded)
            if name not in fresh:
                shown[name] = view.is_stale(self._stored_versions())
        self._full.declare(views, shown)

    def _begin_recomputation(self) -> None:
        self._full.begin_due(self._clock.monotonic(), self._rows_epoch, self._stored_versions())

    def _stored_versions(self) -> dict[str, ViewVersion]:
        """Source → the version of its stored rows."""
        return {source_of_rows(name): each for name, each in self._versions.items() if is_stored_rows(name)}

    def _take_recomputed(self, epoch: int) -> list[CatalogView]:
        finished = self._full.take_finished()
        if finished is None:
            return []
        view, is_first = finished
        assert view.version is not None, "it was computed"
        self._versions[view.plan.name] = view.version
        if not is_first:
            return []
        self._drop([next_name(view.plan.name)])
        return [self._planned[view.plan.name].catalog_view(view.plan.name, epoch)]

    def _drop(self, names: Iterable[str]) -> None:
        self._dropped.update(names)

    def _take_dropped(self) -> tuple[str, ...]:
        dropped, self._dropped = self._dropped, set()
        for name in dropped:
            self._versions.pop(name, None)
        self._new.clear()
        return tuple(sorted(dropped))

"""The materializer: brings all views up to date with an epoch's rows, and reports their new versions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from random import Random, SystemRandom  # noqa: TID251 - chance begins here
from types import MappingProxyType
from typing import TypeVar

import lance
import pyarrow as pa
from pyspark.sql import SparkSession

from actors.protocol.blocks import Block, Correction
from actors.protocol.counters import MaterializerCounts
from actors.sources.pipeline_definition import DEFAULT_BACKFILL_WEIGHT, DEFAULT_JOIN_MEMORY_BYTES
from spark_bridge.changes.change_set import ChangeLog, ChangeSet, Parent
from spark_bridge.changes.corrections import CorrectedRows, corrected_sources
from spark_bridge.changes.leaf_queries import LeafQueries
from spark_bridge.changes.memory_tier import KeptSize, MemoryTier
from spark_bridge.changes.parents import Parents
from spark_bridge.changes.rows_before import RowsBefore
from spark_bridge.changes.view import ShownView
from spark_bridge.datasets.dataset_paths import empty_path
from spark_bridge.datasets.index_audit import IndexAudit
from spark_bridge.datasets.later_commits import LaterCommits
from spark_bridge.datasets.view_table import ViewTable
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.current_rows import RowKeys
from spark_bridge.engine.session.spark_jobs import SparkJobs
from spark_bridge.ingest.epoch_rows import EpochViews
from spark_bridge.ingest.history import OpenHistory, PutBlock, block_of_table, no_history
from spark_bridge.ingest.row_ingest import RowIngest
from spark_bridge.maintenance.backfills import Backfills
from spark_bridge.maintenance.declaration import Declaration, Start
from spark_bridge.maintenance.derived_rows import DerivedRows
from spark_bridge.maintenance.derived_views import DerivedViews
from spark_bridge.maintenance.full_view import FullView, in_pool_beside
from spark_bridge.maintenance.full_views import FullViews
from spark_bridge.maintenance.incremental_views import IncrementalViews
from spark_bridge.maintenance.parent_rows import ParentRows
from spark_bridge.maintenance.parents_backfill import DerivedView
from spark_bridge.maintenance.recorded_views import RecordedViews
from spark_bridge.maintenance.stored_sources import StoredSources
from spark_bridge.maintenance.weighted_rows import WeightedRows
from spark_bridge.operators.group.aggregate_view import AggregateView
from spark_bridge.operators.registry import Operators
from spark_bridge.plans.planned_view import PlannedView, stored_groups
from spark_bridge.plans.row_conditions import RowConditions
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from spark_bridge.query.correctable import require_correctable
from spark_bridge.query.view_planner import ViewPlanner
from spark_bridge.work_times import WorkTimes
from state.clock import Clock, SystemClock
from state.epoch import epoch_time_us
from state.errors import ViewError, ViewFailedError
from state.lance.lance_access import open_dataset, stored_bytes
from state.location import Location
from state.tables.records import CatalogView, ViewVersion
from state.tables.stored_rows import declared_name, is_view, stored_versions

_Result = TypeVar("_Result")

_TIDYING_SHARE = 0.25
"""Of the time of an epoch's work, for tidying after it at most.  The tasks that are due take a twentieth, so that they
keep up however many views there are."""

_KINDS_OF_COMPUTATIONS = 3
"""A piece of history, the rows of parents, and a whole query are computed at the same time; of each kind, one."""

_COPIED_BYTES = 256 << 20
"""Size of the stored rows of a view that an epoch copies at most, to resume it."""
_ROWS = "over the rows of an epoch"
_CORRECTION = "over the rows of corrected files"
_ALL_ROWS = "over all rows"
_OVER_VIEWS = "over the changed rows of other views"
_HISTORY = "over rows that were ingested before"
_INGEST = "ingest into Spark"
_LAST_COMMITS = "last commits of views"
_WRITTEN = "while its rows were written"
_PREPARED = "while it was prepared"
_LAST_ATTEMPTS = "in the last attempts"
_CORRECTED = ", corrected files"


class Materializer:
    """Keeps the declared views up to date, in the process that holds the SparkSession.

    Args:
        root: the directory of the pipeline.
        clock: measures the duration of the work.
        materialized: the sources whose rows are stored.
        replacing: the materialized sources with `on_change="replace"`.
        open_history: opens the rows that were ingested before a backfill.
        put_block: makes a block of rows of this process.
        join_memory_bytes: the bound of the rows of joins in memory, see `MemoryTier`.
        keys: the sources of which views see the last row of each key.
        event_times: source → the column with its event time.
        backfill_weight: the share of the time that backfills take at most while epochs have rows.
        random: chooses the keys by which indexes are checked; None for the system's randomness.
        suspended: view → the reason why the next epoch records that it has failed, once it is declared.
        alone_s: seconds from now in which one view is computed at a time.
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
        join_memory_bytes: int = DEFAULT_JOIN_MEMORY_BYTES,
        keys: RowKeys = MappingProxyType({}),
        event_times: Mapping[str, str] = MappingProxyType({}),
        backfill_weight: float = DEFAULT_BACKFILL_WEIGHT,
        random: Random | None = None,
        suspended: Mapping[str, str] = MappingProxyType({}),
        alone_s: float = 0.0,
    ) -> None:
        self._spark, self._root = spark, root
        self._materialized, self._replacing, self._keys = materialized, replacing, keys
        self._clock = clock or SystemClock()
        self._audit = IndexAudit(random or SystemRandom(), self._clock)
        self._jobs, self._suspended = SparkJobs(spark, alone_s), dict(suspended)
        self._planner = ViewPlanner(spark, self._jobs, materialized, keys, event_times)
        self._rows = RowIngest(spark, self._jobs, materialized, put_block)
        self._stored = StoredSources(root)
        self._catalyst = Catalyst(spark)
        self._queries, self._operators = LeafQueries(self._catalyst), Operators()
        self._tidying_s, self._planned_queries = 0.0, 0
        self._tier, self._commits = MemoryTier(join_memory_bytes), LaterCommits()
        self._before = RowsBefore(self._opened, self._log, self._tier)
        self._incremental = IncrementalViews(self._catalyst, root)
        self._threads = ThreadPoolExecutor(_KINDS_OF_COMPUTATIONS, thread_name_prefix="backfill")
        self._backfills = Backfills(
            self._incremental.make,
            open_history,
            self._rows.piece,
            self._clock,
            self._threads,
            backfill_weight,
            self._compute_piece,
            guard=self._guard,
        )
        self._full = FullViews(self._full_view, self._compute, self._threads, guard=self._guard)
        self._watermarks: dict[str, int] = {}
        self._derived = DerivedViews(
            self._make_derived, self._parent_rows, self._compute, self._threads, self._watermarks, self._guard
        )
        self._recorded = RecordedViews(
            self._backfills,
            self._full,
            self._derived,
            self._incremental.add,
            self._create_empty,
            self._clock,
            is_small=self._is_small,
        )

    def declare(
        self,
        definitions: Sequence[ViewDefinition],
        schemas: Mapping[str, pa.Schema | None],
        known: Mapping[str, CatalogView],
        dropped: Collection[str] = (),
    ) -> Declaration:
        """Analyses the declared views.  Call it again when a source gets its schema, and for each added or ended view.

        Nothing changes when it refuses the views.  A view of the catalog fails in the next epoch if its analysis fails
        although its text is the recorded text, or if its maintenance cannot be made.  The other views continue.

        Args:
            schemas: source → its schema, None while that is not known; all declared sources.
            known: the views of the catalog, without the dropped views.
            dropped: the views that end with the next epoch: a maintained view, a stale view or a backfill.

        Raises:
            ViewError: two views have one name, or a view cannot be built.
            NotIncrementalError: a view cannot be maintained epoch by epoch.
            DefinitionChangedError: the catalog has another view of this name.
            SparkLostError: the Spark application is gone.
            StorageError: a version cannot be opened.  A part of the views may be declared: close the materializer.
        """
        by_name = {definition.name: definition for definition in definitions}
        for definition in definitions:
            if by_name[definition.name] is not definition:
                raise ViewError(f"view {definition.name!r} is declared twice; rename one of them")
        planned = self._planner.planned(by_name, schemas, known)
        plans = {name: each.plan for name, each in planned.items()}
        recorded, groups = self._recorded, stored_groups(planned)
        declaration = Declaration.of(
            by_name, plans, known, recorded.ingested, recorded.ending, groups, self._planner.broken
        )
        rebuilt = declaration.names(Start.BACKFILLS, Start.OF_GROUPS)
        continued = {name: each for name, each in recorded.versions.items() if name not in rebuilt}
        require_correctable(self._root, plans.values(), continued, self._materialized, self._replacing)
        self._rows.schemas = dict(schemas)
        for each in dropped:
            self._leave(self._recorded.drop(each))
        incremental = self._maintained(by_name, planned, declaration)
        self._incremental.declare(incremental, self._recorded.shared, self._recorded.followed)
        for name in self._suspended.keys() & planned.keys():
            self._fail(ViewFailedError(name, _LAST_ATTEMPTS, self._suspended.pop(name)))
        return declaration

    def _maintained(
        self,
        definitions: Mapping[str, ViewDefinition],
        planned: Mapping[str, PlannedView],
        declaration: Declaration,
    ) -> dict[str, ViewPlan]:
        """See `RecordedViews.declare`; a view whose maintenance cannot be made fails, and the others are declared."""
        for _ in planned:
            try:
                return self._recorded.declare(definitions, planned, declaration)
            except ViewFailedError as error:
                self._fail(error)
        return self._recorded.declare(definitions, planned, declaration)

    def _guard(self, name: str) -> AbstractContextManager[None]:
        return self._jobs.guard(name, _PREPARED)

    def open(self, views: Mapping[str, ViewVersion], epoch: int = 0, ingested: Set[str] = frozenset()) -> None:
        """Continues from the versions of the last committed epoch.  Later versions are not built upon.

        Args:
            views: the versions that the epoch records.
            ingested: the sources that have ingested rows.

        Raises:
            StorageError: a version cannot be opened.
        """
        self._recorded.open(views, epoch, ingested)
        self._stored.close()
        self._incremental.open(self._recorded.versions)

    def run_epoch(
        self,
        epoch: int,
        blocks: Mapping[str, Sequence[Block]],
        corrections: Sequence[Correction] = (),
        watermarks: Mapping[str, int] = MappingProxyType({}),
    ) -> EpochViews:
        """Brings every view up to date with the epoch's rows, and creates the declared views that are new.

        A view without new rows keeps its version.  A view that fails keeps its version too, and is maintained no
        longer.  Every error counts as an error of the view, unless it provably has another cause.  When the store,
        Spark itself or the rows of a source fail, the other views finish first: no work is left behind in a thread.

        Args:
            epoch: its number; the datasets of new views are named after it.
            blocks: source → its new rows; the references are held until all views are written.
            corrections: files whose rows are replaced or removed, after the new rows.
            watermarks: source → its watermark in this epoch, in microseconds since 1970.

        Raises:
            CommitRefusedError: another process has written to a view.
            CommitUnknownError: the outcome of a view's commit is not known.
            SparkLostError: the Spark application is gone.
            RunFailedError: the rows of a source cannot be handed over, jobs were cancelled or lost their executors, or
                rows lack columns that a view needs.
        """
        times, planned_before = WorkTimes(self._clock), self._catalyst.query_count.total
        self._tier.begin_epoch()
        self._watermarks.update(watermarks)
        with_rows = {source: filled for source, each in blocks.items() if (filled := [b for b in each if b.rows])}
        self._incremental.require_columns(with_rows)
        with self._commits.ended():
            done = self._recorded.run_epoch(
                epoch,
                with_rows.keys(),
                partial(self._apply, epoch, with_rows, watermarks, times),
                partial(self._correct, epoch, corrections, times),
                self._take_changes,
                lambda work: self._run_views(_OVER_VIEWS, self._commits.of(times.timing("", work))),
                partial(self._end_commits, times),
            )
        self._tidying_s = _TIDYING_SHARE * times.seconds
        planned = self._catalyst.query_count.total - planned_before
        self._planned_queries += planned
        late = tuple(self._incremental.take_late())
        return replace(done, work=times.spans, late=late, planned_queries=planned)

    def has_news(self, watermarks: Mapping[str, int] = MappingProxyType({})) -> bool:
        """Whether the next epoch changes which views there are, closes windows or lets rows expire, even without rows.

        Rows that come and leave as time passes are news too, at most once in five seconds.

        Args:
            watermarks: source → its watermark in the last epoch, which may have passed without `run_epoch`.
        """
        if self._recorded.has_news:
            return True
        if self._incremental.has_closing(self._recorded.versions, watermarks, self._waiting):
            return True
        return self._recorded.are_timers_due()

    @property
    def _waiting(self) -> set[str]:
        """The declared views that lack rows of what they read."""
        return set(map(declared_name, self._derived.unshown))

    @property
    def failing(self) -> frozenset[str]:
        """The views whose failure the next epoch records."""
        return self._recorded.failing

    @property
    def behind(self) -> frozenset[str]:
        """The full views that lack rows, without those that wait for the end of their interval."""
        return self._full.behind

    def shown(self) -> list[ShownView]:
        """All views that readers see."""
        rows = {**self._incremental.num_rows, **self._derived.num_rows, **self._full.num_rows}
        shown = self._recorded.shown({name: each for name, each in rows.items() if is_view(name)})
        num_open = {name: view.num_open for name, view in self._incremental.closing.items()}
        num_late = self._incremental.num_late
        return [replace(each, open_groups=num_open.get(each.name), late_rows=num_late.get(each.name)) for each in shown]

    @property
    def in_memory(self) -> dict[str, KeptSize]:
        """Path below the root → the size of the rows of an internal view that are kept in memory, see `MemoryTier`."""
        return self._tier.sizes

    @property
    def backfilling(self) -> dict[str, float]:
        """Name → the share of its history that each backfill has, from 0 to 1; the least one of its internal views."""
        fractions = dict.fromkeys(map(declared_name, self._derived.unshown), 0.0)
        of_views = sorted(self._backfills.fractions.items(), key=lambda each: each[1], reverse=True)
        return fractions | {view: fraction for name, fraction in of_views for view in self._users(name)}

    @property
    def blocked(self) -> dict[str, tuple[str, ...]]:
        """Name → the missing files of each backfill that cannot become complete."""
        return {view: missing for name, missing in self._backfills.blocked.items() for view in self._users(name)}

    def _users(self, name: str) -> list[str]:
        """The declared views that have the rows of a view which is maintained."""
        return [declared_name(each) for each in self._recorded.shared.names(name)]

    def conditions(self, view: str, schema: pa.Schema, conditions: Mapping[str, str]) -> RowConditions:
        """Conditions over the rows of a view; arguments and errors as `RowConditions`."""
        return RowConditions(self._spark, self._jobs, view, schema, conditions)

    def backfill(self) -> bool:
        """Adds a piece of history to one backfill, or begins to compute one: call it between two epochs.

        Returns:
            Whether the next epoch has to record it.

        Raises:
            StorageError: the history cannot be read.  Others as `run_epoch`.
        """
        due = self._recorded.next_due()
        if due is None:
            return False
        name = due.plan.name
        done = self._run_views(_HISTORY, {name: partial(self._backfills.take_piece, due)})
        return done.get(name, True)

    def _compute_piece(self, name: str, work: Callable[[], _Result]) -> _Result:
        def beside() -> _Result:
            with in_pool_beside(self._spark):
                return work()

        return self._jobs.run("view", _HISTORY, {name: beside})[name]

    def columns(self) -> dict[str, tuple[str, ...]]:
        """Source → the columns that the planned views use."""
        plans = [*self._incremental.plans.values(), *self._backfills.plans, *self._full.plans]
        return self._rows.columns(plans)

    def tidy(self) -> None:
        """Does bounded tasks that keep the datasets fast: call it between two epochs.

        It does one that is due, and others within a share of the time of the last epoch.  They make versions that no
        epoch records; the next epoch with rows builds upon these.

        Raises:
            CommitRefusedError, CommitUnknownError: as `run_epoch`; recover in the same way.
        """
        until_s = self._clock.monotonic() + self._tidying_s
        while self._tidy_one() and self._clock.monotonic() < until_s:
            pass

    def _tidy_one(self) -> bool:
        return any(each.tidy(self._audit) for each in (self._incremental, self._stored, self._backfills, self._derived))

    @property
    def counts(self) -> MaterializerCounts:
        """The counts since the start, see `IndexAudit` and `QueryCount`."""
        return MaterializerCounts(rebuilt_indexes=self._audit.rebuilt, planned_queries=self._planned_queries)

    def close(self) -> None:
        """Ends the threads; the session is the caller's."""
        self._threads.shutdown()
        self._backfills.close()
        self._tier.close()
        self._commits.close()
        self._jobs.close()

    def _apply(
        self, epoch: int, blocks: Mapping[str, Sequence[Block]], watermarks: Mapping[str, int], times: WorkTimes
    ) -> list[CatalogView]:
        """Writes the epoch's new rows into all views.  Returns the views that it creates."""
        plans = [*self._incremental.plans.values(), *self._backfills.plans]
        read = {source for plan in plans for source in plan.sources}
        with times.timed(_INGEST):
            rows = self._rows.epoch(epoch, blocks, read, _ROWS)
        versions = self._recorded.versions
        # A backfill closes no window: its watermarks come when it is shown.
        timed = replace(rows, watermarks=watermarks)
        work = self._incremental.work(epoch, timed, blocks.keys(), versions, self._waiting)
        work |= self._stored.work(blocks, versions)
        return self._recorded.write(
            epoch, rows, blocks, work, lambda work: self._run_views(_ROWS, self._commits.of(times.timing("", work)))
        )

    def _correct(self, epoch: int, corrections: Sequence[Correction], times: WorkTimes) -> frozenset[str]:
        """Replaces the rows of corrected files in all views.  Returns the sources of the files.

        If new rows could not be applied to a view, its groups are computed again here from the rows of the epoch.
        """
        sources = corrected_sources(corrections)
        if not sources and not self._incremental.has_failed:
            return frozenset()
        versions = self._recorded.versions
        before = stored_versions(versions)
        versions.update(self._stored.correct(sources, versions, epoch))
        rows = CorrectedRows(
            self._catalyst,
            self._root,
            self._opened,
            self._rows.schemas,
            sources,
            before,
            stored_versions(versions),
            self._rows.parallelism,
            epoch_time_us(epoch),
        )
        work = self._incremental.correction_work(rows, versions)
        versions.update(self._run_views(_CORRECTION, self._commits.of(times.timing(_CORRECTED, work))))
        return rows.sources

    def _run_views(self, doing: str, work: Mapping[str, Callable[[], _Result]]) -> dict[str, _Result]:
        """The results of the views that do not fail."""
        done, failed = self._jobs.run_views(doing, work)
        for error in failed:
            self._fail(error)
        return done

    def _fail(self, error: ViewFailedError) -> None:
        self._leave(self._recorded.fail(error))

    def _leave(self, names: Sequence[str]) -> None:
        """Ends the maintenance of views."""
        for name in names:
            self._incremental.drop(name)

    def _take_changes(self) -> dict[str, ChangeSet]:
        taken, failed = self._incremental.take_changes(self._guard)
        for error in failed:
            self._fail(error)
        return taken

    def _end_commits(self, times: WorkTimes) -> None:
        """Waits for all commits of an epoch.  Errors as `run_epoch`."""
        with times.timed(_LAST_COMMITS):
            failed = self._commits.take_failed()
        errors = [self._jobs.of_view(name, _WRITTEN, error) for name, error in failed]
        for error in errors:
            if not isinstance(error, ViewFailedError):
                raise error
        for error in errors:
            assert isinstance(error, ViewFailedError)
            self._fail(error)

    def _create_empty(self, plan: ViewPlan, epoch: int) -> ViewVersion:
        path = empty_path(plan.name, epoch)
        table = ViewTable.create(self._root.child(path), plan.schema.empty_table())
        return ViewVersion(plan.name, path, table.version)

    def _is_small(self, version: ViewVersion) -> bool:
        datasets = (open_dataset(self._root.child(path), each) for path, each in version.datasets.items())
        return sum(map(stored_bytes, datasets)) <= _COPIED_BYTES

    def _grouped_view(self, plan: ViewPlan) -> AggregateView:
        return AggregateView(self._catalyst, self._root, plan)

    def _make_derived(self, plan: ViewPlan) -> DerivedView:
        if plan.view_class == "aggregate":
            return self._grouped_view(plan)
        return (WeightedRows if plan.computed else DerivedRows)(self._catalyst, self._root, plan)

    def _parent_rows(self, epoch: int, parents: Mapping[str, Parent]) -> ParentRows:
        time_us = epoch_time_us(epoch)
        of_epoch = Parents(self._catalyst, self._root, parents, self._opened, self._before, self._queries)
        watermarks = dict(self._watermarks)
        return ParentRows(of_epoch, self._operators, self._rows.parallelism, time_us, watermarks=watermarks)

    def _log(self, version: ViewVersion) -> ChangeLog:
        return self._derived.log(version.name) or self._incremental.log(version)

    def _opened(self, version: ViewVersion) -> lance.LanceDataset:
        location = self._root.child(version.path)
        self._commits.wait(location)
        return open_dataset(location, version.version)

    def _full_view(self, each: PlannedView) -> FullView:
        return FullView(self._spark, self._root, each, self._keys)

    def _compute(self, name: str, work: Callable[[], ViewVersion]) -> ViewVersion:
        self._commits.wait_for_all()  # the computation reads versions of the epoch that begins it
        return self._jobs.run("view", _ALL_ROWS, {name: work})[name]

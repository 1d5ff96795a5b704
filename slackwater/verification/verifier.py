"""Verifier of the views of one epoch: runs the engines in order, and decides on each view."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from random import Random, SystemRandom  # noqa: TID251 - chance begins here
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, get_args

import pyarrow as pa

from actors.settings import FetchSettings
from actors.sources.source import SourceDefinition
from slackwater.reading.epoch_choice import find_epoch
from slackwater.reading.recorded_source import RecordedSource, recorded_definition, recorded_sources
from slackwater.reading.store import Store
from slackwater.reading.tables.view_table import reflected_epoch
from slackwater.reading.view import View
from slackwater.verification.comparison import Differences, differences
from slackwater.verification.computation import Computation
from slackwater.verification.duckdb_engine import DuckDbEngine
from slackwater.verification.engine import CannotComputeError, Engine, EngineChoice, TimeLimitError, WrongLedgerError
from slackwater.verification.ingested_files import FileProblemsError, IngestedFiles
from slackwater.verification.kept_tables import with_stored_rows
from slackwater.verification.recorded_watermarks import RecordedWatermarks
from slackwater.verification.spark_engine import SparkEngine
from slackwater.verification.step import OnStep, Step
from slackwater.verification.stored_rows import row_differences
from slackwater.verification.verification import LEDGER, FileProblem, Outcome, Verification, ViewCheck, WrongIndex
from spark_bridge.engine.catalyst.epoch_timestamps import filters_by_time
from spark_bridge.maintenance.derived_views import filter_time_us
from spark_bridge.maintenance.recomputation import Followed
from spark_bridge.plans.view_definition import ViewDefinition
from state.errors import DamagedStoreError, StorageError, UsageError
from state.lance.index_check import index_difference, indexed_columns
from state.lance.lance_access import open_dataset
from state.location import Location
from state.objects.storage_error import storage_error
from state.store.store import StateStore
from state.tables.catalog import Catalog
from state.tables.records import CatalogView, EpochRecord
from state.tables.stored_rows import is_stored_rows, is_view, source_of_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from slackwater.pipeline import Pipeline

ENGINES: tuple[EngineChoice, ...] = get_args(EngineChoice)
# The identity of a view is its plan, as text.
_ESTIMATES = re.compile(r"\b(approx_count_distinct|hll_sketch_agg|hll_union_agg|percentile_approx|approx_percentile)\(")
# More than after a tidying: a verification reads all rows anyway.
_INDEX_KEYS, _INDEX_FRAGMENTS = 256, 8
_COLLECTS = re.compile(r"\bcollect_(list|set)\(")


def verify(
    store: Store,
    epoch: int | str | None = None,
    *,
    pipeline: Pipeline | None = None,
    engine: EngineChoice = "auto",
    duckdb_queries: Mapping[str, str] | None = None,
    spark: SparkSession | None = None,
    follow_sources: bool = False,
    timeout_s: float | None = 3_600.0,
    on_step: OnStep = lambda step: None,
) -> Verification:
    """Recomputes every view from the files of the ledger, and compares.

    Every ingested file is read once per engine.  SQL out of the root runs only if it is one SELECT over the sources
    of its view.

    Args:
        store: the root.
        epoch: an epoch, as for `Store.snapshot`.
        pipeline: the pipeline of this root: it has the functions of the views, and the places of the sources.
        engine: `duckdb`, `spark`, or `auto`: DuckDB, and Spark for views that DuckDB cannot compute or computes
            differently.
        duckdb_queries: view → a query for DuckDB in place of the text of the view, for example for a function.
        spark: the session where Spark is needed; None starts a local one and ends it.
        follow_sources: whether sources that the pipeline does not have are read at the URLs that the root names,
            with this process's access: for a root whose writers you trust.
        timeout_s: seconds that an engine computes a view, and that DuckDB reads a file; beyond them the view is not
            checkable.  None for no limit.
        on_step: called with each step.

    Raises:
        EpochNotFoundError, UsageError: as `Store.snapshot`; the engine is not valid or not installed; or there is
            neither a pipeline nor `follow_sources`.
        StorageError: the root cannot be read.

    Examples:
        >>> verify(open("s3://lake/flights"), pipeline=pipeline).all_equal  # doctest: +SKIP
    """
    handle = store.handle()
    tables = handle.latest()
    return Verifier(
        handle.root,
        tables,
        find_epoch(tables, handle.root, epoch),
        pipeline=pipeline,
        engine=engine,
        duckdb_queries=duckdb_queries,
        spark=spark,
        follow_sources=follow_sources,
        timeout_s=timeout_s,
        on_step=on_step,
    ).run()


class Verifier:
    """Computes views again and compares them.

    Args:
        root: the root of the pipeline.
        store: a handle on its store.
        record: the record of the epoch.
        pipeline: the pipeline with the functions of function views, the access to its sources, and the settings of
            reading.  None: a source on the same kind of store takes the options of the root; default settings.
        engine: one of `ENGINES`.
        duckdb_queries: view → the query for DuckDB in place of the view's own text.
        spark: a session to use instead of a local one.
        follow_sources: whether a source is read at the URL that the root names, even if the pipeline does not.
        timeout_s: seconds that an engine computes a view, and that DuckDB reads a file; None for no limit.
        on_step: called at each step.
        random: chooses the keys by which indexes are checked; None for the system's randomness.

    Raises:
        UsageError: the engine is unknown or not installed, or the time is not a positive number.
    """

    def __init__(
        self,
        root: Location,
        store: StateStore,
        record: EpochRecord,
        *,
        pipeline: Pipeline | None = None,
        engine: EngineChoice = "auto",
        duckdb_queries: Mapping[str, str] | None = None,
        spark: SparkSession | None = None,
        follow_sources: bool = False,
        timeout_s: float | None = None,
        on_step: OnStep = lambda step: None,
        random: Random | None = None,
    ) -> None:
        if engine not in ENGINES:
            raise UsageError(f"{engine!r} is not a valid engine; give one of {', '.join(ENGINES)}")
        if engine == DuckDbEngine.name and find_spec("duckdb") is None:
            raise UsageError("the package duckdb is not installed: pip install 'slackwater[verify]'")
        if timeout_s is not None and not timeout_s > 0:
            raise UsageError(f"timeout_s={timeout_s}: give a number above 0, or None for no limit")
        self._root, self._store, self._record = root, store, record
        self._functions: Mapping[str, ViewDefinition] = {} if pipeline is None else pipeline.views
        self._locations = [] if pipeline is None else [source.location for source in pipeline.sources.values()]
        self._has_pipeline, self._follows = pipeline is not None, follow_sources
        self._settings = FetchSettings() if pipeline is None else pipeline.settings.fetch
        self._queries = duckdb_queries or {}
        self._random = random or SystemRandom()
        self._engine, self._spark, self._on_step = engine, spark, on_step
        self._timeout_s = timeout_s
        self._catalog = Catalog.of(store.scan("catalog", state_version=record.state_version))

    def run(self) -> Verification:
        """Checks every view of the epoch.

        Raises:
            StorageError: the root cannot be read, or its catalog lacks a view or a source.
            UsageError: there is neither a pipeline nor leave to follow the URLs of the root.
        """
        self._require_leave()
        records = {record.epoch: record for record in self._store.epochs()}
        checks: dict[str, ViewCheck] = {}
        for epoch, views in self._views_by_ledger().items():
            if epoch is None:
                checks.update({view.name: self._without_rows(view) for view in views})
            elif epoch in records:
                checks.update({check.view: self._noted(check) for check in self._of_one_ledger(records[epoch], views)})
            else:
                checks.update({view.name: self._without_ledger(view, epoch) for view in views})
        checks.update({name: self._check_rows(name) for name in self._record.views if is_stored_rows(name)})
        in_order = tuple(checks[name] for name in self._record.views if name in checks)
        return Verification(self._record.epoch, in_order, tuple(self._wrong_indexes()))

    def _wrong_indexes(self) -> Iterator[WrongIndex]:
        """Looks up random keys by each index of the views' datasets and by a scan, at the versions of the epoch."""
        datasets = {path: version for view in self._record.views.values() for path, version in view.datasets.items()}
        for path, version in datasets.items():
            location = self._root.child(path)
            try:
                dataset = open_dataset(location, version)
                for column in indexed_columns(dataset):
                    self._on_step(Step(f"{path}: comparing the index of {column} with the rows"))
                    found = index_difference(
                        location, dataset, column, self._random, keys=_INDEX_KEYS, fragments=_INDEX_FRAGMENTS
                    )
                    if found is not None:
                        yield WrongIndex(path, column, found.missing, found.wrong)
            except (OSError, ValueError, RuntimeError) as error:
                raise storage_error(error, location) from None

    def _require_leave(self) -> None:
        """Refuses to read places that only the root names, if no pipeline confirms them."""
        if self._has_pipeline or self._follows:
            return
        read = {name for view in self._record.views if is_view(view) for name in self._known_view(view).sources}
        if read:
            places = ", ".join(f"{name}: {self._recorded(name).location}" for name in sorted(read))
            raise UsageError(
                f"the root names the places of its files ({places}): give its pipeline (--app app.py:pipeline), or "
                "follow them (--follow-sources) if you trust the writers of the root"
            )

    def _recorded(self, source: str) -> SourceDefinition:
        known = self._catalog.sources.get(source)
        if known is None:
            raise self._damaged(f"the source {source!r}")
        return recorded_definition(known, self._locations, self._root)

    def _known_view(self, name: str) -> CatalogView:
        view = self._catalog.views.get(name)
        if view is None:
            raise self._damaged(f"the view {name!r}")
        return view

    def _damaged(self, missing: str) -> DamagedStoreError:
        return DamagedStoreError(
            f"{self._root}: its catalog lacks {missing}, which epoch {self._record.epoch} uses: restore the root from "
            "a copy, or let the pipeline read its files into a new root"
        )

    def _views_by_ledger(self) -> Mapping[int | None, Sequence[CatalogView]]:
        """Epoch → the views made from its ledger; a stopped or stale view has no later rows.  None: without rows."""
        views: dict[int | None, list[CatalogView]] = {}
        for name in filter(is_view, self._record.views):
            view = self._known_view(name)
            epoch = reflected_epoch(view, self._record.views[name], self._record.epoch)
            views.setdefault(epoch, []).append(view)
        return views

    def _of_one_ledger(self, record: EpochRecord, views: Sequence[CatalogView]) -> list[ViewCheck]:
        definitions = [self._recorded(name) for name in dict.fromkeys(name for view in views for name in view.sources)]
        sources = recorded_sources(definitions, self._store, record.state_version)
        problems = {name: self._problems(source) for name, source in sources.items()}
        names = [view.name for view in views]
        followed, unknown = RecordedWatermarks(self._store, record, self._catalog.views, sources).of(names)
        start_spark = partial(self._start_spark, filter_time_us(record.views.values()), followed)
        starts: Mapping[str, Callable[[Path], Engine]] = {
            DuckDbEngine.name: partial(self._start_duckdb, followed),
            SparkEngine.name: start_spark,
        }
        with ExitStack() as stack:
            for name, problem in problems.items():
                if isinstance(problem, FileProblemsError) and sources[name].definition.table is not None:
                    self._on_step(Step(f"{name}: its files have changed, so the rows that the root stores are read"))
                    scratch = stack.enter_context(TemporaryDirectory(prefix="slackwater-verify-"))
                    sources[name] = with_stored_rows(sources[name], self._root, record, Path(scratch))
                    problems[name] = None
            computations = [
                stack.enter_context(Computation(name, start, sources, self._on_step))
                for name, start in starts.items()
                if self._engine in ("auto", name)
            ]
            checks = []
            for view in views:
                found = [problem for name in view.sources if (problem := problems[name]) is not None]
                if estimate := _ESTIMATES.search(view.identity):
                    reason = f"{estimate.group(1)} estimates: its result depends on the epochs of the rows"
                    checks.append(self._not_checkable(view, record.epoch, reason))
                elif lost := self._behind(view).intersection(unknown):
                    name = min(lost, key=lambda each: (each != view.name, each))
                    reason = unknown[name] if name == view.name else f"view {name}, which it reads: {unknown[name]}"
                    checks.append(self._not_checkable(view, record.epoch, reason))
                elif found:
                    files = tuple(file for each in found for file in _files(each))
                    reason = "; ".join(map(str, found))
                    checks.append(self._not_checkable(view, record.epoch, reason, files))
                else:
                    checks.append(self._check(view, record.epoch, computations))
            return [replace(check, by_parents=self._by_parents(check, record.epoch)) for check in checks]

    def _behind(self, view: CatalogView) -> set[str]:
        """A view and the views that it reads directly or indirectly."""
        read = (self._behind(self._known_view(name)) for name in view.views if name in self._catalog.views)
        return {view.name}.union(*read)

    def _by_parents(self, check: ViewCheck, epoch: int) -> Outcome | None:
        """See `ViewCheck.by_parents`; None if a view that it reads has rows of another epoch."""
        name, view = check.view, self._known_view(check.view)
        versions = {each: self._record.views.get(each) for each in view.views}
        if not versions or self._engine == SparkEngine.name or find_spec(DuckDbEngine.name) is None:
            return None
        if _ESTIMATES.search(view.identity) or filters_by_time(view.identity):
            return None
        for each, version in versions.items():
            if version is None or reflected_epoch(self._known_view(each), version, self._record.epoch) != epoch:
                return None
        self._on_step(Step(f"{name}: duckdb computes it from {' and '.join(view.views)}"))
        stored = self._view(view).to_arrow()
        parents = {each: self._view(self._known_view(each)).to_arrow() for each in view.views}
        with (
            TemporaryDirectory(prefix="slackwater-verify-") as scratch,
            self._start_duckdb({}, Path(scratch)) as engine,
        ):
            try:
                expected = engine.answer_over(view, stored.schema, parents)
            except CannotComputeError:
                return None
        if self._found(view, stored, expected) is None:
            return Outcome.EQUAL
        # Where DuckDB did not decide, its SQL may mean something else.
        is_meant = check.outcome is Outcome.DIFFERENT or check.engine == DuckDbEngine.name
        return Outcome.DIFFERENT if is_meant else None

    def _check_rows(self, name: str) -> ViewCheck:
        """Checks the stored rows of a source: their lineage against the ledger, without its files."""
        source = source_of_rows(name)
        recorded = recorded_sources([self._recorded(source)], self._store, self._record.state_version)[source]
        self._on_step(Step(f"{name}: comparing the stored rows of {len(recorded.files):,} files with the ledger"))
        stored = View(self._root, self._record.views[name], (), self._record.epoch)
        found = row_differences(recorded, stored.lance())
        outcome = Outcome.EQUAL if found is None else Outcome.DIFFERENT
        expected = sum(file.rows - file.rows_bad for file in recorded.files)
        return ViewCheck(name, outcome, LEDGER, self._record.epoch, stored.count_rows(), expected, found)

    def _problems(self, source: RecordedSource) -> Exception | None:
        """The reason why the ingested rows of a source cannot be read again, by one listing; None without one."""
        place = source.definition.location
        if not self._follows and place.url not in {each.url for each in self._locations}:
            return CannotComputeError(
                f"source {source.name} is at {place} in the root, and not in the pipeline: correct the pipeline, or "
                "follow the root (--follow-sources) if you trust its writers"
            )
        self._on_step(Step(f"{source.name}: looking for the {len(source.files):,} ingested files"))
        try:
            IngestedFiles(source).check()
        except (FileProblemsError, StorageError) as error:
            return error
        return None

    def _check(self, view: CatalogView, epoch: int, computations: Sequence[Computation]) -> ViewCheck:
        """Checks one view: equal if an engine agrees; otherwise the last engine that can compute the view decides."""
        stored = self._view(view).to_arrow()
        check: ViewCheck | None = None
        reasons: list[str] = []
        for computation in computations:
            if check is not None:
                reasons.append(f"{check.engine} has another result")
            try:
                expected = computation.rows(view, stored.schema)
                found = self._found(view, stored, expected)
                outcome = Outcome.EQUAL if found is None else Outcome.DIFFERENT
                check = ViewCheck(
                    view.name, outcome, computation.name, epoch, stored.num_rows, expected.num_rows, found
                )
            except CannotComputeError as error:
                reasons.append(f"{computation.name}: {error}")
                if isinstance(error, TimeLimitError):
                    break
            except WrongLedgerError as error:
                reasons.append(str(error))
                check = ViewCheck(view.name, Outcome.DIFFERENT, computation.name, epoch, stored.num_rows)
            if check is not None and check.outcome is Outcome.EQUAL:
                break
        reason = "; ".join(reasons)
        return self._not_checkable(view, epoch, reason) if check is None else replace(check, reason=reason)

    @staticmethod
    def _found(view: CatalogView, stored: pa.Table, expected: pa.Table) -> Differences | None:
        return differences(
            stored,
            expected,
            key=view.key,
            is_aggregate=view.view_class == "aggregate",
            collects=_COLLECTS.search(view.identity) is not None,
        )

    def _start_duckdb(self, followed: Mapping[str, Followed], scratch: Path) -> DuckDbEngine:
        return DuckDbEngine(scratch, self._queries, self._catalog.views, followed, self._timeout_s)

    def _start_spark(self, time_us: int | None, followed: Mapping[str, Followed], scratch: Path) -> Engine:
        assert self._catalog.pipeline is not None, "a root with a view has the pipeline in its catalog"
        pipeline, views = self._catalog.pipeline, self._catalog.views
        return SparkEngine(
            pipeline.ansi, self._functions, views, self._settings, self._spark, time_us, followed, self._timeout_s
        )

    def _view(self, view: CatalogView) -> View:
        return View(self._root, self._record.views[view.name], view.key, self._record.epoch)

    def _without_rows(self, view: CatalogView) -> ViewCheck:
        reason = "it failed in its first epoch, and has no rows"
        reason += ", until it is rebuilt" if view.error is None else f": {view.error}; correct it, and retry it"
        return self._not_checkable(view, self._record.epoch, reason)

    def _without_ledger(self, view: CatalogView, epoch: int) -> ViewCheck:
        state = "is stopped at" if view.error is None else "is stale since"
        return self._not_checkable(view, epoch, f"the view {state} epoch {epoch}, which is no longer retained")

    def _noted(self, check: ViewCheck) -> ViewCheck:
        """The check with the reason why a failed view is compared with an earlier ledger."""
        error = self._known_view(check.view).error
        if error is None:
            return check
        failure = f"the view is stale since epoch {check.epoch}: {error}"
        return replace(check, reason="; ".join(filter(None, (failure, check.reason))))

    def _not_checkable(
        self, view: CatalogView, epoch: int, reason: str, files: tuple[FileProblem, ...] = ()
    ) -> ViewCheck:
        rows = self._view(view).count_rows()
        return ViewCheck(view.name, Outcome.NOT_CHECKABLE, None, epoch, rows, files=files, reason=reason)


def _files(problem: Exception) -> tuple[FileProblem, ...]:
    return problem.problems if isinstance(problem, FileProblemsError) else ()

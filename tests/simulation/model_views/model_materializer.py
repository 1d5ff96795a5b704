"""The materializer without Spark: model views on the simulated root."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from concurrent.futures import Executor
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from actors.protocol.blocks import Block, Correction
from actors.protocol.counters import MaterializerCounts
from spark_bridge.changes.change_set import ChangeSet
from spark_bridge.ingest.epoch_rows import EpochRows, EpochViews
from spark_bridge.ingest.followed_watermarks import follows_watermarks, is_behind
from spark_bridge.ingest.history import HistoryPiece, OpenHistory
from spark_bridge.maintenance.backfills import Backfills
from spark_bridge.maintenance.declaration import Declaration
from spark_bridge.maintenance.derived_views import DerivedViews, Work
from spark_bridge.maintenance.full_views import FullViews
from spark_bridge.maintenance.parents_backfill import DerivedView
from spark_bridge.maintenance.recorded_views import RecordedViews
from spark_bridge.plans.planned_view import PlannedView, StoredGroups, stored_groups
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from state.clock import Clock
from state.epoch import epoch_time_us
from state.errors import ProtocolError, SlackwaterError, ViewFailedError
from state.tables.records import CatalogView, ViewVersion
from state.tables.stored_rows import FILE_FIELD, declared_name
from tests.simulation.model_views.life_checker import LifeChecker
from tests.simulation.model_views.model_closing import ModelClosingView
from tests.simulation.model_views.model_datasets import CorrectedSpans, Fails, ModelDatasets
from tests.simulation.model_views.model_derived_view import ModelDerivedView, ModelParentRows
from tests.simulation.model_views.model_full_view import ModelFullView
from tests.simulation.model_views.model_plans import plan_of
from tests.simulation.model_views.model_stored_rows import ModelStoredRows
from tests.simulation.model_views.model_view import (
    ClosedWindows,
    GroupedRows,
    JoinOfSources,
    ModelView,
    RowsBelow,
    SideOfJoin,
    TemporalFilterRows,
    identity_of,
    internal_views_of,
    with_other_filter,
)
from tests.simulation.world.file_rows import Span
from tests.simulation.world.simulated_root import SimulatedRoot

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

    from spark_bridge.changes.memory_tier import KeptSize
    from spark_bridge.changes.view import ShownView
    from tests.simulation.model_views.model_leaves import ModelLeaves, ModelSide

_TIDY = 0.2
_MEMORY_BYTES, _BESIDE = (0, 1 << 20), 0.3


class ModelMaterializer:
    """See `ViewMaterializer`: `spark_bridge.materializer.Materializer` over model views, by the same `RecordedViews`.

    Args:
        views: the models of all views that may be declared.
        stored_rows: materialized source → the model of its stored rows.
        root: by the materializer's way.
        clock: measures pieces of history.
        random: picks the order of the views.
        read: the rows of a block.
        fails: whether a view's own expression fails over some rows.
        open_history: gives a backfill the rows from before it.
        thread: recomputes full views, and computes pieces of history.
    """

    def __init__(
        self,
        *,
        views: Mapping[str, ModelView],
        stored_rows: Mapping[str, ModelView],
        root: SimulatedRoot,
        clock: Clock,
        random: Random,
        read: Callable[[Block], Sequence[Span]],
        fails: Fails,
        open_history: OpenHistory,
        thread: Executor,
    ) -> None:
        self._models = {**views, **{each.name: each for view in views.values() for each in internal_views_of(view)}}
        self._stored_rows, self._root, self._random, self._read = stored_rows, root, random, read
        self._fails = fails
        self._plans = {name: plan_of(view, stored_rows.keys()) for name, view in self._models.items()}
        self._open: dict[str, ModelDatasets | ModelSide] = {}
        self._thread = thread
        self._open_stored: dict[str, ModelStoredRows] = {}
        self._declared: set[str] = set()
        self._followed: Set[str] = set()
        self._schemas: Mapping[str, pa.Schema | None] = {}
        self._full = FullViews(self._full_view, lambda _, refresh: refresh(), thread)
        self._backfills = Backfills(self._make, open_history, _rows_of_piece, clock, thread)
        self._derived = DerivedViews(
            self._make_derived,
            lambda epoch, parents: ModelParentRows(
                root, parents, lambda *times: self._leaves.rows(parents, *times), epoch_time_us(epoch)
            ),
            lambda _, work: work(),
            thread,
        )
        self._lives = LifeChecker()
        self._recorded = RecordedViews(
            self._backfills,
            self._full,
            self._derived,
            self._adopt,
            self._create_empty,
            clock,
            self._lives.on_transition,
        )

    def open(self, views: Mapping[str, ViewVersion], epoch: int, ingested: Set[str]) -> None:
        self._recorded.open(views, epoch, ingested)

    def declare(
        self,
        definitions: Sequence[ViewDefinition],
        schemas: Mapping[str, pa.Schema | None],
        known: Mapping[str, CatalogView],
        dropped: Collection[str],
    ) -> Declaration:
        by_name = {definition.name: definition for definition in definitions}
        # A view comes after those that it reads; without its parent, it is not declared.
        views = [
            PlannedView(by_name[name], self._plans[name], schemas, before=self._before(name, known.get(name)))
            for name in sorted(by_name, key=lambda name: len(self._models[name].parents))
            if all(map(schemas.get, self._models[name].sources)) and by_name.keys() >= {*self._plans[name].views}
        ]
        planned = {each.plan.name: each for view in views for each in (*view.inner, view)}
        plans = {name: each.plan for name, each in planned.items()}
        declaration = Declaration.of(
            by_name, plans, known, self._recorded.ingested, self._recorded.ending, stored_groups(planned)
        )
        self._schemas = schemas
        self._lives.on_declared(known)
        for each in dropped:
            self._leave(self._recorded.drop(each))
        self._declared = {*self._recorded.declare(by_name, planned, declaration)}
        self._followed = self._recorded.followed
        for name, view in self._open.items():
            view.changes.is_kept = name in self._followed
        return declaration

    def run_epoch(
        self,
        epoch: int,
        blocks: Mapping[str, Sequence[Block]],
        corrections: Sequence[Correction],
        watermarks: Mapping[str, int],
    ) -> EpochViews:
        if "_leaves" in vars(self):
            self._leaves.begin_epoch()
        rows = _rows({source: self._rows_of(source, of) for source, of in blocks.items()})
        # A backfill closes no window: its watermarks come when it is shown.
        timed = replace(rows, watermarks=watermarks)
        done = self._recorded.run_epoch(
            epoch,
            blocks.keys(),
            lambda: self._recorded.write(epoch, rows, blocks, self._work(epoch, timed, blocks), self._run),
            lambda: self._correct(epoch, corrections),
            self._take_changes,
            self._run,
        )
        self._lives.check_epoch(done)
        return replace(done, late=tuple(late for view in self._open.values() for late in view.take_late()))

    def backfill(self) -> bool:
        due = self._recorded.next_due()
        if due is None:
            return False
        try:
            return self._backfills.take_piece(due)
        except ViewFailedError as error:
            self._fail(error)
            return True

    def tidy(self) -> None:
        """Tidies one view or the stored rows of one source, now and then; else the backfills."""
        if self._random.random() >= _TIDY:
            return
        kept: list[ModelDatasets | ModelSide | ModelStoredRows] = [*self._open.values(), *self._open_stored.values()]
        if not (kept and self._random.choice(kept).tidy()):
            self._backfills.tidy()

    def close(self) -> None:
        pass

    def shown(self) -> list[ShownView]:
        return []

    def columns(self) -> dict[str, tuple[str, ...]]:
        return {}

    @property
    def counts(self) -> MaterializerCounts:
        return MaterializerCounts()

    def has_news(self, watermarks: Mapping[str, int]) -> bool:
        if self._recorded.has_news or any(self._is_behind(name, watermarks) for name in self._declared):
            return True
        return self._recorded.are_timers_due()

    @property
    def failing(self) -> frozenset[str]:
        return self._recorded.failing

    @property
    def behind(self) -> frozenset[str]:
        return self._full.behind

    @property
    def backfilling(self) -> dict[str, float]:
        return {**self._backfills.fractions, **dict.fromkeys(self._derived.unshown, 0.0)}

    @property
    def blocked(self) -> dict[str, tuple[str, ...]]:
        return self._backfills.blocked

    @property
    def in_memory(self) -> dict[str, KeptSize]:
        return self._leaves.in_memory if "_leaves" in vars(self) else {}

    # -- inside ----------------------------------------------------------------------------------------------------

    def _before(self, name: str, stored: CatalogView | None) -> StoredGroups | None:
        """The groups of the stored view of a name, if the declared one has the same; see `ViewPlanner`."""
        model = self._models[name]
        if stored is None or stored.stopped_epoch is not None or stored.missing or not isinstance(model, GroupedRows):
            return None
        other = with_other_filter(model)
        is_of_same_groups = stored.identity == identity_of(other)
        return StoredGroups(plan_of(other, self._stored_rows.keys()), has_all=True) if is_of_same_groups else None

    def _rows_of(self, source: str, blocks: Sequence[Block]) -> list[Span]:
        """The rows of blocks.

        Raises:
            ProtocolError: they have a column that the last declaration did not know.
        """
        schema = self._schemas.get(source)
        if schema is None or not all({*schema.names, FILE_FIELD.name}.issuperset(block.columns) for block in blocks):
            raise ProtocolError(f"rows of {source} have other columns than its schema {schema}")
        return [span for block in blocks for span in self._read(block)]

    def _work(self, epoch: int, rows: EpochRows, blocks: Mapping[str, Sequence[Block]]) -> Work:
        """The work on the views that readers see, and on the stored rows."""
        work: dict[str, Callable[[], ViewVersion]] = {
            name: partial(self._bring_up_to_date, epoch, name, rows)
            for name in sorted(self._declared)
            if name not in self._recorded.versions
            or not self._models[name].sources.isdisjoint(rows.frames)
            or self._is_behind(name, rows.watermarks)
        }
        for source, of in blocks.items():
            if stored := [each.stored for each in of if each.stored is not None]:
                work[self._stored_rows[source].name] = partial(self._stored(source).apply, stored)
        return work

    def _is_behind(self, name: str, watermarks: Mapping[str, int]) -> bool:
        """Whether windows can be closed, or rows expire."""
        version = self._recorded.versions.get(name)
        return self._follows(name) and is_behind(self._plans[name], version, watermarks)

    def _follows(self, name: str) -> bool:
        return follows_watermarks(self._plans[name], {*map(declared_name, self._derived.unshown)})

    def _bring_up_to_date(self, epoch: int, name: str, rows: EpochRows) -> ViewVersion:
        if not self._follows(name):
            rows = replace(rows, watermarks={})
        if name not in self._recorded.versions:
            return self._created(epoch, name, rows)
        return replace(self._opened(name).apply(rows), name=name)

    def _created(self, epoch: int, name: str, rows: EpochRows) -> ViewVersion:
        view = self._open[name] = self._make(self._plans[name])
        view.changes.is_kept = name in self._followed
        return view.create(epoch, rows)

    def _correct(self, epoch: int, corrections: Sequence[Correction]) -> frozenset[str]:
        """Replaces stored rows of corrected files, then computes the views from all stored rows.

        Returns:
            The sources of the files.
        """
        sources = frozenset(each.source for each in corrections)
        for source in sorted(sources):
            last = {each.path: each for each in corrections if each.source == source}
            stored = [block for each in last.values() for block in each.stored]
            version = self._stored(source).correct(last.keys(), stored, epoch)
            if version is not None:
                self._recorded.versions[version.name] = version
        corrected = CorrectedSpans(
            frozenset((each.source, each.path) for each in corrections), lambda source: self._stored(source).rows()
        )
        self._recorded.versions.update(
            self._run(
                {
                    name: partial(self._follow_corrections, name, corrected)
                    for name in sorted(self._declared)
                    if not sources.isdisjoint(self._models[name].sources)
                }
            )
        )
        return sources

    def _follow_corrections(self, name: str, corrected: CorrectedSpans) -> ViewVersion:
        return replace(self._opened(name).correct(corrected), name=name)

    def _stored(self, source: str) -> ModelStoredRows:
        if source not in self._open_stored:
            model = self._stored_rows[source]
            self._open_stored[source] = ModelStoredRows(model, self._root, self._recorded.versions.get(model.name))
        return self._open_stored[source]

    def _full_view(self, planned: PlannedView) -> ModelFullView:
        return ModelFullView(self._models[planned.plan.name], planned, self._root, self._fails)

    def _create_empty(self, plan: ViewPlan, epoch: int) -> ViewVersion:
        path = f"views/{plan.name}-{epoch}-empty.lance"
        return ViewVersion(plan.name, path, self._root.commit_view(path, 0, self._models[plan.name].after(None, ())))

    def _fail(self, error: ViewFailedError) -> None:
        self._leave(self._recorded.fail(error))

    def _leave(self, names: Sequence[str]) -> None:
        for name in names:
            self._declared.discard(name)
            self._open.pop(name, None)

    def _run(self, work: Work) -> dict[str, ViewVersion]:
        """Does all pieces of work, in any order, as `SparkJobs` does; then the first failure is raised.

        A view that fails for itself has no version.
        """
        names, versions, failures = list(work), dict[str, ViewVersion](), list[SlackwaterError]()
        self._random.shuffle(names)
        for name in names:
            try:
                versions[name] = work[name]()
            except ViewFailedError as error:
                self._fail(error)
            except SlackwaterError as error:
                failures.append(error)
        if failures:
            raise failures[0]
        return versions

    def _make(self, plan: ViewPlan) -> ModelDatasets | ModelSide:
        model = self._models[plan.name]
        if isinstance(model, SideOfJoin | RowsBelow):
            return self._leaves.side(model, plan)
        if isinstance(model, ClosedWindows):
            return ModelClosingView(model, self._root, self._fails)
        return ModelDatasets(model, self._root, self._fails)

    def _opened(self, name: str) -> ModelDatasets | ModelSide:
        if name not in self._open:
            view = self._open[name] = self._make(self._plans[name])
            view.open(self._recorded.versions[name])
            view.changes.is_kept = name in self._followed
        return self._open[name]

    def _adopt(self, plan: ViewPlan, view: Any) -> None:
        self._declared.add(plan.name)
        self._open[plan.name] = view
        view.changes.is_kept = plan.name in self._followed

    @cached_property
    def _leaves(self) -> ModelLeaves:
        # Here and not above: Lance takes half a second to import, and few stories need it.
        from tests.simulation.model_views.model_leaves import ModelLeaves

        random = self._random
        return ModelLeaves(
            self._root,
            self._fails,
            lambda version: self._opened(version.name).changes,
            self._thread,
            random.choice(_MEMORY_BYTES),
            lambda: random.random() < _BESIDE,
            self._models,
        )

    def _make_derived(self, plan: ViewPlan) -> DerivedView:
        model = self._models[plan.name]
        if isinstance(model, JoinOfSources | TemporalFilterRows):
            return self._leaves.view(model, plan)
        return ModelDerivedView(self._models[plan.name], plan, self._root)

    def _take_changes(self) -> dict[str, ChangeSet]:
        taken = {name: view.changes.take() for name, view in self._open.items()}
        return {name: changes for name, changes in taken.items() if changes is not None}


def _rows_of_piece(epoch: int, piece: HistoryPiece) -> EpochRows:
    rows: Any = piece.rows
    return _rows({source: _ManySpans(spans) for source, spans in rows.items()})


class _ManySpans(list[Span]):
    """Spans of so many rows that they are computed beside the epochs."""

    few = None


def _rows(spans: Mapping[str, Any]) -> EpochRows:
    """Rows as spans in place of DataFrames."""
    return EpochRows(frames=spans, nbytes=0, parallelism=1, time_us=0)

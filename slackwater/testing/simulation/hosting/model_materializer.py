"""The materializer without Spark: model views on the simulated root."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from actors.protocol.blocks import Block, Correction
from slackwater.testing.simulation.hosting.model_datasets import ModelDatasets
from slackwater.testing.simulation.hosting.model_full_view import ModelFullView, ModelPlannedView
from slackwater.testing.simulation.hosting.model_stored_rows import ModelStoredRows
from slackwater.testing.simulation.promises.model_view import ModelView
from slackwater.testing.simulation.world.file_rows import SCHEMA, Span
from slackwater.testing.simulation.world.simulated_root import SimulatedRoot
from spark_bridge.analysis.declaration import Declaration
from spark_bridge.analysis.view_definition import ViewDefinition
from spark_bridge.analysis.view_plan import ViewPlan
from spark_bridge.hand_over.epoch_rows import EpochRows, EpochViews
from spark_bridge.hand_over.history import HistoryPiece, OpenHistory
from spark_bridge.views.backfills import Backfills
from spark_bridge.views.full_views import FullViews
from state.clock import Clock
from state.errors import ProtocolError, SlackwaterError
from state.tables.records import CatalogView, ViewVersion
from state.tables.stored_rows import base_name, is_stored_rows, next_name, stored_versions

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

    from spark_bridge.views.view import ShownView

_TIDY = 0.2
_Work = Callable[[], ViewVersion]


class ModelMaterializer:
    """See `ViewMaterializer`: `spark_bridge.materializer.Materializer` over model views, by the same backfills.

    Args:
        views: the models of all views that may be declared.
        stored_rows: materialized source → the model of its stored rows.
        root: by the materializer's way.
        clock: measures pieces of history.
        random: picks the order of the views.
        read: the rows of a block.
        open_history: gives a backfill the rows from before it.
        thread: recomputes full views.
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
        open_history: OpenHistory,
        thread: Executor,
    ) -> None:
        self._models = views
        self._stored_rows, self._root, self._random, self._read = stored_rows, root, random, read
        self._plans = {name: _plan_of(view) for name, view in self._models.items()}
        self._open: dict[str, ModelDatasets] = {}
        self._open_stored: dict[str, ModelStoredRows] = {}
        self._declared: set[str] = set()
        self._schemas: Mapping[str, pa.Schema | None] = {}
        self._versions: dict[str, ViewVersion] = {}
        self._begun: dict[str, ViewVersion] = {}
        self._new: set[str] = set()
        self._dropped: set[str] = set()
        self._ingested: set[str] = set()
        self._clock, self._rows_epoch = clock, 0
        self._full = FullViews(self._full_view, lambda _, refresh: refresh(), thread)
        self._backfills = Backfills(self._make, open_history, _rows_of_piece, clock)

    def open(self, views: Mapping[str, ViewVersion], epoch: int, ingested: Set[str]) -> None:
        self._versions = {name: view for name, view in views.items() if view.pinned_epoch is None}
        self._begun = {name: view for name, view in views.items() if view.pinned_epoch is not None}
        self._rows_epoch = epoch
        self._ingested = {*ingested}

    def declare(
        self,
        definitions: Sequence[ViewDefinition],
        schemas: Mapping[str, pa.Schema | None],
        known: Mapping[str, CatalogView],
    ) -> Declaration:
        by_name = {definition.name: definition for definition in definitions}
        plans = {name: self._plans[name] for name in by_name if all(map(schemas.get, self._models[name].sources))}
        declaration = Declaration.of(by_name, plans, known, self._ingested)
        self._schemas = schemas
        full = {
            name: ModelPlannedView(by_name[name], plan) for name, plan in plans.items() if self._models[name].is_full
        }
        backfills = {name: plans[name] for name in declaration.backfills if name not in full}
        self._declared = plans.keys() - backfills.keys() - full.keys()
        self._new = {name for name in declaration.new if name not in full}
        self._dropped.update(declaration.abandoned)
        begun = {name: each for name, each in self._begun.items() if name not in self._dropped}
        self._backfills.declare(by_name, backfills, begun)
        planned: Any = full
        self._full.declare(planned, {*declaration.new, *declaration.backfills}, begun, self._versions)
        self._begun = {}
        return declaration

    def drop(self, name: str) -> None:
        self._backfills.drop(name)
        self._full.drop(name)
        self._open.pop(name, None)
        self._dropped.update([name, next_name(name)])

    def run_epoch(
        self, epoch: int, blocks: Mapping[str, Sequence[Block]], corrections: Sequence[Correction]
    ) -> EpochViews:
        rows = _rows({source: self._rows_of(source, of) for source, of in blocks.items()})
        ended = self._end_dropped()
        created = self._apply(epoch, rows, blocks)
        corrected = self._correct(epoch, corrections)
        restarted = self._backfills.restart(corrected)
        created = [each for each in created if each.name not in restarted]
        self._dropped |= self._backfills.take_restarted()
        created += self._show_complete(epoch)
        created += self._show_recomputed(epoch)
        dropped = tuple(sorted({*ended, *self._end_dropped()}))
        self._new.clear()
        self._ingested |= blocks.keys()
        if blocks or corrected or not self._rows_epoch:
            self._rows_epoch = epoch
        self._full.on_rows(corrected.union(blocks))
        self._begin_recomputation()
        views = {**self._versions, **self._backfills.recorded(), **self._full.recorded(epoch)}
        return EpochViews(views, tuple(created), dropped, ())

    def backfill(self) -> bool:
        self._begin_recomputation()
        due = self._backfills.next_due()
        return due is not None and self._backfills.take_piece(due)

    def tidy(self) -> None:
        """Tidies one view or the stored rows of one source, now and then; else the backfills."""
        if self._random.random() >= _TIDY:
            return
        kept: list[ModelDatasets | ModelStoredRows] = [*self._open.values(), *self._open_stored.values()]
        if not (kept and self._random.choice(kept).tidy()):
            self._backfills.tidy()

    def close(self) -> None:
        pass

    def shown(self) -> list[ShownView]:
        return []

    def columns(self) -> dict[str, tuple[str, ...]]:
        return {}

    @property
    def has_news(self) -> bool:
        return bool(self._new or self._dropped) or self._backfills.has_news or self._full.has_news

    @property
    def behind(self) -> frozenset[str]:
        return self._full.behind

    @property
    def backfilling(self) -> dict[str, float]:
        return self._backfills.fractions

    @property
    def blocked(self) -> dict[str, tuple[str, ...]]:
        return self._backfills.blocked

    # -- inside ----------------------------------------------------------------------------------------------------

    def _rows_of(self, source: str, blocks: Sequence[Block]) -> list[Span]:
        """The rows of blocks.

        Raises:
            ProtocolError: they have a column that the last declaration did not know.
        """
        schema = self._schemas.get(source)
        if schema is None or not all({*schema.names}.issuperset(block.columns) for block in blocks):
            raise ProtocolError(f"rows of {source} have other columns than its schema {schema}")
        return [span for block in blocks for span in self._read(block)]

    def _apply(self, epoch: int, rows: EpochRows, blocks: Mapping[str, Sequence[Block]]) -> list[CatalogView]:
        """Writes the new rows into all views and stored rows.  Returns the views that the epoch creates."""
        views: dict[str, _Work] = {
            name: partial(self._bring_up_to_date, epoch, name, rows)
            for name in sorted(self._declared)
            if name not in self._versions or not self._models[name].sources.isdisjoint(rows.frames)
        }
        stored = {source: [each.stored for each in of if each.stored is not None] for source, of in blocks.items()}
        for source, of in stored.items():
            if of:
                views[self._stored_rows[source].name] = partial(self._stored(source).apply, of)
        full = self._full.create_work(epoch)
        late = self._backfills.work(epoch, rows, blocks)
        new = [name for name in views if name not in self._versions and not is_stored_rows(name)]
        new += [name for name in self._backfills.not_created if name in late]
        new += full
        versions = self._run({**views, **full, **late})
        self._versions.update({name: versions[name] for name in views})
        return [self._catalog_view(name, epoch) for name in new]

    def _bring_up_to_date(self, epoch: int, name: str, rows: EpochRows) -> ViewVersion:
        return self._opened(name).apply(rows) if name in self._versions else self._created(epoch, name, rows)

    def _created(self, epoch: int, name: str, rows: EpochRows) -> ViewVersion:
        view = self._open[name] = self._make(self._plans[name])
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
                self._versions[version.name] = version
        self._versions.update(
            self._run(
                {
                    name: partial(self._compute_again, name)
                    for name in sorted(self._declared)
                    if not sources.isdisjoint(self._models[name].sources)
                }
            )
        )
        return sources

    def _compute_again(self, name: str) -> ViewVersion:
        return self._opened(name).correct(
            _rows({each: self._stored(each).rows() for each in self._models[name].sources})
        )

    def _stored(self, source: str) -> ModelStoredRows:
        if source not in self._open_stored:
            model = self._stored_rows[source]
            self._open_stored[source] = ModelStoredRows(model, self._root, self._versions.get(model.name))
        return self._open_stored[source]

    def _show_complete(self, epoch: int) -> list[CatalogView]:
        created = []
        for complete in self._backfills.take_complete():
            name = complete.plan.name
            self._versions[name] = complete.finished()
            self._declared.add(name)
            self._dropped.add(next_name(name))
            created.append(self._catalog_view(name, epoch))
        return created

    def _show_recomputed(self, epoch: int) -> list[CatalogView]:
        finished = self._full.take_finished()
        if finished is None:
            return []
        name = finished.version.name
        self._versions[name] = finished.version
        if not finished.is_first:
            return []
        self._dropped.add(next_name(name))
        return [self._catalog_view(name, epoch)]

    def _begin_recomputation(self) -> None:
        self._full.begin_due(self._clock.monotonic(), self._rows_epoch, stored_versions(self._versions))

    def _full_view(self, planned: Any) -> ModelFullView:
        return ModelFullView(self._models[planned.plan.name], planned, self._root)

    def _end_dropped(self) -> set[str]:
        """Ends the views that were dropped so far; one of their names that the epoch creates is another view."""
        dropped, self._dropped = self._dropped, set()
        for name in dropped:
            self._versions.pop(name, None)
        return dropped

    def _run(self, work: Mapping[str, _Work]) -> dict[str, ViewVersion]:
        """Does all pieces of work, in any order, as `SparkJobs` does; then the first failure is raised."""
        names, versions, failures = list(work), dict[str, ViewVersion](), list[SlackwaterError]()
        self._random.shuffle(names)
        for name in names:
            try:
                versions[name] = work[name]()
            except SlackwaterError as error:
                failures.append(error)
        if failures:
            raise failures[0]
        return versions

    def _make(self, plan: ViewPlan) -> ModelDatasets:
        return ModelDatasets(self._models[plan.name], self._root)

    def _opened(self, name: str) -> ModelDatasets:
        if name not in self._open:
            self._open[name] = ModelDatasets(self._models[name], self._root, self._versions[name])
        return self._open[name]

    def _catalog_view(self, name: str, epoch: int) -> CatalogView:
        plan = self._plans[base_name(name)]
        return CatalogView(name, plan.view_class, plan.definition, plan.identity, plan.sources, plan.key, epoch)


def definition_of(view: ModelView) -> ViewDefinition:
    """The declaration of a model view; nothing reads its query."""
    return ViewDefinition(view.name, query=f"SELECT * FROM {', '.join(sorted(view.sources))}")


def _plan_of(view: ModelView) -> ViewPlan:
    nothing: Any = None
    return ViewPlan(
        name=view.name,
        view_class="full" if view.is_full else "aggregate" if view.has_state else "append",
        sources=tuple(sorted(view.sources)),
        columns={source: frozenset() for source in view.sources},
        schema=SCHEMA,
        key=(),
        identity=view.name,
        definition=view.name,
        reason="",
        plan=nothing,
        timestamps=nothing,
        leaves={},
    )


def _rows_of_piece(epoch: int, piece: HistoryPiece) -> EpochRows:
    return _rows(piece.tables)


def _rows(spans: Mapping[str, Any]) -> EpochRows:
    """Rows as spans in place of DataFrames."""
    return EpochRows(frames=spans, nbytes=0, parallelism=1, time_us=0)

"""Runs every view over an epoch's new rows and writes its new version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import pyarrow as pa
from pyspark.sql import SparkSession

from actors.messages import Block
from spark_bridge.aggregate_view import AggregateView
from spark_bridge.analysis import SourceWithoutSchemaError, analyse
from spark_bridge.append_view import AppendView
from spark_bridge.catalyst import Catalyst
from spark_bridge.epoch_rows import EpochRows, EpochViews
from spark_bridge.hand_over import frame_of_blocks
from spark_bridge.spark_jobs import SparkJobs
from spark_bridge.stored_rows import StoredRows
from spark_bridge.used_columns import columns_to_read
from spark_bridge.view_definition import ViewDefinition
from spark_bridge.view_plan import APPEND, ViewPlan
from spark_bridge.visible_columns import visible_schemas
from state.clock import Clock, SystemClock
from state.errors import DefinitionChangedError, ViewError
from state.location import Location
from state.records import CatalogView, ViewVersion
from state.stored_rows import stored_rows_name

_ROWS = "over the rows of an epoch"


class View(Protocol):
    """One view's datasets; one epoch after the other."""

    def create(self, epoch: int, rows: EpochRows) -> ViewVersion:
        """Makes the view in this epoch, with its rows."""

    def open(self, version: ViewVersion) -> None:
        """Goes on from a recorded version."""

    def apply(self, rows: EpochRows) -> ViewVersion:
        """Brings the view up to date with an epoch's rows."""

    def tidy(self) -> bool:
        """Does one bounded task that keeps the view's datasets fast; whether one was due."""


@dataclass(frozen=True)
class Declaration:
    """What the declared views are, against what the catalog has.

    Args:
        plans: the views that can be maintained, by name.
        new: those of them that the catalog does not have.
        thawed: those of them that were frozen, and are declared again.
        frozen: views of the catalog that are not declared.
        waiting: declared views that read a source whose schema is not known yet.
    """

    plans: Mapping[str, ViewPlan]
    new: tuple[str, ...]
    thawed: tuple[str, ...]
    frozen: tuple[str, ...]
    waiting: tuple[str, ...]


class Materializer:
    """Keeps the declared views up to date, in the process that holds the SparkSession.

    Args:
        spark: the session.
        root: where the pipeline writes.
        clock: measures how long an epoch takes.
    """

    def __init__(self, spark: SparkSession, root: Location, clock: Clock | None = None) -> None:
        self._spark = spark
        self._catalyst = Catalyst(spark)
        self._root = root
        self._clock = clock or SystemClock()
        self._parallelism = int(spark.sparkContext.defaultParallelism)
        self._definitions: dict[str, ViewDefinition] = {}
        self._plans: dict[str, ViewPlan] = {}
        self._schemas: Mapping[str, pa.Schema | None] = {}
        self._visible: Mapping[str, Mapping[str, pa.Schema | None]] = {}
        self._versions: dict[str, ViewVersion] = {}
        self._views: dict[str, View] = {}
        self._stored: dict[str, StoredRows] = {}
        self._jobs = SparkJobs(spark)

    def declare(
        self,
        definitions: Sequence[ViewDefinition],
        schemas: Mapping[str, pa.Schema | None],
        known: Mapping[str, CatalogView],
    ) -> Declaration:
        """Analyses the declared views.  Call it again when a source's schema becomes known.

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
        names = [definition.name for definition in definitions]
        for name in names:
            if names.count(name) > 1:
                raise ViewError(f"view {name!r} is declared twice; rename one of them")
        plans: dict[str, ViewPlan] = {}
        visible: dict[str, Mapping[str, pa.Schema | None]] = {}
        waiting: list[str] = []
        for definition in definitions:
            seen = visible[definition.name] = visible_schemas(schemas, known.get(definition.name))
            try:
                work = {definition.name: partial(self._plan, definition, seen)}
                plan = self._jobs.run("view", "while it was analysed", work)[definition.name]
            except SourceWithoutSchemaError:
                waiting.append(definition.name)
                continue
            if definition.name in known:
                _require_same(known[definition.name], plan)
            plans[definition.name] = plan
        self._definitions = {definition.name: definition for definition in definitions}
        self._plans = plans
        self._schemas, self._visible = dict(schemas), visible
        return Declaration(
            plans=plans,
            new=tuple(name for name in plans if name not in known),
            thawed=tuple(name for name in plans if name in known and known[name].frozen_epoch is not None),
            frozen=tuple(name for name in known if name not in names),
            waiting=tuple(waiting),
        )

    def open(self, views: Mapping[str, ViewVersion]) -> None:
        """Goes on from these versions, and from nothing else: what was written since is not built upon.

        Raises:
            StorageError: a version cannot be opened.
        """
        self._versions = dict(views)
        self._views, self._stored = {}, {}
        for name in self._plans:
            if name in views:
                self._opened(name)

    def run_epoch(self, epoch: int, blocks: Mapping[str, Sequence[Block]]) -> EpochViews:
        """Brings every view up to date with the epoch's rows, and creates those that are declared and not there.

        A view without new rows keeps its version.  When one view fails the others are finished first, so that nothing
        goes on behind the caller's back.

        Args:
            epoch: its number names the datasets of the views that it creates.
            blocks: the new rows of each source; the references are held until all views are written.

        Raises:
            CommitRefusedError: somebody else has written to a view.
            CommitUnknownError: the outcome of a view's commit is not known.
            SparkLostError: the Spark application is gone.
            RunFailedError: Spark failed; the message names the view.
        """
        started = self._clock.monotonic()
        with_rows = {source: filled for source, each in blocks.items() if (filled := [b for b in each if b.rows])}
        read = {source for plan in self._plans.values() for source in plan.sources}
        hand_overs = {
            source: partial(frame_of_blocks, self._spark, self._schema(source), each)
            for source, each in with_rows.items()
            if source in read
        }
        rows = EpochRows(
            frames=self._jobs.run("source", _ROWS, hand_overs),
            nbytes=sum(block.nbytes for each in with_rows.values() for block in each),
            parallelism=self._parallelism,
        )
        due = [
            plan
            for name, plan in self._plans.items()
            if name not in self._versions or any(source in with_rows for source in plan.sources)
        ]
        work = {plan.name: partial(self._bring_up_to_date, epoch, plan, rows) for plan in due}
        for source, each in with_rows.items():
            if stored := [block.stored for block in each if block.stored is not None]:
                work[stored_rows_name(source)] = partial(self._stored_rows(source).apply, stored)
        versions = self._jobs.run("view", _ROWS, work)
        created = tuple(self._catalog_view(plan, epoch) for plan in due if plan.name not in self._versions)
        self._versions.update(versions)
        return EpochViews(dict(self._versions), created, self._clock.monotonic() - started)

    def columns(self) -> dict[str, tuple[str, ...]]:
        """Source → the columns that the views use which are planned so far."""
        used: dict[str, list[frozenset[str]]] = {}
        for plan in self._plans.values():
            for source, columns in plan.columns.items():
                used.setdefault(source, []).append(columns)
        return {source: columns_to_read(self._schema(source), each) for source, each in used.items()}

    def tidy(self) -> None:
        """Does at most one bounded task that keeps the views' datasets fast: call it between two epochs.

        It makes a version that no epoch names, and that the next epoch with rows builds upon.

        Raises:
            CommitRefusedError, CommitUnknownError: as `run_epoch`; recover in the same way.
        """
        maintained: list[View | StoredRows] = [*self._views.values(), *self._stored.values()]
        for each in maintained:
            if each.tidy():
                return

    def close(self) -> None:
        """Ends the threads; the session is the caller's."""
        self._jobs.close()

    def _plan(self, definition: ViewDefinition, schemas: Mapping[str, pa.Schema | None]) -> ViewPlan:
        """The plan of before when nothing that it depends on has changed: analysing takes 0.1 s."""
        plan = self._plans.get(definition.name)
        if (
            plan is not None
            and self._definitions[definition.name] == definition
            and all(self._visible[definition.name].get(each) == schemas.get(each) for each in plan.sources)
        ):
            return plan
        self._views.pop(definition.name, None)
        return analyse(self._spark, definition, schemas)

    def _schema(self, source: str) -> pa.Schema:
        schema = self._schemas[source]
        assert schema is not None, "a view is planned only when its sources' schemas are known"
        return schema

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

    def _catalog_view(self, plan: ViewPlan, epoch: int) -> CatalogView:
        visible = {name: schema for name, schema in self._visible[plan.name].items() if schema is not None}
        return CatalogView(
            name=plan.name,
            view_class=plan.view_class,
            definition=plan.definition,
            identity=plan.identity,
            sources=plan.sources,
            key=plan.key,
            created_epoch=epoch,
            visible={source: tuple(visible[source].names) for source in plan.sources},
        )


def _require_same(known: CatalogView, plan: ViewPlan) -> None:
    if known.identity == plan.identity:
        return
    old, new = " ".join(known.definition.split()), " ".join(plan.definition.split())
    change = f"is stored as: {old}; it is declared as: {new}"
    if old == new:
        change = "is stored with other types of its columns, or with other Python functions, than it is declared with"
    raise DefinitionChangedError(f"view {plan.name!r} {change}; declare it as it was, or under another name")

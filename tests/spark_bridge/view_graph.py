"""Views over views, over files that are replaced and forgotten, and Spark's own answers over the present files."""

from __future__ import annotations

import random
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from slackwater.backfill.stored_history import StoredHistory
from spark_bridge.engine.catalyst.arrow_frames import arrow_schema, frame_of_table, table_of_frame
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.current_rows import RowKeys
from spark_bridge.engine.catalyst.queries import analysed
from spark_bridge.ingest.epoch_rows import EpochViews
from spark_bridge.ingest.history import HistoryPiece
from spark_bridge.materializer import Materializer
from spark_bridge.plans.total_order import TotalOrder
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from state.lance.view_dataset import restore
from state.store.restored_views import restored_views
from state.tables.records import CatalogView, ViewVersion
from state.tables.stored_rows import declared_name, stored_versions
from tests.spark_bridge.corrected_view import CorrectedView, Files
from tests.spark_bridge.random_rows import SCHEMA, random_rows
from tests.spark_bridge.same_rows import difference
from tests.spark_bridge.ways_of_rows import as_if_many, kept_at_once

IDLE: Files = {}
_STALLED_S, _POLL_S = 120.0, 0.02
_PIECE_BYTES = 100
_ANSWERS_AT_ONCE = 2
_OF_AN_ORDER = ("OVER", "LIMIT", "OFFSET", "MAX_BY", "MIN_BY")


class SmallPieces(StoredHistory):
    """The history of stored rows, three rows or so at a time."""

    def take(self, nbytes: int) -> HistoryPiece | None:
        return super().take(_PIECE_BYTES)


class ViewGraph(CorrectedView):
    """Views over materialized sources; each must have the rows that Spark computes from `files`.

    Attributes:
        definitions: the declared views; a view comes after those that it reads.
        plans: name → plan of each.

    Args:
        has_many_rows: whether Spark reads Parquet files for its answers, and compiles code for them, which takes longer
            unless there are many rows.
            Others as for `CorrectedView`.
    """

    def __init__(
        self,
        spark: SparkSession,
        root: Path,
        definitions: Sequence[ViewDefinition],
        sources: Sequence[str] = ("t",),
        schema: pa.Schema | Mapping[str, pa.Schema] = SCHEMA,
        keys: RowKeys = MappingProxyType({}),
        *,
        has_many_rows: bool = False,
    ) -> None:
        self.definitions, self.keys = list(definitions), keys
        self.plans: Mapping[str, ViewPlan] = {}
        self._term = 1
        self._stored_at: dict[int, dict[str, ViewVersion]] = {}
        self._known: dict[str, CatalogView] = {}
        self._oracle = spark.newSession() if has_many_rows else _interpreting_session(spark)
        self._written = WrittenFiles(root / "written") if has_many_rows else None
        super().__init__(spark, root, definitions[-1], sources, schema)

    def new_materializer(self) -> Materializer:
        materializer = Materializer(
            self.spark,
            self.root,
            materialized=self.schemas,
            replacing=self.schemas,
            open_history=self._history,
            backfill_weight=1,
            keys=self.keys,
        )
        if self.epoch:
            ingested = {source for source, rows in self.rows.items() if rows.num_rows}
            materializer.open(self.views, self.epoch, ingested)
        self._declare(materializer)
        return materializer

    def declare(self, definitions: Sequence[ViewDefinition], dropped: Collection[str] = ()) -> None:
        """Declares other views from now on; dropped views end with the next epoch."""
        self.definitions = list(definitions)
        self.catalog = {name: each for name, each in self.catalog.items() if declared_name(name) not in dropped}
        self._declare(self.materializer, dropped)

    def reopen(self) -> None:
        """Ends the attempt; the next one takes the root over, and continues from the last epoch."""
        self.materializer.close()
        self._term += 1
        self.views = restored_views(self.views, lambda view: restore(self.root, view, self._term))
        self.materializer = self.new_materializer()

    def correct(self, new: Files, replaced: Mapping[tuple[str, str], pa.Table | None] = IDLE) -> EpochViews:
        self._known = dict(self.catalog)
        done = super().correct(new, replaced)
        self._stored_at[self.epoch] = stored_versions(self.views)
        return self.after(done)

    def after(self, done: EpochViews) -> EpochViews:
        self.catalog = dict(
            done.catalog({name: each for name, each in self.catalog.items() if name not in done.dropped})
        )
        return done

    def settle(self) -> None:
        """Runs epochs without rows, when there is something to record, until every view is shown."""
        until, known = time.monotonic() + _STALLED_S, self.materializer.backfilling
        while (now := self.materializer.backfilling) or self.materializer.has_news():
            if now != known:
                until, known = time.monotonic() + _STALLED_S, now
            assert time.monotonic() < until, f"never shown: {now}"
            if self.materializer.has_news():
                self.correct({})
            elif not self.materializer.backfill():
                time.sleep(_POLL_S)

    def check(self, *names: str) -> None:
        """Asserts that these views, or all of them, equal Spark's answers."""
        names = names or tuple(each.name for each in self.definitions)
        answers = self.answers(names)
        for name in names:
            wrong = difference(self.shown(name), answers[name], (), {})
            assert wrong is None, f"{name} at epoch {self.epoch}: {wrong}"

    def shown(self, name: str) -> pa.Table:
        """The rows that a reader sees in a view."""
        stored = self.open(self.root, self.views[name])
        return stored.to_table([each for each in stored.schema.names if not each.startswith("__sw_")])

    def answers(self, wanted: Collection[str]) -> dict[str, pa.Table]:
        """Name → Spark's answer over all present rows, of the wanted views, where ties are told apart by the rows."""
        spark = self._oracle
        catalyst = Catalyst(spark)
        frames = {name: self._frame(name, table) for name, table in self.seen().items()}
        names = [*frames]
        answers = {}
        read: set[str] = set()
        for each in reversed(self.definitions):
            if each.name in wanted or each.name in read:
                read |= each.mentions({view.name for view in self.definitions} - {each.name})
        for name, frame in frames.items():
            frame.createOrReplaceTempView(name)
        for definition in self.definitions:
            if definition.function is None:
                frame = spark.sql(definition.query or "")
            else:
                frame = definition.function(**{each: spark.table(each) for each in definition.parameters})
            if _may_have_ties(definition):
                frame = catalyst.queries.frame(TotalOrder(catalyst, definition.name).of(analysed(frame)))
            if definition.name in read:
                # Spark refuses some queries that read the plan of another one twice.
                frame = frame_of_table(spark, _collected(frame))
            if definition.name in wanted:
                answers[definition.name] = frame
            frame.createOrReplaceTempView(definition.name)
            names.append(definition.name)
        with ThreadPoolExecutor(_ANSWERS_AT_ONCE) as threads:
            collected = dict(zip(answers, threads.map(_collected, answers.values()), strict=True))
        for name in names:
            spark.catalog.dropTempView(name)
        return collected

    def seen(self) -> Mapping[str, pa.Table]:
        """Source → the rows that views see of it."""
        return self.rows

    def _frame(self, source: str, rows: pa.Table) -> DataFrame:
        """The present rows of a source, for an answer."""
        if self._written is None or not rows.num_rows:
            return frame_of_table(self._oracle, rows)
        paths = [self._written.path(table) for (name, _), table in self.files.items() if name == source]
        return self._oracle.read.parquet(*paths)

    def _history(self, plan: ViewPlan, since: int, epoch: int, progress: str | None) -> SmallPieces:
        stored, had = (
            {source: each for source, each in self._stored_at.get(at, {}).items() if source in plan.sources}
            for at in (epoch, since)
        )
        return SmallPieces(self.root, stored, self.schemas, plan.columns, progress, had)

    def _declare(self, materializer: Materializer, dropped: Collection[str] = ()) -> None:
        known = {name: replace(each) for name, each in self.catalog.items()} if self.epoch else {}
        self.plans = materializer.declare(self.definitions, self.schemas, known, dropped).plans
        self.plan = self.plans[self.definitions[-1].name]


class WrittenFiles:
    """Parquet files of tables, each written once."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._tables: dict[int, pa.Table] = {}  # keeps them, so that no other one gets the id

    def path(self, table: pa.Table) -> str:
        path = self._place / f"{id(table)}.parquet"
        if id(table) not in self._tables:
            self._place.mkdir(exist_ok=True)
            pq.write_table(table, path)
            self._tables[id(table)] = table
        return str(path)


def _interpreting_session(spark: SparkSession) -> SparkSession:
    """A session that compiles no code for a query: its answers are of few rows, and views use compiled code."""
    session = spark.newSession()
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    return session


def _may_have_ties(definition: ViewDefinition) -> bool:
    query = (definition.query or "").upper()
    return definition.function is not None or any(each in query for each in _OF_AN_ORDER)


def _collected(frame: DataFrame) -> pa.Table:
    return table_of_frame(frame, arrow_schema(frame.schema))


def random_files(graph: ViewGraph, chance: random.Random) -> tuple[Files, dict[tuple[str, str], pa.Table | None]]:
    """Files of random rows for the next epoch: new ones of some sources, and other rows, or none, of present ones."""
    new = {
        (source, f"f{graph.epoch}"): random_rows(chance, chance.choice([1, 4, 9]))
        for source in graph.schemas
        if chance.random() < 0.6
    }
    replaced: dict[tuple[str, str], pa.Table | None] = {}
    for file in chance.sample(sorted(graph.files), min(len(graph.files), chance.choice([0, 1, 2, 3]))):
        replaced[file] = chance.choice([None, random_rows(chance, chance.choice([0, 3, 6]))])
    return new, replaced


def random_epoch(graph: ViewGraph, chance: random.Random) -> None:
    """An epoch of such files; then every view must equal Spark's answer."""
    graph.correct(*random_files(graph, chance))
    graph.check()


def follow_in_all_ways(graph: ViewGraph, chance: random.Random) -> None:
    """Epochs of few rows, then with look-ups in memory, then with rows as if they were many, which all leave once."""
    for _ in range(4):
        random_epoch(graph, chance)
    with kept_at_once():
        graph.reopen()
    for _ in range(4):
        random_epoch(graph, chance)
    with as_if_many():
        for _ in range(2):
            random_epoch(graph, chance)
        graph.correct({}, dict.fromkeys(graph.files))
        graph.check()
        random_epoch(graph, chance)
    graph.materializer.close()


def follow_to_the_end(graph: ViewGraph) -> None:
    """Further epochs and a further attempt, with files that are replaced and that leave, at last all of them."""
    chance = random.Random(9)
    for number in range(4):
        random_epoch(graph, chance)
        if number == 1:
            graph.reopen()
    graph.correct({}, dict.fromkeys(graph.files))
    graph.check()
    graph.materializer.close()


def follow_late(spark: SparkSession, root: Path, view: ViewDefinition, chance: random.Random) -> None:
    """Epochs of a view over `t` and `u` that is declared when these have rows, which tasks compute it from."""
    total = ViewDefinition("total", "SELECT g, count(*) AS n FROM u GROUP BY g")
    graph = ViewGraph(spark, root, [total], ("t", "u"))
    graph.correct({("t", f"{number}"): random_rows(chance, 30) for number in range(3)})
    graph.correct({("u", f"{number}"): random_rows(chance, 10) for number in range(3)})
    graph.declare([total, view])
    with as_if_many():
        graph.settle()
    graph.check()
    for _ in range(4):
        random_epoch(graph, chance)
    graph.materializer.close()

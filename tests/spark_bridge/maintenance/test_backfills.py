"""A backfill equals Spark's answer over all rows, wherever it is interrupted, and is hidden before."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_bridge.ingest.history import HistoryPiece
from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from state.errors import RunFailedError
from state.lance import view_dataset
from state.location import Location
from state.store.restored_views import restored_views
from state.tables.records import CatalogView, ViewVersion
from state.tables.stored_rows import declared_name
from tests.cases import few
from tests.spark_bridge.followed_view import FollowedView, blocks
from tests.spark_bridge.random_rows import SCHEMA, random_rows

EARLY = ViewDefinition("early", "SELECT k, count(*) AS n FROM t GROUP BY k")
QUERIES = {
    "grouped": "SELECT k, count(*) AS n, sum(i) AS s, max(day) AS d FROM t GROUP BY k",
    "having": "SELECT k, sum(i) AS s FROM t GROUP BY k HAVING sum(i) > 0",
    "one_row": "SELECT count(*) AS n, min(i) AS lo FROM t",
    "appended": "SELECT k, i FROM t WHERE i > 0",
}


class Rows:
    """A history of ingested rows, in pieces of seven.  `lost` positions are in files that are deleted."""

    is_stored = False

    def __init__(self, rows: pa.Table, begin: int, lost: Sequence[int] = ()) -> None:
        self._rows, self._at, self._lost = rows, begin, lost
        self.missing: list[str] = []

    @property
    def fraction(self) -> float:
        return float(self._at / max(1, self._rows.num_rows))

    def take(self, nbytes: int) -> HistoryPiece | None:
        piece = self._rows.slice(self._at, 7)
        self.missing += [f"file {each}" for each in self._lost if self._at <= each < self._at + piece.num_rows]
        self._at += piece.num_rows
        return HistoryPiece({"t": piece}, piece.nbytes, json.dumps(self._at)) if piece.num_rows else None

    def close(self) -> None:
        pass


class Pipeline:
    """A materializer with an early view; its epochs are committed at once."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark, self.root = spark, Location(str(root))
        self.epoch = self.term = 0
        self.ingested: dict[int, pa.Table] = {0: SCHEMA.empty_table()}
        self.views: dict[str, ViewVersion] = {}
        self.known: dict[str, CatalogView] = {}
        self.lost: Sequence[int] = ()
        self.materializer = self.recovered()

    def recovered(self) -> Materializer:
        materializer = Materializer(self.spark, self.root, open_history=self._history, backfill_weight=1)
        ingested = frozenset("t") if self.ingested[self.epoch].num_rows else frozenset[str]()
        materializer.open(self.views, self.epoch, ingested)
        return materializer

    def declare(self, *definitions: ViewDefinition, dropped: Sequence[str] = ()) -> None:
        self.definitions = definitions
        self.known = {name: each for name, each in self.known.items() if declared_name(name) not in dropped}
        self.materializer.declare(definitions, {"t": SCHEMA}, self.known, dropped)

    def crash(self) -> None:
        """Continues in a new materializer from the recorded versions; versions written later are lost."""
        self.materializer.close()
        self.term += 1
        self.views = restored_views(self.views, lambda view: view_dataset.restore(self.root, view, self.term))
        self.materializer = self.recovered()
        self.declare(*self.definitions)

    def run(self, rows: pa.Table, columns: Sequence[str] | None = None) -> None:
        self.epoch += 1
        block = rows if columns is None else rows.select(columns)
        done = self.materializer.run_epoch(self.epoch, {"t": blocks(block)} if rows.num_rows else {})
        self.ingested[self.epoch] = pa.concat_tables([self.ingested[self.epoch - 1], rows])
        kept = {name: view for name, view in self.views.items() if name not in done.dropped}
        self.views = {**kept, **done.views}
        self.known = done.catalog(self.known)

    def finish(self, chance: random.Random) -> None:
        for _ in range(100):
            if self.materializer.backfill():
                continue
            self.run(random_rows(chance, chance.choice([0, 3])))
            if not self.materializer.backfilling:
                return
        raise AssertionError("the backfill did not become complete")

    def check(self, definition: ViewDefinition) -> None:
        reference = FollowedView(self.spark, Path(self.root.path), definition, {"t": SCHEMA})
        reference.rows = {"t": self.ingested[self.epoch]}
        reference.views, reference.root = self.views, self.root
        reference.check()
        reference.materializer.close()

    def _history(self, plan: ViewPlan, since: int, epoch: int, progress: str | None) -> Rows:
        rows = (
            self.ingested[epoch]
            .slice(self.ingested[since].num_rows if since else 0)
            .select([name for name in SCHEMA.names if name in plan.columns["t"]] or ["k"])
        )
        return Rows(rows, json.loads(progress) if progress else 0, self.lost)


@pytest.fixture
def pipeline(local_spark: SparkSession, tmp_path: Path) -> Pipeline:
    made = Pipeline(local_spark, tmp_path)
    made.declare(EARLY)
    return made


@pytest.mark.parametrize("name", few(QUERIES, "having"))
def test_a_shown_backfill_is_complete_wherever_it_was_interrupted(pipeline: Pipeline, name: str) -> None:
    chance = random.Random(f"late {name}")
    added = ViewDefinition(name, QUERIES[name])
    for _ in range(3):
        pipeline.run(random_rows(chance, 12))
    pipeline.declare(EARLY, added)
    for _ in range(3):
        pipeline.run(random_rows(chance, chance.choice([0, 5])))
        assert name not in pipeline.views
        assert pipeline.views[f"{name}.next"].pinned_epoch == 3
        assert pipeline.materializer.backfill()
        if chance.random() < 0.7:
            pipeline.crash()
    pipeline.finish(chance)
    assert f"{name}.next" not in {*pipeline.views, *pipeline.known}
    assert pipeline.known[name].created_epoch == pipeline.epoch
    pipeline.check(added)
    pipeline.run(random_rows(chance, 9))
    pipeline.crash()
    pipeline.run(random_rows(chance, 9))
    pipeline.check(added)
    pipeline.check(EARLY)


@pytest.mark.more
def test_a_replacement_is_shown_when_it_is_complete_and_not_before(pipeline: Pipeline) -> None:
    chance = random.Random(2)
    for _ in range(2):
        pipeline.run(random_rows(chance, 12))
    before = pipeline.views["early"]
    other = ViewDefinition("early", QUERIES["grouped"], replace=True)
    pipeline.declare(other)
    pipeline.run(random_rows(chance, 5))
    assert pipeline.views["early"] == before
    pipeline.finish(chance)
    assert pipeline.views["early"].path != before.path
    pipeline.check(other)
    pipeline.crash()
    assert pipeline.materializer.backfilling == {}, "with replace=True the stored view is the declared one"


@pytest.mark.more
@pytest.mark.parametrize("is_replaced", [True, pytest.param(False, marks=pytest.mark.more)])
def test_a_row_of_the_history_that_the_view_cannot_compute_stops_the_backfill_alone(
    pipeline: Pipeline, is_replaced: bool
) -> None:
    chance, old = random.Random(5), ViewDefinition("v", QUERIES["appended"])
    pipeline.declare(EARLY, *([old] if is_replaced else []))
    pipeline.run(random_rows(chance, 12))
    before = pipeline.views.get("v")
    bad = ViewDefinition(
        "v", "SELECT k, sum(if(i < 0, raise_error('too low'), i)) AS s FROM t GROUP BY k", replace=True
    )
    pipeline.declare(EARLY, bad)
    pipeline.run(random_rows(chance, 0))
    assert pipeline.views["v.next"].pinned_epoch == 1
    while pipeline.materializer.backfill():
        pass
    for rows in (0, 3):
        pipeline.run(random_rows(chance, rows))
    failed = pipeline.known["v"]
    assert failed.error is not None and "too low" in failed.error
    assert failed.stopped_epoch == (1 if is_replaced else 0) and "v.next" not in {*pipeline.views, *pipeline.known}
    assert before is None or pipeline.views["v"] == before, "readers keep the old rows"
    pipeline.check(EARLY)
    good = ViewDefinition("v", QUERIES["grouped"], replace=True)
    pipeline.declare(EARLY, good)
    pipeline.finish(chance)
    assert pipeline.known["v"].error is None
    pipeline.check(good)


@pytest.mark.more
def test_rows_that_were_read_without_its_columns_become_history(pipeline: Pipeline) -> None:
    chance = random.Random(3)
    pipeline.run(random_rows(chance, 12))
    added = ViewDefinition("added", QUERIES["grouped"])
    pipeline.declare(EARLY, added)
    pipeline.run(random_rows(chance, 5), columns=["k"])
    assert "added.next" not in pipeline.views
    pipeline.run(random_rows(chance, 5))
    assert pipeline.views["added.next"].pinned_epoch == 2
    pipeline.run(random_rows(chance, 5), columns=["k"])
    assert "added.next" not in {*pipeline.views, *pipeline.known}, "it restarts"
    pipeline.finish(chance)
    pipeline.check(added)
    with pytest.raises(RunFailedError, match="view 'added': rows were read before it was added"):
        pipeline.run(random_rows(chance, 5), columns=["k"])


@pytest.mark.more
def test_a_view_with_a_missing_file_is_shown_only_if_allowed(pipeline: Pipeline) -> None:
    chance = random.Random(4)
    pipeline.run(random_rows(chance, 30))
    pipeline.lost = (10,)
    added = ViewDefinition("added", QUERIES["grouped"])
    pipeline.declare(EARLY, added)
    pipeline.run(random_rows(chance, 0))
    while pipeline.materializer.backfill():
        pass
    pipeline.run(random_rows(chance, 3))
    assert pipeline.materializer.blocked == {"added": ("file 10",)}
    assert "added" not in pipeline.views
    pipeline.crash()
    assert pipeline.materializer.blocked == {}, "the file may be back"
    pipeline.declare(EARLY, ViewDefinition("added", QUERIES["grouped"], on_missing="allow"))
    pipeline.finish(chance)
    assert pipeline.known["added"].missing == ("file 10",)


@pytest.mark.more
def test_an_undeclared_backfill_and_a_dropped_view_end_with_the_next_epoch(pipeline: Pipeline) -> None:
    chance = random.Random(5)
    pipeline.run(random_rows(chance, 12))
    pipeline.declare(EARLY, ViewDefinition("added", QUERIES["grouped"]))
    pipeline.run(random_rows(chance, 0))
    assert "added.next" in pipeline.views
    pipeline.declare(EARLY)
    pipeline.run(random_rows(chance, 0))
    assert "added.next" not in {*pipeline.views, *pipeline.known}
    pipeline.declare(dropped=["early"])
    pipeline.run(random_rows(chance, 4))
    assert (pipeline.views, pipeline.known) == ({}, {})


@pytest.mark.more
@pytest.mark.parametrize("rows", [0, 12])
def test_a_view_that_is_dropped_and_added_before_the_next_epoch_is_another_one(pipeline: Pipeline, rows: int) -> None:
    chance = random.Random(7)
    pipeline.run(random_rows(chance, rows))
    before = pipeline.views["early"].path
    pipeline.declare(EARLY, dropped=["early"])
    pipeline.finish(chance)
    assert pipeline.views["early"].path != before
    pipeline.check(EARLY)


@pytest.mark.more
def test_a_backfill_of_another_query_begins_again_in_the_next_run(pipeline: Pipeline) -> None:
    chance = random.Random(8)
    pipeline.run(random_rows(chance, 40))
    pipeline.declare(EARLY, ViewDefinition("added", "SELECT k, i FROM t WHERE i > 0"))
    pipeline.run(random_rows(chance, 3))
    assert pipeline.materializer.backfill()
    pipeline.run(random_rows(chance, 3))
    other = ViewDefinition("added", "SELECT k, i FROM t WHERE i < 0", replace=True)
    pipeline.definitions = (EARLY, other)
    pipeline.crash()
    pipeline.finish(chance)
    pipeline.check(other)


@pytest.mark.more
def test_pieces_that_no_epoch_recorded_are_merged_once(pipeline: Pipeline) -> None:
    chance = random.Random(6)
    pipeline.run(random_rows(chance, 40))
    added = ViewDefinition("added", QUERIES["grouped"])
    pipeline.declare(EARLY, added)
    pipeline.run(random_rows(chance, 0))
    for _ in range(2):
        assert pipeline.materializer.backfill()
    pipeline.crash()
    pipeline.finish(chance)
    pipeline.check(added)


@pytest.mark.more
def test_a_query_that_groups_within_is_hidden_until_its_internal_view_is_complete(pipeline: Pipeline) -> None:
    chance = random.Random(3)
    added = ViewDefinition(
        "twice", "SELECT n, count(*) AS keys FROM (SELECT k, count(*) AS n FROM t GROUP BY k) GROUP BY n"
    )
    for _ in range(2):
        pipeline.run(random_rows(chance, 12))
    pipeline.declare(EARLY, added)
    pipeline.run(random_rows(chance, 5))
    assert pipeline.materializer.backfill()
    assert "twice" not in pipeline.views and pipeline.views["twice.1.next"].pinned_epoch == 2
    assert 0 < pipeline.materializer.backfilling["twice"] < 1
    pipeline.crash()
    pipeline.finish(chance)
    assert {*pipeline.views} == {"early", "twice", "twice.1"} == {*pipeline.known}
    pipeline.run(random_rows(chance, 5))
    pipeline.check(added)

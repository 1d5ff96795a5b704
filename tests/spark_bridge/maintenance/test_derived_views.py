"""Views over views follow each epoch's changes, and equal Spark's answers at every epoch."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_bridge.ingest.epoch_rows import EpochRows, EpochViews
from spark_bridge.maintenance import parents_backfill
from spark_bridge.maintenance.parent_rows import ParentRows
from spark_bridge.operators.group import aggregate_view
from spark_bridge.operators.group.aggregate_plan import AggregatePlan
from spark_bridge.plans.view_definition import ViewDefinition
from tests.cases import few
from tests.spark_bridge.random_rows import random_rows
from tests.spark_bridge.view_graph import ViewGraph

BY_KEY = ViewDefinition("by_key", "SELECT k, g, count(*) AS n, sum(i) AS s, max(i) AS m FROM t GROUP BY k, g")
GRAPHS: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "projection": (("large", "append", "SELECT k, n * 2 AS twice FROM by_key WHERE s > 0"),),
    "regrouped": (
        ("by_k", "aggregate", "SELECT k, sum(n) AS n, count(*) AS groups, avg(s) AS a FROM by_key GROUP BY k"),
    ),
    "extremes": (
        ("by_k", "aggregate", "SELECT k, max(m) AS m, min(s) AS s, count(DISTINCT n) AS d FROM by_key GROUP BY k"),
    ),
    "one row": (("all", "aggregate", "SELECT sum(n) AS n, count(*) AS groups FROM by_key"),),
    "having": (
        ("some", "aggregate", "SELECT k, sum(s) AS s FROM t_by GROUP BY k HAVING sum(n) > 4"),
        ("sizes", "aggregate", "SELECT s > 0 AS positive, count(*) AS n FROM some GROUP BY s > 0"),
    ),
    "deep": (
        ("kept", "append", "SELECT k, n, s FROM by_key WHERE n > 1"),
        ("by_n", "aggregate", "SELECT n, count(*) AS keys, sum(s) AS s FROM kept GROUP BY n"),
        ("named", "append", "SELECT concat('n', n) AS name, keys, s FROM by_n"),
        ("top", "aggregate", "SELECT max(keys) AS most FROM named"),
    ),
    "diamond": (
        ("left_", "aggregate", "SELECT k, sum(n) AS n FROM by_key GROUP BY k"),
        ("right_", "append", "SELECT k, n FROM by_key"),
        ("none", "aggregate", "SELECT sum(n) AS n, count(*) AS rows FROM "
                              "(SELECT n FROM left_ UNION ALL SELECT -n FROM right_)"),
    ),
    "exploded": (
        ("words", "append", "SELECT k, word FROM by_key LATERAL VIEW explode(array(cast(n AS string), 'x')) e AS word"),
        ("counted", "aggregate", "SELECT word, count(*) AS n FROM words GROUP BY word"),
    ),
    "expanded": (
        ("narrow", "append", "SELECT k, i FROM t WHERE i > 0"),
        ("twice", "append", "SELECT k, i * 2 AS i FROM narrow"),
        ("shifted", "append", "SELECT k, i + 1 AS i FROM twice UNION ALL SELECT k, i FROM narrow"),
        ("sums", "aggregate", "SELECT k, sum(i) AS s FROM shifted GROUP BY k"),
        ("over", "aggregate", "SELECT count(*) AS n, sum(s) AS s FROM sums"),
    ),
}  # fmt: skip
QUICK = ("deep",)


def graph_of(name: str) -> list[ViewDefinition]:
    t_by = ViewDefinition("t_by", "SELECT k, g, count(*) AS n, sum(i) AS s FROM t GROUP BY k, g")
    parents = [t_by] if name == "having" else [] if name == "expanded" else [BY_KEY]
    return [*parents, *(ViewDefinition(view, query) for view, _, query in GRAPHS[name])]


def random_epochs(graph: ViewGraph, chance: random.Random, epochs: int) -> None:
    for number in range(epochs):
        new = {("t", f"f{graph.epoch}"): random_rows(chance, chance.choice([0, 1, 8, 30]))} if number != 2 else {}
        known = sorted(path for _, path in graph.files)
        replaced: dict[tuple[str, str], pa.Table | None] = {}
        for path in chance.sample(known, min(len(known), chance.choice([0, 1, 2]))):
            replaced["t", path] = chance.choice([None, random_rows(chance, chance.choice([0, 3, 12]))])
        graph.correct(new, replaced)
        graph.check()


@pytest.mark.parametrize("name", few(GRAPHS, *QUICK))
def test_graph_is_sparks_answer_at_every_epoch(local_spark: SparkSession, tmp_path: Path, name: str) -> None:
    chance = random.Random(f"graph {name}")
    graph = ViewGraph(local_spark, tmp_path, graph_of(name))
    assert {view: graph.plans[view].view_class for view, _, _ in GRAPHS[name]} == {v: c for v, c, _ in GRAPHS[name]}
    random_epochs(graph, chance, 4)
    graph.reopen()
    random_epochs(graph, chance, 1)
    graph.correct({}, dict.fromkeys(graph.files))
    graph.check()
    random_epochs(graph, chance, 1)


@pytest.mark.more
def test_function_reads_views_by_its_parameters(local_spark: SparkSession, tmp_path: Path) -> None:
    def by_k(by_key: DataFrame) -> DataFrame:
        return by_key.groupBy("k").agg(F.sum("n").alias("n"))

    graph = ViewGraph(local_spark, tmp_path, [BY_KEY, ViewDefinition("by_k", function=by_k)])
    assert graph.plans["by_k"].parents == ("by_key",)
    random_epochs(graph, random.Random(3), 3)


@pytest.mark.parametrize("at_once", few([True, False]))
def test_view_that_is_added_later_gets_all_rows(
    local_spark: SparkSession, tmp_path: Path, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not at_once:
        monkeypatch.setattr(parents_backfill, "_AT_ONCE_ROWS", -1)
    chance = random.Random(5)
    definitions = graph_of("deep")
    graph = ViewGraph(local_spark, tmp_path, definitions[:1])
    random_epochs(graph, chance, 1)
    graph.declare(definitions)
    for _ in range(3):
        graph.correct({("t", f"g{graph.epoch}"): random_rows(chance, 9)}, {("t", "f0"): random_rows(chance, 4)})
        graph.check("by_key")
    graph.settle()
    graph.check()
    random_epochs(graph, chance, 1)
    graph.reopen()
    random_epochs(graph, chance, 1)


@pytest.mark.more
def test_computation_that_a_crash_ended_begins_again(
    local_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parents_backfill, "_AT_ONCE_ROWS", -1)
    chance = random.Random(6)
    definitions = graph_of("regrouped")
    graph = ViewGraph(local_spark, tmp_path, definitions[:1])
    random_epochs(graph, chance, 2)
    graph.declare(definitions)
    graph.correct({})
    assert "by_k.next" in graph.views and "by_k" not in graph.views
    graph.reopen()
    graph.correct({("t", "later"): random_rows(chance, 9)})
    graph.settle()
    assert "by_k.next" not in graph.views and "by_k.next" not in graph.catalog
    graph.check()
    random_epochs(graph, chance, 2)


@pytest.mark.more
def test_full_view_over_a_view_reads_its_rows_and_no_source(local_spark: SparkSession, tmp_path: Path) -> None:
    fewer = ViewDefinition("fewer", "SELECT a.k, b.k AS than FROM by_key a JOIN by_key b ON a.n < b.n", on_full="allow")
    graph = ViewGraph(local_spark, tmp_path, [BY_KEY, fewer])
    assert graph.plans["fewer"].view_class == "full" and graph.plans["fewer"].parents == ("by_key",)
    chance = random.Random(7)
    for _ in range(3):
        graph.correct({("t", f"f{graph.epoch}"): random_rows(chance, 20)})
        while graph.materializer.behind:
            graph.correct({})
        graph.check()


@pytest.mark.more
def test_a_view_fails_with_its_parent_and_the_others_go_on(local_spark: SparkSession, tmp_path: Path) -> None:
    definitions = [
        BY_KEY,
        ViewDefinition("fine", "SELECT k, sum(n) AS n FROM by_key GROUP BY k"),
        ViewDefinition("odd", "SELECT k, sum(if(n = 7, raise_error('seven'), n)) AS n FROM by_key GROUP BY k"),
        ViewDefinition("over", "SELECT count(*) AS n FROM odd"),
    ]
    graph = ViewGraph(local_spark, tmp_path, definitions)
    rows = random_rows(random.Random(1), 1).set_column(0, "k", pa.array(["z"])).slice(0, 1)
    graph.correct({("t", "a"): rows})
    graph.check()
    done = graph.correct({("t", "b"): pa.concat_tables([rows] * 6)})
    assert {*done.stopped} == {"odd", "over"}
    assert done.stopped["over"].error == "view 'odd', which it reads, has failed"
    assert graph.catalog["over"].stopped_epoch == graph.epoch - 1
    graph.check("by_key", "fine")
    graph.correct({("t", "c"): rows})
    graph.check("by_key", "fine")


@pytest.mark.more
def test_a_view_that_stands_keeps_its_own_error_when_its_parent_fails(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    parent = "SELECT k, count(*) AS n, max(if(i = 13, raise_error('thirteen'), i)) AS m FROM t GROUP BY k"
    definitions = [
        ViewDefinition("by_key", parent),
        ViewDefinition("odd", "SELECT k, sum(if(n = 7, raise_error('seven'), n)) AS n FROM by_key GROUP BY k"),
    ]
    schema = pa.schema([("k", pa.string()), ("i", pa.int64())])
    graph = ViewGraph(local_spark, tmp_path, definitions, schema=schema)
    graph.correct({("t", "a"): pa.table([["z"], [1]], schema=schema)})
    graph.correct({("t", "b"): pa.table([["z"] * 6, [1] * 6], schema=schema)})
    own = graph.catalog["odd"]
    assert own.error is not None and "seven" in own.error
    done = graph.correct({("t", "c"): pa.table([["z"], [13]], schema=schema)})
    assert {*done.stopped} == {"by_key"}
    assert graph.catalog["odd"] == own


@pytest.mark.more
def test_an_epoch_hands_over_its_changes_and_no_other_rows(local_spark: SparkSession, tmp_path: Path) -> None:
    """Counts of rows into Spark, also for a file that is forgotten: what changes, and never what was there."""
    definitions = [
        ViewDefinition("by_key", "SELECT k, count(*) AS n, sum(i) AS s FROM t GROUP BY k"),
        ViewDefinition("sizes", "SELECT n, count(*) AS keys, sum(s) AS s FROM by_key GROUP BY n"),
        ViewDefinition("nested", "SELECT max(n) AS n FROM (SELECT i, count(*) AS n FROM t GROUP BY i)"),
    ]
    schema = pa.schema([("k", pa.string()), ("i", pa.int64())])
    graph = ViewGraph(local_spark, tmp_path, definitions, schema=schema)

    def costs(done: EpochViews) -> dict[str, tuple[int, int, int]]:
        found = {span.name.partition(",")[0]: span.cost for span in done.work if span.cost is not None}
        return {
            name: (each.given, each.found, each.written) for name, each in found.items() if name != "stored rows of t"
        }

    many = pa.table([[f"k{at}" for at in range(50)] * 4, list(range(200))], schema=schema)
    graph.correct({("t", "many"): many})
    few = pa.table([["k0", "k1"], [1000, 0]], schema=schema)
    told = costs(graph.correct({("t", "few"): few}))
    # Of `sizes` the group of 4 loses two keys, and that of 5 gets them; one number of `nested` has come twice.
    assert told["by_key"] == (2, 2, 2) and told["nested.1"] == (2, 1, 2)
    assert told["sizes"] == (4, 1, 2)
    told = costs(graph.correct({}, {("t", "few"): None}))
    assert told["by_key"] == (2, 2, 2) and told["sizes"] == (4, 2, 1)
    assert told["nested.1"] == (2, 2, 1)
    graph.check()


DISTINCT = {
    "counts": "SELECT count(DISTINCT n) AS d, count(DISTINCT k, n) AS e, count(*) AS c FROM by_key",
    "groups": "SELECT g, count(DISTINCT s) AS d, sum(DISTINCT n) AS s, avg(DISTINCT n) AS a FROM by_key GROUP BY g",
    "filtered": "SELECT g, count(DISTINCT n) FILTER (WHERE s > 500) AS d, max(DISTINCT n) AS m FROM by_key GROUP BY g",
    "having": "SELECT n, count(DISTINCT g) AS d FROM by_key GROUP BY n HAVING count(DISTINCT g) > 1",
}
NEVER_READ = ("counts", "having")


@pytest.mark.more
@pytest.mark.parametrize("name", few(DISTINCT, "filtered"))
def test_distinct_values_of_a_parent_are_counted(
    local_spark: SparkSession, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value leaves with its last row; counts need no other row of the parent."""
    read: list[str] = []
    every = ParentRows.all

    def noted(*of: Any) -> EpochRows:
        read.append(name)
        return every(*of)

    monkeypatch.setattr(ParentRows, "all", noted)
    graph = ViewGraph(local_spark, tmp_path, [BY_KEY, ViewDefinition("v", DISTINCT[name])])
    chance = random.Random(f"distinct {name}")
    random_epochs(graph, chance, 1)
    read.clear()
    random_epochs(graph, chance, 3)
    graph.reopen()
    graph.correct({}, {("t", "f0"): random_rows(chance, 5)})
    graph.check()
    graph.correct({}, dict.fromkeys(graph.files))
    graph.check()
    assert name not in NEVER_READ or not read


@pytest.mark.more
def test_a_value_that_leaves_with_its_group_comes_back_with_it(local_spark: SparkSession, tmp_path: Path) -> None:
    """Each group of `v` has one row of the parent, which is exchanged for one with the same value."""
    query = "SELECT k, count(DISTINCT n) AS d, sum(DISTINCT n) AS s FROM by_k GROUP BY k HAVING count(DISTINCT n) > 0"
    parent = ViewDefinition("by_k", "SELECT k, count(DISTINCT i) AS n, count(*) AS rows FROM t GROUP BY k")
    schema = pa.schema([("k", pa.string()), ("i", pa.int64())])
    graph = ViewGraph(local_spark, tmp_path, [parent, ViewDefinition("v", query)], schema=schema)
    for file in "ab":
        graph.correct({("t", file): pa.table([["x", "y"], [1, 1]], schema=schema)})
        graph.check()


@pytest.mark.more
def test_a_view_from_before_the_counts_of_values_is_still_right(local_spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(4)
    with pytest.MonkeyPatch.context() as patch:
        plan = partial(AggregatePlan, counts=False)
        patch.setattr(aggregate_view, "AggregatePlan", lambda *of, counts, **more: plan(*of, **more))
        graph = ViewGraph(local_spark, tmp_path, [BY_KEY, ViewDefinition("v", DISTINCT["groups"])])
        random_epochs(graph, chance, 2)
    graph.reopen()
    random_epochs(graph, chance, 3)

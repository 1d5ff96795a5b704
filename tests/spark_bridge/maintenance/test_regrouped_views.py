"""A view that is replaced by one over the same groups takes them over: nothing is read again."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from tests.cases import few
from tests.spark_bridge.corrected_view import CorrectedView
from tests.spark_bridge.random_rows import random_rows
from tests.spark_bridge.view_graph import ViewGraph, follow_to_the_end, random_epoch

GROUPED = "SELECT k, g, count(*) AS n, sum(i) AS s, max(i) AS m, avg(f) AS a FROM t GROUP BY k, g"
KEPT: Mapping[str, tuple[str, str]] = {
    "a filter": (GROUPED, f"{GROUPED} HAVING sum(i) > 0"),
    "another filter": (f"{GROUPED} HAVING sum(i) > 0", f"{GROUPED} HAVING max(i) < 3 AND count(*) > 1"),
    "no filter": (f"{GROUPED} HAVING sum(i) > 0", GROUPED),
    "other columns": (GROUPED, "SELECT upper(g) AS name, k, max(i) - sum(i) AS x, avg(f) AS a FROM t GROUP BY k, g"),
    "fewer columns": (GROUPED, "SELECT max(i) AS m FROM t GROUP BY k, g"),
    "a subquery": (GROUPED, f"SELECT k, n * 2 AS twice FROM ({GROUPED}) WHERE s > 0"),
    "one row": (
        "SELECT count(*) AS n, sum(i) AS s FROM t",
        "SELECT sum(i) AS s, count(*) + 1 AS n FROM t HAVING count(*) > 3",
    ),
    "distinct": (
        "SELECT k, count(DISTINCT g) AS c, sum(i) AS s, count(DISTINCT i) AS d FROM t GROUP BY k",
        "SELECT k, count(DISTINCT g) + 1 AS c, count(DISTINCT i) AS d FROM t GROUP BY k HAVING sum(i) > 0",
    ),
    "objects": (
        "SELECT k, collect_set(g) AS gs, percentile(i, 0.5) AS p, stddev(i) AS v FROM t GROUP BY k",
        "SELECT k, size(collect_set(g)) AS gs, stddev(i) AS v FROM t GROUP BY k HAVING percentile(i, 0.5) > 0",
    ),
    "joined": (
        "SELECT a.g, count(*) AS n, sum(b.i) AS s FROM t a JOIN t b ON a.k = b.k GROUP BY a.g",
        "SELECT sum(b.i) AS s, a.g FROM t a JOIN t b ON a.k = b.k GROUP BY a.g HAVING count(*) > 2",
    ),
    "groups of groups": (
        "SELECT n, count(*) AS keys FROM (SELECT k, count(*) AS n FROM t GROUP BY k) GROUP BY n",
        "SELECT count(*) AS keys FROM (SELECT k, count(*) AS n FROM t GROUP BY k) GROUP BY n HAVING n > 1",
    ),
    "rollup": (
        "SELECT k, g, sum(i) AS s FROM t GROUP BY ROLLUP (k, g)",
        "SELECT k, g, sum(i) AS s FROM t GROUP BY ROLLUP (k, g) HAVING sum(i) > 0",
    ),
}
OTHERS: Mapping[str, tuple[str, str]] = {
    "only new measures": (GROUPED, "SELECT k, g, min(i) AS lo, sum(f) AS s FROM t GROUP BY k, g"),
    "a new distinct measure": (GROUPED, "SELECT k, g, sum(i) AS s, count(DISTINCT day) AS d FROM t GROUP BY k, g"),
    "another key": (GROUPED, "SELECT k, count(*) AS n, sum(i) AS s FROM t GROUP BY k"),
    "only a key": (GROUPED, "SELECT DISTINCT k FROM t"),
    "other rows": (GROUPED, "SELECT k, g, count(*) AS n FROM t WHERE i > 0 GROUP BY k, g"),
    "a value less": (
        "SELECT k, count(DISTINCT g) AS c, count(DISTINCT i) AS d FROM t GROUP BY k",
        "SELECT k, count(DISTINCT i) AS d FROM t GROUP BY k",
    ),
    "another join": (
        KEPT["joined"][0].replace("t a JOIN", "t a LEFT JOIN"),
        KEPT["joined"][1].replace("t a JOIN", "t a FULL JOIN"),
    ),
}


def _replaced(spark: SparkSession, root: Path, before: str, after: str) -> ViewGraph:
    """A view with rows, for which another one is declared."""
    graph = ViewGraph(spark, root, [ViewDefinition("v", before)])
    chance = random.Random(7)
    for _ in range(3):
        random_epoch(graph, chance)
    graph.declare([ViewDefinition("v", after, replace=True)])
    return graph


@pytest.mark.more
@pytest.mark.parametrize("name", few(KEPT, "joined"))
def test_a_view_over_the_same_groups_takes_them_over_in_one_epoch(
    local_spark: SparkSession, tmp_path: Path, name: str
) -> None:
    graph = _replaced(local_spark, tmp_path, *KEPT[name])
    assert not graph.materializer.backfilling and graph.materializer.has_news()
    graph.correct({("t", "new"): random_rows(random.Random(8), 9)})
    graph.check()
    assert not graph.materializer.has_news() and "v.next" not in {*graph.views, *graph.catalog}
    assert graph.catalog["v"].created_epoch == graph.epoch and graph.catalog["v"].identity == graph.plans["v"].identity
    follow_to_the_end(graph)


@pytest.mark.more
@pytest.mark.parametrize("name", few(OTHERS, "only new measures"))
def test_a_view_that_needs_more_than_the_stored_groups_is_rebuilt(
    local_spark: SparkSession, tmp_path: Path, name: str
) -> None:
    graph = _replaced(local_spark, tmp_path, *OTHERS[name])
    assert graph.materializer.backfilling == {"v": 0.0}
    graph.settle()
    graph.check()
    graph.materializer.close()


@pytest.mark.more
def test_a_stale_view_is_rebuilt_and_not_of_its_old_groups(local_spark: SparkSession, tmp_path: Path) -> None:
    graph = ViewGraph(local_spark, tmp_path, [ViewDefinition("v", GROUPED)])
    graph.correct({("t", "a"): random_rows(random.Random(1), 9)})
    graph.catalog["v"] = replace(graph.catalog["v"], stopped_epoch=graph.epoch)
    graph.declare([ViewDefinition("v", f"{GROUPED} HAVING sum(i) > 0", replace=True)])
    assert graph.materializer.backfilling == {"v": 0.0}
    graph.settle()
    graph.check()
    graph.materializer.close()


@pytest.mark.more
def test_an_end_before_the_commit_leaves_the_stored_view_and_the_next_attempt_takes_over(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    graph = _replaced(local_spark, tmp_path, *KEPT["a filter"])
    before, recorded = dict(graph.views), dict(graph.catalog)
    rows, files = dict(graph.rows), dict(graph.files)
    lost = {("t", "new"): random_rows(random.Random(8), 9)}
    graph.correct(lost)
    # No record has named what this epoch has written.
    graph.views, graph.catalog, graph.rows, graph.files = before, recorded, rows, files
    graph.reopen()
    assert not graph.materializer.backfilling and graph.materializer.has_news()
    graph.correct(lost)
    graph.check()
    random_epoch(graph, random.Random(9))
    graph.materializer.close()


@pytest.mark.more
def test_a_view_over_a_regrouped_one_is_rebuilt_of_its_new_rows(local_spark: SparkSession, tmp_path: Path) -> None:
    over = ViewDefinition("over", "SELECT count(*) AS n, sum(s) AS s FROM v")
    graph = ViewGraph(local_spark, tmp_path, [ViewDefinition("v", GROUPED), over])
    random_epoch(graph, random.Random(7))
    graph.declare([ViewDefinition("v", f"{GROUPED} HAVING sum(i) > 0", replace=True, cascade=True), over])
    graph.settle()
    graph.check()
    random_epoch(graph, random.Random(9))
    graph.materializer.close()


@pytest.mark.more
def test_a_filter_that_fails_over_a_group_stops_that_view_alone(local_spark: SparkSession, tmp_path: Path) -> None:
    total = ViewDefinition("total", "SELECT k, count(*) AS n FROM t GROUP BY k")
    graph = ViewGraph(local_spark, tmp_path, [total, ViewDefinition("v", GROUPED)])
    graph.correct({("t", "a"): random_rows(random.Random(1), 9)})
    stored = graph.views["v"]
    failing = f"{GROUPED} HAVING if(count(*) > 0, raise_error('odd'), true)"
    graph.declare([total, ViewDefinition("v", failing, replace=True)])
    done = graph.correct({("t", "b"): random_rows(random.Random(2), 9)})
    assert "odd" in (done.stopped["v"].error or "") and {*done.stopped} == {"v"}
    assert graph.views["v"] == stored and graph.catalog["v"].definition == GROUPED
    graph.check("total")
    graph.materializer.close()


@pytest.mark.more
def test_groups_that_are_older_than_the_stored_rows_are_taken_over_without_counts(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    query = "SELECT k, sum(i) AS s FROM t GROUP BY k"
    view = CorrectedView(local_spark, tmp_path, ViewDefinition("v", query))
    view.materializer.close()
    view.materializer = Materializer(local_spark, view.root)
    view.materializer.declare([view.definition], view.schemas, {})
    view.correct({("t", path): random_rows(random.Random(path), 9) for path in "ab"}, {})
    view.materializer.close()
    view.definition = ViewDefinition("v", f"{query} HAVING sum(i) > 0", replace=True)
    view.materializer = Materializer(local_spark, view.root, materialized=view.schemas, replacing=view.schemas)
    view.materializer.open(view.views, view.epoch, view.schemas.keys())
    view.plan = view.materializer.declare([view.definition], view.schemas, view.catalog).plans["v"]
    assert not view.materializer.backfilling
    view.correct({("t", "c"): random_rows(random.Random("c"), 9)}, {})
    view.check()
    view.correct({}, {("t", "c"): None})
    view.check()
    view.materializer.close()

"""A view that is replaced by one with further measures over the same groups computes these measures alone."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_bridge.maintenance import parents_backfill
from spark_bridge.operators.group.aggregate_view import AggregateView
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from tests.cases import few
from tests.spark_bridge.random_rows import random_rows
from tests.spark_bridge.view_graph import SmallPieces, ViewGraph, follow_to_the_end, random_epoch

GROUPED = "SELECT k, g, sum(i) AS s, max(i) AS m, avg(f) AS a FROM t GROUP BY k, g"
ADDED: Mapping[str, tuple[str, str]] = {
    "a measure": (GROUPED, "SELECT k, g, sum(i) AS s, min(i) AS lo, max(i) AS m FROM t GROUP BY k, g"),
    "a filter on a new measure": (GROUPED, f"{GROUPED} HAVING min(f) > 0"),
    "no filter": (f"{GROUPED} HAVING min(i) > 0", "SELECT k, g, sum(i) AS s, sum(f) AS sf FROM t GROUP BY k, g"),
    "two measures in front": (
        GROUPED,
        "SELECT g, min(f) AS lo, count(f) AS v, sum(i) + min(f) AS x, k FROM t GROUP BY k, g",
    ),
    "only a part of it": (
        GROUPED,
        "SELECT k, g, min(i) FILTER (WHERE f > 0) AS lo, max(i) - sum(i) AS x FROM t GROUP BY k, g",
    ),
    "one row": ("SELECT sum(i) AS s FROM t", "SELECT max(i) AS m, sum(i) AS s FROM t HAVING max(f) > 0"),
    "beside distinct": (
        "SELECT k, count(DISTINCT g) AS c, sum(DISTINCT i) AS d FROM t GROUP BY k",
        "SELECT k, min(i) AS lo, count(DISTINCT g) AS c, sum(DISTINCT i) AS d FROM t GROUP BY k",
    ),
    "beside objects": (
        "SELECT k, collect_set(g) AS gs, percentile(i, 0.5) AS p FROM t GROUP BY k",
        "SELECT k, collect_set(i) AS many, collect_set(g) AS gs, max(f) AS m FROM t GROUP BY k",
    ),
    "rollup": (
        "SELECT k, g, sum(i) AS s FROM t GROUP BY ROLLUP (k, g)",
        "SELECT k, g, sum(i) AS s, min(f) AS lo FROM t GROUP BY ROLLUP (k, g)",
    ),
}
HIDDEN: Mapping[str, tuple[str, str]] = {
    "rows": (GROUPED, "SELECT k, g, sum(i) AS s, count(*) AS n FROM t GROUP BY k, g"),
    "values": (
        "SELECT k, sum(i) AS s FROM t GROUP BY k",
        "SELECT k, count(i) AS n FROM t GROUP BY k HAVING sum(i) > 0",
    ),
}
OVER_VIEWS: Mapping[str, tuple[str, str]] = {
    "joined": (
        "SELECT a.g, sum(b.i) AS s FROM t a JOIN t b ON a.k = b.k GROUP BY a.g",
        "SELECT a.g, min(b.i) AS lo, sum(b.i) AS s FROM t a JOIN t b ON a.k = b.k GROUP BY a.g HAVING count(*) > 1",
    ),
    "groups of groups": (
        "SELECT n, max(m) AS m FROM (SELECT k, count(*) AS n, max(i) AS m FROM t GROUP BY k) GROUP BY n",
        "SELECT n, max(m) AS m, min(m) AS lo FROM (SELECT k, count(*) AS n, max(i) AS m FROM t GROUP BY k) GROUP BY n",
    ),
    "beside distinct": (
        "SELECT a.g, count(DISTINCT b.i) AS d FROM t a JOIN t b ON a.k = b.k GROUP BY a.g",
        "SELECT a.g, count(DISTINCT b.i) AS d, sum(b.i) AS s FROM t a JOIN t b ON a.k = b.k GROUP BY a.g",
    ),
}


class ReadingGraph(ViewGraph):
    """It notes the columns that backfills read of their histories."""

    def __init__(self, spark: SparkSession, root: Path, query: str) -> None:
        self.read: list[frozenset[str]] = []
        super().__init__(spark, root, [ViewDefinition("v", query)])

    def _history(self, plan: ViewPlan, since: int, epoch: int, progress: str | None) -> SmallPieces:
        self.read.append(plan.columns["t"])
        return super()._history(plan, since, epoch, progress)


def _replaced(spark: SparkSession, root: Path, before: str, after: str) -> ReadingGraph:
    """A view with rows, for which another one is declared."""
    graph = ReadingGraph(spark, root, before)
    chance = random.Random(7)
    for _ in range(3):
        random_epoch(graph, chance)
    graph.declare([ViewDefinition("v", after, replace=True)])
    return graph


@pytest.mark.more
@pytest.mark.parametrize("name", few(ADDED, "a measure"))
def test_only_added_measures_are_computed_of_the_stored_rows(
    local_spark: SparkSession, tmp_path: Path, name: str
) -> None:
    graph = _replaced(local_spark, tmp_path, *ADDED[name])
    stored = graph.views["v"]
    graph.correct({("t", "new"): random_rows(random.Random(8), 9)})
    assert graph.views["v"] == stored and graph.views["v.next"].noted["lacks"]
    for seed in (1, 2):
        # New rows come between pieces of the history, and an attempt ends with a piece that no epoch has recorded.
        assert graph.materializer.backfill()
        graph.correct({("t", f"{seed}"): random_rows(random.Random(seed), 9)})
        graph.materializer.backfill()
        graph.reopen()
    graph.settle()
    graph.check()
    assert "v.next" not in graph.views and graph.catalog["v"].identity == graph.plans["v"].identity
    follow_to_the_end(graph)


@pytest.mark.more
@pytest.mark.parametrize("name", few(HIDDEN, "rows"))
def test_a_hidden_count_becomes_a_measure_without_reading_a_row(
    local_spark: SparkSession, tmp_path: Path, name: str
) -> None:
    graph = _replaced(local_spark, tmp_path, *HIDDEN[name])
    graph.correct({("t", "new"): random_rows(random.Random(8), 9)})
    graph.check()
    assert not graph.read and "v.next" not in graph.views and not graph.materializer.has_news()
    follow_to_the_end(graph)


@pytest.mark.more
def test_the_columns_of_other_measures_are_not_read(local_spark: SparkSession, tmp_path: Path) -> None:
    graph = _replaced(local_spark, tmp_path, GROUPED, f"{GROUPED} HAVING min(f) > 0")
    graph.settle()
    graph.check()
    # `__sw_file` names the file of a row, for corrections.
    assert [{*each} - {"__sw_file"} for each in graph.read] == [{"k", "g", "f"}]
    graph.materializer.close()


@pytest.mark.more
@pytest.mark.parametrize("at", few(("in the first epoch", "later"), "later"))
def test_a_correction_in_the_middle_rebuilds_all_measures(local_spark: SparkSession, tmp_path: Path, at: str) -> None:
    graph = _replaced(local_spark, tmp_path, *ADDED["a measure"])
    if at == "later":
        graph.correct({("t", "new"): random_rows(random.Random(8), 9)})
        assert graph.materializer.backfill()
    changed = min(graph.files)
    graph.correct({}, {changed: random_rows(random.Random(5), 6)})
    assert "lacks" not in graph.views.get("v.next", graph.views["v"]).noted
    graph.correct({("t", "after"): random_rows(random.Random(6), 9)})
    graph.reopen()
    graph.settle()
    graph.check()
    follow_to_the_end(graph)


@pytest.mark.more
def test_an_end_before_the_first_epoch_is_recorded_begins_again(local_spark: SparkSession, tmp_path: Path) -> None:
    graph = _replaced(local_spark, tmp_path, *ADDED["a measure"])
    before, recorded = dict(graph.views), dict(graph.catalog)
    rows, files = dict(graph.rows), dict(graph.files)
    lost = {("t", "new"): random_rows(random.Random(8), 9)}
    graph.correct(lost)
    # No record has named what this epoch has written.
    graph.views, graph.catalog, graph.rows, graph.files = before, recorded, rows, files
    graph.reopen()
    graph.correct(lost)
    assert graph.views["v.next"].noted["lacks"]
    graph.settle()
    graph.check()
    graph.materializer.close()


@pytest.mark.parametrize("name", few(OVER_VIEWS))
def test_only_added_measures_are_computed_of_the_rows_of_views(
    local_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    graph = _replaced(local_spark, tmp_path, *OVER_VIEWS[name])
    with monkeypatch.context() as patched:
        patched.delattr(AggregateView, "create")
        graph.correct({("t", "new"): random_rows(random.Random(8), 9)})
    graph.check()
    assert not graph.materializer.has_news() and "v.next" not in graph.views
    follow_to_the_end(graph)


@pytest.mark.more
@pytest.mark.parametrize("ends", few(("an attempt ends", "it goes on"), "an attempt ends"))
def test_measures_over_many_rows_of_views_are_computed_beside_the_epochs(
    local_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    graph = _replaced(local_spark, tmp_path, *OVER_VIEWS["joined"])
    monkeypatch.setattr(parents_backfill, "_AT_ONCE_ROWS", -1)
    stored = graph.views["v"]
    graph.correct({("t", "new"): random_rows(random.Random(8), 9)})
    assert graph.views["v"] == stored and graph.views["v.next"].noted["lacks"]
    if ends == "an attempt ends":
        # The changes since the groups were taken over are lost with it.
        graph.reopen()
    graph.correct({}, {min(graph.files): random_rows(random.Random(5), 6)})
    graph.settle()
    graph.check()
    assert "v.next" not in graph.views and graph.catalog["v"].identity == graph.plans["v"].identity
    follow_to_the_end(graph)

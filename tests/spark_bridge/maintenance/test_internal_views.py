"""The internal views of a query come, change, fail and end with the view, and readers never see them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_bridge.plans.view_definition import ViewDefinition
from state.tables.stored_rows import declared_name, is_internal_view, is_view
from tests.cases import few
from tests.spark_bridge.random_rows import random_rows
from tests.spark_bridge.view_graph import ViewGraph

TOTAL = ViewDefinition("total", "SELECT k, count(*) AS n FROM t GROUP BY k")
QUERIES: Mapping[str, str] = {
    "aggregation of an aggregation": "SELECT n, count(*) AS keys FROM (SELECT k, count(*) AS n FROM t GROUP BY k) "
    "GROUP BY n",
    "one row": "SELECT max(s) AS m, count(*) AS n "
    "FROM (SELECT k, g, sum(i) AS s FROM t GROUP BY k, g HAVING max(i) > 0)",
    "distinct": "SELECT count(*) AS n FROM (SELECT DISTINCT k, g FROM t)",
    "three": "SELECT max(n) AS n FROM "
    "(SELECT s, count(*) AS n FROM (SELECT k, count(DISTINCT g) AS s FROM t GROUP BY k) GROUP BY s)",
    "shared": "WITH s AS (SELECT k, g, sum(i) AS i FROM t GROUP BY k, g) "
    "SELECT k, max(i) AS i FROM s GROUP BY k UNION ALL SELECT k, min(i) FROM s GROUP BY k",
    "exploded": "SELECT e, count(*) AS n FROM (SELECT explode(collect_set(g)) AS e FROM t GROUP BY k) GROUP BY e",
    "rows beside groups": "SELECT k, i FROM t WHERE i > 0 UNION ALL SELECT k, sum(i) FROM t GROUP BY k",
    "grouped rows beside groups": "SELECT k, count(*) AS n, max(i) AS m FROM "
    "(SELECT k, i FROM t UNION ALL SELECT k, count(*) AS i FROM t GROUP BY k) GROUP BY k",
    "rows beside rows of a view": "SELECT k, n FROM total WHERE n > 1 UNION ALL SELECT k, g FROM t",
    "distinct rows beside groups": "SELECT k, g FROM t UNION SELECT k, max(g) FROM t GROUP BY k",
    "pivoted": "SELECT * FROM (SELECT k, g, i FROM t) PIVOT (sum(i) AS s, count(*) AS n FOR g IN (1, 2 AS two, NULL))",
    "pivoted by text": "SELECT * FROM (SELECT k, b, i FROM t) PIVOT (max(i) FOR k IN ('UA', 'DL'))",
    "pivoted by two": "SELECT * FROM (SELECT k, g, b, i FROM t) PIVOT (sum(i) FOR (g, b) IN ((1, true), (2, false)))",
    "pivoted as a whole": "SELECT * FROM (SELECT g, p FROM t) PIVOT (sum(p) AS s, max(p) AS m FOR g IN (1, 2, 3)) "
    "WHERE `1_m` > 0",
    "over a view": "SELECT max(keys) AS m FROM (SELECT n, count(*) AS keys FROM total GROUP BY n)",
}
FAILING = {
    "within": "SELECT max(m) AS m FROM (SELECT k, max(if(i = 13, raise_error('odd'), i)) AS m FROM t GROUP BY k)",
    "above": "SELECT max(if(m = 13, raise_error('odd'), m)) AS m FROM (SELECT k, max(i) AS m FROM t GROUP BY k)",
}
NESTED = ViewDefinition("v", QUERIES["aggregation of an aggregation"])


def _graph(spark: SparkSession, root: Path, *definitions: ViewDefinition) -> ViewGraph:
    return ViewGraph(spark, root, [TOTAL, *definitions])


def _epoch(graph: ViewGraph, rows: int = 12) -> None:
    graph.correct({("t", f"f{graph.epoch}"): random_rows(random.Random(graph.epoch), rows)})


def _hidden(graph: ViewGraph) -> set[str]:
    recorded = {*filter(is_internal_view, graph.views)}
    assert recorded == {name for name in graph.catalog if not is_view(name)}
    return recorded


@pytest.mark.parametrize("name", few(QUERIES, "three"))
def test_a_query_that_groups_within_equals_sparks_answer_at_every_epoch(
    local_spark: SparkSession, tmp_path: Path, name: str
) -> None:
    graph = _graph(local_spark, tmp_path, ViewDefinition("v", QUERIES[name]))
    assert graph.plans["v"].view_class != "full" and graph.plans["v"].inner
    for number in range(4):
        _epoch(graph)
        graph.check()
        assert _hidden(graph) == {each.name for each in graph.plans["v"].inner}
        if number == 1:
            graph.reopen()
    graph.correct({}, {("t", "f0"): random_rows(random.Random(99), 5), ("t", "f1"): None})
    graph.check()
    graph.correct({}, dict.fromkeys(graph.files))
    graph.check()
    assert [each.name for each in graph.materializer.shown()] == ["total", "v"]
    graph.materializer.close()


@pytest.mark.more
@pytest.mark.parametrize("where", FAILING)
def test_a_view_fails_with_its_internal_views_and_is_rebuilt(
    local_spark: SparkSession, tmp_path: Path, where: str
) -> None:
    schema = pa.schema([("k", pa.string()), ("i", pa.int64())])
    over = ViewDefinition("over", "SELECT count(*) AS n, max(m) AS m FROM v")
    graph = ViewGraph(local_spark, tmp_path, [TOTAL, ViewDefinition("v", FAILING[where]), over], schema=schema)
    graph.correct({("t", "a"): pa.table([["x", "y"], [1, 2]], schema=schema)})
    graph.check()
    done = graph.correct({("t", "b"): pa.table([["x"], [13]], schema=schema)})
    assert {*done.stopped} == {"v", "over"}
    assert "odd" in (done.stopped["v"].error or "")
    assert done.stopped["over"].error == "view 'v', which it reads, has failed"
    assert _hidden(graph) == set()
    graph.reopen()
    graph.correct({("t", "c"): pa.table([["y"], [3]], schema=schema)})
    graph.check("total")
    assert _hidden(graph) == set()


@pytest.mark.more
def test_a_dropped_view_takes_its_internal_views_along(local_spark: SparkSession, tmp_path: Path) -> None:
    graph = _graph(local_spark, tmp_path, NESTED)
    _epoch(graph)
    assert _hidden(graph) == {"v.1"}
    graph.declare([TOTAL], ["v"])
    done = graph.correct({})
    assert {"v", "v.1"} <= {*done.dropped}
    assert {*graph.views} == {"total", "t.rows"} and _hidden(graph) == set()
    _epoch(graph)
    graph.check()


@pytest.mark.more
def test_a_view_that_is_left_out_for_a_while_is_rebuilt_with_its_internal_views(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    over = ViewDefinition("v", QUERIES["over a view"])
    graph = _graph(local_spark, tmp_path, over)
    _epoch(graph)
    graph.catalog = {
        name: replace(each, stopped_epoch=graph.epoch) if declared_name(name) == "v" else each
        for name, each in graph.catalog.items()
    }
    graph.declare([TOTAL])
    _epoch(graph)
    assert _hidden(graph) == set()
    graph.declare([TOTAL, over])
    graph.settle()
    graph.check()
    _epoch(graph)
    graph.check()


@pytest.mark.more
def test_a_internal_view_that_is_let_go_and_wanted_again_before_an_epoch_has_all_rows(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    over = ViewDefinition("v", QUERIES["over a view"], replace=True)
    graph = _graph(local_spark, tmp_path, over)
    _epoch(graph)
    graph.declare([TOTAL, replace(over, query="SELECT sum(n) AS n FROM total")])
    graph.declare([TOTAL, over])
    graph.settle()
    _epoch(graph)
    graph.settle()
    graph.check()
    assert _hidden(graph) == {"v.1"}


@pytest.mark.more
def test_a_view_is_replaced_by_one_with_other_internal_views(local_spark: SparkSession, tmp_path: Path) -> None:
    sizes = "SELECT n, count(*) AS m FROM total GROUP BY n"
    deep = f"SELECT max(c) AS c FROM (SELECT m, count(*) AS c FROM ({sizes}) GROUP BY m)"
    graph = _graph(local_spark, tmp_path, ViewDefinition("v", deep))
    _epoch(graph)
    assert _hidden(graph) == {"v.1", "v.2"}
    graph.declare([TOTAL, ViewDefinition("v", QUERIES["over a view"], replace=True)])
    _epoch(graph)
    graph.settle()
    graph.check()
    assert _hidden(graph) == {"v.1"}
    graph.reopen()
    _epoch(graph)
    graph.check()


@pytest.mark.more
@pytest.mark.parametrize("is_restarted", few([False, True], True), ids=["in a run", "by a restart"])
@pytest.mark.parametrize(
    "query", [QUERIES["over a view"], "SELECT t.k, total.n FROM t JOIN total ON t.k = total.k"], ids=["groups", "join"]
)
def test_a_internal_view_over_a_view_that_is_replaced_is_rebuilt(
    local_spark: SparkSession, tmp_path: Path, query: str, is_restarted: bool
) -> None:
    over = ViewDefinition("v", query)
    graph = _graph(local_spark, tmp_path, over)
    _epoch(graph)
    graph.check()
    other = "SELECT k, count(*) + 5 AS n FROM t WHERE g > 0 GROUP BY k"
    definitions = [ViewDefinition("total", other, replace=True, cascade=True), over]
    if is_restarted:
        graph.definitions = definitions
        graph.reopen()
    else:
        graph.declare(definitions)
    graph.settle()
    graph.check()
    _epoch(graph)
    graph.settle()
    graph.check()
    graph.materializer.close()

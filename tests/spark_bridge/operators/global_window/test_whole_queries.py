"""Queries over all rows at once: windows without PARTITION BY, long limits, offsets; Spark's answers at every epoch."""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.query.analysis import analyse
from state.errors import DefinitionChangedError
from tests.cases import few
from tests.spark_bridge.followed_view import FollowedView
from tests.spark_bridge.numbered_rows import cost, with_numbers
from tests.spark_bridge.random_rows import SCHEMA, random_rows
from tests.spark_bridge.view_graph import ViewGraph, follow_in_all_ways, follow_late
from tests.spark_bridge.ways_of_rows import as_if_many

SOURCES = ("t", "u")
WHOLE: Mapping[str, tuple[str, str]] = {
    "numbers": ("append", "SELECT k, i, row_number() OVER (ORDER BY i) AS n FROM t"),
    "ranks": ("append", "SELECT k, g, rank() OVER (ORDER BY g) AS r, percent_rank() OVER (ORDER BY g) AS p, ntile(3) "
                        "OVER (ORDER BY g) AS part, cume_dist() OVER (ORDER BY g DESC) AS c FROM t"),
    "running": ("append", "SELECT k, i, sum(i) OVER (ORDER BY i) AS s, avg(x) OVER (ORDER BY i ROWS 2 PRECEDING) AS a "
                          "FROM t WHERE b"),
    "neighbours": ("append", "SELECT k, i - lag(i) OVER (ORDER BY i) AS gap, lead(place) OVER (ORDER BY i) AS later, "
                             "first_value(k) OVER (ORDER BY g) AS f FROM t"),
    "shares": ("append", "SELECT k, g, g / sum(g) OVER () AS share, max(k) OVER () AS m FROM t"),
    "of groups": ("append", "SELECT k, sum(i) AS s, sum(sum(i)) OVER () AS total, rank() OVER (ORDER BY count(*) DESC) "
                            "AS r FROM t GROUP BY k"),
    "top": ("append", "SELECT k, i FROM (SELECT *, row_number() OVER (ORDER BY i DESC, g) AS n FROM t) WHERE n <= 3"),
    "grouped": ("aggregate", "SELECT n % 3 AS part, count(*) AS c, max(i) AS m, sum(g) AS s FROM (SELECT *, "
                             "row_number() OVER (ORDER BY i) AS n FROM t) GROUP BY n % 3"),
    "by a constant": ("append", "SELECT k, count(*) OVER (PARTITION BY 1 ORDER BY i) AS n FROM t"),
    "and by key": ("append", "SELECT k, i, rank() OVER (ORDER BY i) AS r, rank() OVER (PARTITION BY k ORDER BY i) AS q "
                             "FROM t"),
    "of a join": ("append", "SELECT t.k, u.i AS j, row_number() OVER (ORDER BY u.i) AS n FROM t JOIN u ON t.g = u.g"),
    "joined": ("append", "SELECT u.k, s.n FROM u JOIN (SELECT k, row_number() OVER (ORDER BY i) AS n FROM t) s ON "
                         "u.k = s.k AND s.n < 4"),
    "offset": ("append", "SELECT k, i FROM t ORDER BY i OFFSET 3"),
    "long": ("append", "SELECT k, i, tags FROM t ORDER BY i DESC, k LIMIT 20000 OFFSET 2"),
    "a grouped offset": ("aggregate", "SELECT k, count(*) AS n, min(i) AS m FROM (SELECT * FROM t ORDER BY i OFFSET 2) "
                                      "GROUP BY k"),
}  # fmt: skip
NUMBERED = ViewDefinition("v", "SELECT i, row_number() OVER (ORDER BY i) AS n FROM t")


@pytest.mark.parametrize("name", few(WHOLE, "ranks"))
def test_a_query_over_all_rows_is_sparks_answer_at_every_epoch(
    local_spark: SparkSession, tmp_path: Path, name: str
) -> None:
    view_class, query = WHOLE[name]
    graph = ViewGraph(local_spark, tmp_path, [ViewDefinition("v", query)], SOURCES)
    assert graph.plans["v"].view_class == view_class
    follow_in_all_ways(graph, random.Random(f"whole {name}"))


@pytest.mark.more
@pytest.mark.parametrize("name", ["numbers", "running", "grouped", "offset", "of a join"])
def test_a_query_over_all_rows_that_were_there_before(local_spark: SparkSession, tmp_path: Path, name: str) -> None:
    follow_late(local_spark, tmp_path, ViewDefinition("v", WHOLE[name][1]), random.Random(f"late {name}"))


@pytest.mark.more
@pytest.mark.parametrize("name", ["numbers", "shares", "grouped", "long"])
def test_a_query_over_all_rows_that_are_not_stored(local_spark: SparkSession, tmp_path: Path, name: str) -> None:
    chance = random.Random(f"apart {name}")
    view = FollowedView(local_spark, tmp_path, ViewDefinition("v", WHOLE[name][1]), {"t": SCHEMA, "u": SCHEMA})
    for _ in range(4):
        view.run({source: random_rows(chance, chance.choice([0, 1, 5])) for source in SOURCES})
        view.check()


@pytest.mark.parametrize("is_many", few([True, False]))
def test_only_rows_that_differ_are_written(local_spark: SparkSession, tmp_path: Path, is_many: bool) -> None:
    graph = ViewGraph(local_spark, tmp_path, [NUMBERED], SOURCES)
    graph.correct({("t", "many"): with_numbers(*range(0, 2000, 2))})
    with as_if_many() if is_many else nullcontext():
        done = graph.correct({("t", "one"): with_numbers(1981), ("u", "a"): with_numbers(1)})
    graph.check()
    assert (cost(done).found, cost(done).written) == (9, 10), "1982 to 1998 get other numbers"
    idle = graph.correct({("u", "b"): with_numbers(1)})
    assert not [each for each in idle.work if each.name == "v"], "no row of the view changes"
    graph.materializer.close()


@pytest.mark.more
def test_a_view_that_was_recomputed_is_replaced_by_request_only(local_spark: SparkSession, tmp_path: Path) -> None:
    """A schedule keeps it as it was."""
    scheduled = replace(NUMBERED, on_full="allow", refresh_interval_s=3600)
    graph = ViewGraph(local_spark, tmp_path, [scheduled])
    graph.correct({("t", "a"): with_numbers(3, 1, 2)})
    while graph.materializer.behind:
        graph.correct({})
    graph.check()
    graph.reopen()
    with pytest.raises(DefinitionChangedError, match=r"class full, .* of the class append.*replace=True"):
        graph.declare([replace(NUMBERED, on_full="allow")])
    graph.declare([replace(NUMBERED, replace=True)])
    graph.settle()
    assert graph.plans["v"].view_class == "append"
    graph.correct({("t", "b"): with_numbers(0)})
    graph.check()
    graph.materializer.close()


def test_explain_tells_that_all_rows_are_read(local_spark: SparkSession) -> None:
    text = analyse(local_spark, NUMBERED, {"t": SCHEMA}, ["t"]).explain()
    assert "all 1, window functions over all rows, of v.1" in text
    assert "if a row of v.1 changes, one Spark job over all of them, before and after" in text
    query = ViewDefinition("v", WHOLE["long"][1])
    assert "a limit to the first 20,002 rows" in analyse(local_spark, query, {"t": SCHEMA}, ["t"]).explain()

"""Windows by key follow the changes of their rows, and equal Spark's answers at every epoch."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql.functions import pandas_udf

from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.query.analysis import analyse
from state.errors import NotIncrementalError
from tests.cases import few
from tests.spark_bridge.followed_view import FollowedView
from tests.spark_bridge.random_rows import SCHEMA, random_rows
from tests.spark_bridge.view_graph import ViewGraph, follow_in_all_ways, follow_late

SOURCES = ("t", "u")
_BY_K = "OVER (PARTITION BY k ORDER BY i)"
_TIED = "OVER (PARTITION BY k ORDER BY g)"
WINDOWS: Mapping[str, tuple[str, str]] = {
    "ranks": ("append", f"SELECT k, i, rank() {_TIED} AS r, dense_rank() {_TIED} AS d, percent_rank() {_TIED} AS p, "
                        f"cume_dist() {_TIED} AS c FROM t"),
    "top": ("append", "SELECT k, i, g FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY i DESC, g) AS n "
                      "FROM t) WHERE n <= 2"),
    "latest": ("append", "SELECT k, i, x FROM (SELECT *, row_number() OVER (PARTITION BY k, g ORDER BY i DESC) AS n "
                         "FROM t) WHERE n = 1 AND i IS NOT NULL"),
    "running": ("append", f"SELECT k, i, sum(g) {_BY_K} AS s, count(*) {_BY_K} AS n, avg(x) {_BY_K} AS a FROM t"),
    "frames": ("append", "SELECT k, i, sum(g) OVER (PARTITION BY k ORDER BY i ROWS BETWEEN 1 PRECEDING AND 1 "
                         "FOLLOWING) AS near, max(g) OVER (PARTITION BY k ORDER BY i RANGE BETWEEN 2 PRECEDING AND "
                         "CURRENT ROW) AS m, sum(x) OVER (PARTITION BY k ORDER BY i ROWS 2 PRECEDING) AS f FROM t"),
    "neighbours": ("append", f"SELECT k, i, lag(i) {_TIED} AS before, lead(g, 2, -1) {_TIED} AS later, "
                             f"ntile(3) {_TIED} AS part FROM t"),
    "ends": ("append", f"SELECT k, i, first_value(g) {_TIED} AS f, last_value(g) {_TIED} AS l, nth_value(g, 2) OVER "
                       "(PARTITION BY k ORDER BY g ROWS UNBOUNDED PRECEDING) AS n FROM t"),
    "shares": ("append", "SELECT k, i, g / sum(g) OVER (PARTITION BY k) AS share, sum(x) OVER (PARTITION BY k) AS s "
                         "FROM t WHERE b"),
    "two_keys": ("append", f"SELECT k, g, i, row_number() {_BY_K} AS n, count(*) OVER (PARTITION BY g) AS m FROM t"),
    "by_expression": ("append", "SELECT k, i, count(*) OVER (PARTITION BY upper(k), g IS NULL) AS n FROM t"),
    "gaps": ("aggregate", f"SELECT k, max(gap) AS m, count(gap) AS n FROM (SELECT k, i - lag(i) {_BY_K} AS gap FROM t) "
                          "GROUP BY k"),
    "of_groups": ("append", "SELECT k, g, n, rank() OVER (PARTITION BY k ORDER BY n DESC) AS r FROM "
                            "(SELECT k, g, count(*) AS n FROM t GROUP BY k, g)"),
    "of_a_join": ("append", "SELECT k, j, n FROM (SELECT t.k, u.i AS j, row_number() OVER (PARTITION BY t.k ORDER BY "
                            "u.i) AS n FROM t JOIN u ON t.g = u.g) WHERE n < 4"),
    "of_joins_in_another_order": ("append", "SELECT a.k, u.i, count(*) OVER (PARTITION BY u.k) AS n FROM t a, t b, u "
                                            "WHERE a.i = u.i AND b.g = u.g AND b.k = u.k"),
    "joined": ("append", f"SELECT u.k, s.n FROM u JOIN (SELECT k, i, row_number() {_BY_K} AS n FROM t) s "
                         "ON u.k = s.k AND s.n = 1"),
    "of_a_union": ("append", "SELECT k, i, count(*) OVER (PARTITION BY k) AS n FROM "
                             "(SELECT k, i FROM t UNION ALL SELECT k, i FROM u)"),
    "of_windows": ("append", f"SELECT k, n, sum(i) OVER (PARTITION BY n) AS s FROM (SELECT k, i, row_number() {_BY_K} "
                             "AS n FROM t)"),
}  # fmt: skip


@pytest.mark.parametrize("name", few(WINDOWS, "of_a_join"))
def test_window_is_sparks_answer_at_every_epoch(local_spark: SparkSession, tmp_path: Path, name: str) -> None:
    chance = random.Random(f"window {name}")
    view_class, query = WINDOWS[name]
    graph = ViewGraph(local_spark, tmp_path, [ViewDefinition("v", query)], SOURCES)
    assert graph.plans["v"].view_class == view_class
    follow_in_all_ways(graph, chance)


@pytest.mark.more
@pytest.mark.parametrize("name", ["top", "running", "shares", "gaps", "of_a_join"])
def test_window_over_rows_that_were_there_before(local_spark: SparkSession, tmp_path: Path, name: str) -> None:
    """Tasks compute the first rows, and later epochs must find the very same values, sums of floats among them."""
    chance = random.Random(f"late {name}")
    follow_late(local_spark, tmp_path, ViewDefinition("v", WINDOWS[name][1]), chance)


@pytest.mark.more
@pytest.mark.parametrize("name", few({"top": 0, "running": 0, "gaps": 0, "of_groups": 0}, "top"))
def test_window_over_rows_that_are_not_stored(local_spark: SparkSession, tmp_path: Path, name: str) -> None:
    chance = random.Random(f"apart {name}")
    view = FollowedView(local_spark, tmp_path, ViewDefinition("v", WINDOWS[name][1]), {"t": SCHEMA, "u": SCHEMA})
    for _ in range(4):
        view.run({source: random_rows(chance, chance.choice([0, 1, 5])) for source in SOURCES})
        view.check()


def test_a_python_function_over_a_window_is_recomputed(local_spark: SparkSession) -> None:
    @pandas_udf("double")  # type: ignore[untyped-decorator]
    def middle(values: pd.Series) -> float:
        return float(values.median())

    def v(t: DataFrame) -> DataFrame:
        return t.select("k", middle("i").over(Window.partitionBy("k")).alias("m"))

    with pytest.raises(NotIncrementalError, match="a Python function over a window"):
        analyse(local_spark, ViewDefinition("v", function=v), {"t": SCHEMA}, ["t"])


def test_a_column_of_maps_beside_a_window_is_refused_with_the_column(local_spark: SparkSession) -> None:
    query = "SELECT m, count(*) OVER (PARTITION BY k) AS n FROM (SELECT k, map(k, i) AS m FROM t)"
    with pytest.raises(NotIncrementalError, match=r"a window beside m of type map.*take its entries"):
        analyse(local_spark, ViewDefinition("v", query), {"t": SCHEMA}, ["t"])

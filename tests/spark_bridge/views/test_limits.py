"""The first rows in an order follow the changes of all rows, and equal Spark's answers at every epoch."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf

from spark_bridge.analysis.analysis import analyse
from spark_bridge.analysis.view_definition import ViewDefinition
from spark_bridge.changes import limited_rows
from spark_bridge.changes.limited_rows import LimitedRows
from state.errors import NotIncrementalError
from tests.cases import few
from tests.spark_bridge.followed_view import FollowedView
from tests.spark_bridge.random_rows import SCHEMA, random_rows
from tests.spark_bridge.view_graph import ViewGraph, follow_in_all_ways, random_epoch
from tests.spark_bridge.ways_of_rows import as_if_many

SOURCES = ("t", "u")
LIMITS: Mapping[str, tuple[str, str]] = {
    "largest": ("append", "SELECT k, i, x FROM t ORDER BY i DESC LIMIT 5"),
    "ties": ("append", "SELECT k, g FROM t ORDER BY g LIMIT 6"),
    "nulls": ("append", "SELECT g, x, f FROM t ORDER BY x DESC NULLS FIRST, f ASC NULLS LAST LIMIT 7"),
    "texts": ("append", "SELECT upper(k) AS k, i FROM t ORDER BY k, length(k) DESC LIMIT 8"),
    "structs": ("append", "SELECT place, tags, raw FROM t ORDER BY place DESC, tags, raw LIMIT 6"),
    "all columns": ("append", "SELECT * FROM t ORDER BY at LIMIT 4"),
    "offset": ("append", "SELECT k, i FROM t ORDER BY i LIMIT 4 OFFSET 3"),
    "by another column": ("append", "SELECT k FROM t WHERE b ORDER BY p DESC, wide LIMIT 5"),
    "none": ("append", "SELECT k, i FROM t ORDER BY i LIMIT 0"),
    "all": ("append", "SELECT k, i FROM t ORDER BY i LIMIT 1000"),
    "a third page": ("append", "SELECT k, i FROM (SELECT k, i FROM t ORDER BY i LIMIT 9) ORDER BY k LIMIT 2 OFFSET 4"),
    "twice": ("append", "SELECT k, g FROM (SELECT * FROM t ORDER BY i LIMIT 9 OFFSET 1) LIMIT 3"),
    "grouped": ("aggregate", "SELECT k, max(i) AS m, count(*) AS n, sum(x) AS s FROM (SELECT * FROM t ORDER BY i "
                             "LIMIT 12) GROUP BY k"),
    "filtered": ("append", "SELECT s FROM (SELECT k AS s, i FROM t ORDER BY i DESC LIMIT 9) WHERE i > 0"),
    "of groups": ("append", "SELECT k, count(*) AS n, sum(i) AS s FROM t GROUP BY k ORDER BY n DESC LIMIT 3"),
    "of a hidden order": ("append", "SELECT k FROM t GROUP BY k ORDER BY max(i) DESC LIMIT 3"),
    "of a join": ("append", "SELECT t.k, u.i FROM t JOIN u ON t.g = u.g ORDER BY u.i DESC, t.i LIMIT 6"),
    "of an outer join": ("append", "SELECT t.k, u.i FROM t LEFT JOIN u ON t.k = u.k ORDER BY u.i NULLS FIRST LIMIT 6"),
    "of a union": ("append", "SELECT k, i FROM t UNION ALL SELECT k, i FROM u ORDER BY i LIMIT 6"),
    "of a window": ("append", "SELECT k, n, i FROM (SELECT k, i, row_number() OVER (PARTITION BY k ORDER BY i) AS n "
                              "FROM t) ORDER BY n DESC LIMIT 5"),
    "below a window": ("append", "SELECT k, sum(i) OVER (PARTITION BY k ORDER BY i) AS s FROM (SELECT * FROM t ORDER "
                                 "BY i LIMIT 9)"),
    "joined": ("append", "SELECT u.k, u.i FROM u JOIN (SELECT k FROM t ORDER BY i DESC LIMIT 3) s ON u.k = s.k"),
    "in a condition": ("append", "SELECT k, i FROM t WHERE g IN (SELECT g FROM u ORDER BY i LIMIT 2)"),
    "beside others": ("append", "(SELECT k, i FROM t ORDER BY i LIMIT 3) UNION ALL (SELECT k, i FROM t ORDER BY i DESC "
                                "LIMIT 3)"),
}  # fmt: skip
LARGEST = ViewDefinition("v", LIMITS["largest"][1])


@contextmanager
def scans(spare: int = 1) -> Iterator[list[str]]:
    """So few spare rows, and for each time that all rows are put in order, the limit."""
    made = list[str]()
    computed = LimitedRows._computed

    def noted(self: LimitedRows, limit: Any, *arguments: Any) -> Any:
        made.append(limit.name)
        return computed(self, limit, *arguments)

    with (
        patch.object(limited_rows, "_SPARE_ROWS", spare),
        patch.object(LimitedRows, "_computed", noted),
    ):
        yield made


@pytest.mark.parametrize("name", few(LIMITS, "nulls", "of a join", "grouped"))
def test_a_limit_is_sparks_answer_at_every_epoch(local_spark: SparkSession, tmp_path: Path, name: str) -> None:
    chance = random.Random(f"limit {name}")
    view_class, query = LIMITS[name]
    graph = ViewGraph(local_spark, tmp_path, [ViewDefinition("v", query)], SOURCES)
    assert graph.plans["v"].view_class == view_class
    with scans():
        follow_in_all_ways(graph, chance)

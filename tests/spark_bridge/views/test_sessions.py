"""Sessions follow the changes of their rows, and equal Spark's answers at every epoch."""

from __future__ import annotations

import datetime
import random
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from actors.schemas.ddl import parse_schema
from spark_bridge.analysis.view_definition import ViewDefinition
from tests.cases import few
from tests.spark_bridge.followed_view import FollowedView
from tests.spark_bridge.random_rows import SCHEMA, random_rows
from tests.spark_bridge.view_graph import ViewGraph, follow_in_all_ways, follow_late

SOURCES = ("t", "u")
_BY_K = "GROUP BY k, session_window(at, '1 hour')"
# The times are full hours, so that sessions often touch.
SESSIONS: Mapping[str, tuple[str, str]] = {
    "counts": ("aggregate", f"SELECT k, session_window, count(*) AS n, sum(i) AS s FROM t {_BY_K}"),
    "parts": ("aggregate", "SELECT k, session_window.start AS begins, session_window.end AS ends, min(i) AS lo, max(g) "
                           f"AS hi, stddev(i) AS d, array_sort(collect_list(g)) AS l FROM t WHERE b {_BY_K}"),
    "distinct": ("aggregate", "SELECT k, session_window AS w, count(DISTINCT g) AS n, count(DISTINCT b) AS m, count(*) "
                              f"AS c FROM t {_BY_K}"),
    "having": ("aggregate", f"SELECT session_window.end AS e, sum(g) AS s FROM t {_BY_K} HAVING count(*) > 2"),
    "without_a_key": ("aggregate", "SELECT session_window AS w, count(*) AS n FROM t "
                                   "GROUP BY session_window(at, '30 minutes')"),
    "by_gaps": ("aggregate", "SELECT k, session_window, count(*) AS n FROM t GROUP BY k, session_window(at, CASE WHEN "
                             "g = 1 THEN '9 hours' WHEN g = 2 THEN '0 hours' WHEN i < 0 THEN NULL ELSE '1 hour' END)"),
    "without_time_zone": ("aggregate", "SELECT g, session_window, max(i) AS m FROM t "
                                       "GROUP BY g, session_window(wall, '2 hours')"),
    "of_days": ("aggregate", "SELECT b, session_window, count(*) AS n FROM t GROUP BY b, session_window(day, '1 day')"),
    "by_expressions": ("aggregate", "SELECT upper(k) AS u, g + 1 AS h, 'x' AS c, session_window.start AS at, count(*) "
                                    "AS n FROM t GROUP BY upper(k), g + 1, 'x', session_window(at, '3 hours')"),
    "of_numbers": ("aggregate", "SELECT x, f, session_window, count(*) AS n FROM t "
                                "GROUP BY x, f, session_window(at, '5 hours')"),
    "of_each": ("aggregate", "SELECT k, session_window, sum(hour(session_window(at, '1 hour').end)) AS s, "
                             f"min(session_window.start) AS m FROM t {_BY_K}"),
    "of_each_distinct": ("aggregate", "SELECT k, session_window, sum(hour(session_window(at, '1 hour').end)) AS s, "
                                      f"count(DISTINCT g) AS n FROM t {_BY_K}"),
    "sets": ("aggregate", "SELECT k, g, session_window AS w, count(*) AS n FROM t GROUP BY GROUPING SETS "
                          "((k, session_window(at, '1 hour')), (g, session_window(at, '1 hour')))"),
    "only": ("aggregate", "SELECT DISTINCT session_window(at, '1 hour') AS w FROM t"),
    "of_sessions": ("aggregate", "SELECT session_window, sum(n) AS n FROM "
                                 f"(SELECT k, session_window, count(*) AS n FROM t {_BY_K}) GROUP BY session_window"),
    "within": ("aggregate", f"SELECT k, max(n) AS most, count(*) AS n FROM (SELECT k, count(*) AS n FROM t {_BY_K}) "
                            "GROUP BY k"),
    "joined": ("append", f"SELECT s.k, s.n, u.g FROM (SELECT k, session_window.start AS at, count(*) AS n FROM t {_BY_K}) s "
                         "JOIN u ON s.k = u.k AND s.at = u.at"),
    "of_a_join": ("aggregate", "SELECT t.k, session_window, count(*) AS n FROM t JOIN u ON t.g = u.g AND t.k = u.k "
                               "GROUP BY t.k, session_window(u.at, '1 hour')"),
    "of_a_union": ("aggregate", "SELECT k, session_window, count(*) AS n FROM (SELECT k, at FROM t UNION ALL SELECT k, "
                                f"at FROM u) {_BY_K}"),
    "compared": ("append", f"SELECT k, i FROM u WHERE i > (SELECT max(n) FROM (SELECT count(*) AS n FROM t {_BY_K}))"),
    "latest": ("append", "SELECT k, w, n FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY w DESC) AS r FROM "
                         f"(SELECT k, session_window AS w, count(*) AS n FROM t {_BY_K})) WHERE r = 1"),
}  # fmt: skip
_ROWS = parse_schema("k string, at timestamp, n int")
_MINUTES = "SELECT k, session_window AS w, sum(n) AS n FROM t GROUP BY k, session_window(at, '10 minutes')"


def _at(minutes: float) -> datetime.datetime:
    return datetime.datetime(2013, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(minutes=minutes)


def _rows(*minutes: float, k: str = "a") -> pa.Table:
    return pa.Table.from_pylist([{"k": k, "at": _at(each), "n": 1} for each in minutes], schema=_ROWS)


@pytest.mark.parametrize("name", few(SESSIONS, "counts", "by_gaps"))
def test_session_is_sparks_answer_at_every_epoch(local_spark: SparkSession, tmp_path: Path, name: str) -> None:
    chance = random.Random(f"session {name}")
    view_class, query = SESSIONS[name]
    graph = ViewGraph(local_spark, tmp_path, [ViewDefinition("v", query)], SOURCES)
    assert graph.plans["v"].view_class == view_class
    follow_in_all_ways(graph, chance)

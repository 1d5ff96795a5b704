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
from spark_bridge.engine.catalyst.arrow_frames import arrow_schema, frame_of_table, table_of_frame
from spark_bridge.maintenance.recomputation import computed
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.query.analysis import analyse
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
    "joined": ("append", "SELECT s.k, s.n, u.g FROM (SELECT k, session_window.start AS at, count(*) AS n FROM t "
                         f"{_BY_K}) s JOIN u ON s.k = u.k AND s.at = u.at"),
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


@pytest.mark.parametrize("name", few(SESSIONS, "by_gaps"))
def test_session_is_sparks_answer_at_every_epoch(local_spark: SparkSession, tmp_path: Path, name: str) -> None:
    chance = random.Random(f"session {name}")
    view_class, query = SESSIONS[name]
    graph = ViewGraph(local_spark, tmp_path, [ViewDefinition("v", query)], SOURCES)
    assert graph.plans["v"].view_class == view_class
    follow_in_all_ways(graph, chance)


@pytest.mark.parametrize("name", few({"counts": 0, "by_gaps": 0, "without_a_key": 0, "of_a_join": 0}))
def test_session_over_rows_that_were_there_before(local_spark: SparkSession, tmp_path: Path, name: str) -> None:
    chance = random.Random(f"late {name}")
    follow_late(local_spark, tmp_path, ViewDefinition("v", SESSIONS[name][1]), chance)


@pytest.mark.more
@pytest.mark.parametrize("name", few({"counts": 0, "distinct": 0, "without_a_key": 0, "within": 0}, "distinct"))
def test_session_over_rows_that_are_not_stored(local_spark: SparkSession, tmp_path: Path, name: str) -> None:
    chance = random.Random(f"apart {name}")
    view = FollowedView(local_spark, tmp_path, ViewDefinition("v", SESSIONS[name][1]), {"t": SCHEMA, "u": SCHEMA})
    for _ in range(4):
        view.run({source: random_rows(chance, chance.choice([0, 1, 5])) for source in SOURCES})
        view.check()
    view.materializer.close()


@pytest.mark.more
def test_late_row_puts_two_sessions_together_and_its_file_takes_them_apart(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    graph = ViewGraph(local_spark, tmp_path, [ViewDefinition("v", _MINUTES)], ["t"], _ROWS)
    graph.correct({("t", "early"): _rows(0, 3, 25), ("t", "other"): _rows(0, 1, k="b")})
    assert _sessions(graph) == [("a", 0, 13, 2), ("a", 25, 35, 1), ("b", 0, 11, 2)]
    graph.correct({("t", "late"): _rows(13, 20)})
    assert _sessions(graph) == [("a", 0, 35, 5), ("b", 0, 11, 2)], "13 is the end of one, and 20 is within 10 of 25"
    graph.reopen()
    graph.correct({}, {("t", "late"): None})
    assert _sessions(graph) == [("a", 0, 13, 2), ("a", 25, 35, 1), ("b", 0, 11, 2)]
    graph.correct({}, {("t", "early"): _rows(3, 13.001)})
    assert _sessions(graph) == [("a", 3, 13, 1), ("a", 13.001, 23.001, 1), ("b", 0, 11, 2)], "13.001 is after the end"
    graph.check()
    graph.materializer.close()


@pytest.mark.more
def test_a_long_gap_spans_rows_with_short_ones(local_spark: SparkSession, tmp_path: Path) -> None:
    query = (
        "SELECT k, session_window AS w, sum(n) AS n FROM t "
        "GROUP BY k, session_window(at, CASE WHEN n = 1 THEN '1 minute' ELSE '30 minutes' END)"
    )
    graph = ViewGraph(local_spark, tmp_path, [ViewDefinition("v", query)], ["t"], _ROWS)
    graph.correct({("t", "short"): _rows(5, 20)})
    assert _sessions(graph) == [("a", 5, 6, 1), ("a", 20, 21, 1)]
    long = pa.Table.from_pylist([{"k": "a", "at": _at(0), "n": 2}], schema=_ROWS)
    graph.correct({("t", "long"): long})
    assert _sessions(graph) == [("a", 0, 30, 4)], "the row at 20 comes after the end of the row at 5"
    graph.check()
    graph.materializer.close()


@pytest.mark.more
def test_rows_of_equal_time_and_without_time(local_spark: SparkSession, tmp_path: Path) -> None:
    graph = ViewGraph(local_spark, tmp_path, [ViewDefinition("v", _MINUTES)], ["t"], _ROWS)
    nothing = pa.Table.from_pylist([{"k": "a", "at": None, "n": 1}], schema=_ROWS)
    graph.correct({("t", "nothing"): nothing})
    assert _sessions(graph) == []
    graph.correct({("t", "equal"): _rows(0, 0, 10, 10), ("t", "again"): _rows(0)})
    assert _sessions(graph) == [("a", 0, 20, 5)]
    graph.correct({}, {("t", "equal"): None})
    assert _sessions(graph) == [("a", 0, 10, 1)]
    graph.check()
    graph.materializer.close()


@pytest.mark.more
def test_condition_on_a_session_sees_whole_sessions(local_spark: SparkSession, tmp_path: Path) -> None:
    """Spark's optimizer drops the row at minute 0 first, since its own end is 10."""
    condition = "session_window.end > TIMESTAMP'2013-01-01 00:12:00'"
    views = [
        ViewDefinition("having", f"{_MINUTES} HAVING {condition}"),
        ViewDefinition("outer", f"SELECT k, w, n FROM ({_MINUTES}) WHERE w.end > TIMESTAMP'2013-01-01 00:12:00'"),
        ViewDefinition(
            "full",
            f"SELECT k, w, n FROM ({_MINUTES} HAVING {condition}) JOIN VALUES (0) AS least(m) ON n > m",
            on_full="allow",
            refresh_interval_s=1,
        ),
    ]
    graph = ViewGraph(local_spark, tmp_path, views[:2], ["t"], _ROWS)
    graph.correct({("t", "one"): _rows(0, 5, 30)})
    for name in ("having", "outer"):
        assert _sessions(graph, name) == [("a", 0, 15, 2), ("a", 30, 40, 1)]
    for view in views:
        with computed(local_spark, view, {"t": frame_of_table(local_spark, graph.rows["t"])}) as frame:
            answer = table_of_frame(frame, arrow_schema(frame.schema))
        assert _told(answer) == [("a", 0, 15, 2), ("a", 30, 40, 1)], view.name
    graph.materializer.close()


@pytest.mark.more
def test_explain_names_sessions(local_spark: SparkSession) -> None:
    plan = analyse(local_spark, ViewDefinition("v", _MINUTES), {"t": _ROWS})
    assert "sessions by k, of" in plan.explain()
    assert "the rows of each key" in plan.reason
    assert plan.key == ("k", "w")
    alone = "SELECT session_window, count(*) AS n FROM t GROUP BY session_window(at, '10 minutes')"
    assert "sessions over all rows" in analyse(local_spark, ViewDefinition("v", alone), {"t": _ROWS}).explain()


@pytest.mark.more
def test_only_the_used_columns_are_kept(local_spark: SparkSession) -> None:
    query = "SELECT k, count(*) AS n FROM t GROUP BY k, session_window(at, '1 hour')"
    [rows] = analyse(local_spark, ViewDefinition("v", query), {"t": SCHEMA}).inner
    assert rows.schema.names == ["k", "start", "end", "__sw_join"]


def _sessions(graph: ViewGraph, name: str = "v") -> list[tuple[str, float, float, int]]:
    return _told(graph.open(graph.root, graph.views[name]).to_table())


def _told(rows: pa.Table) -> list[tuple[str, float, float, int]]:
    """Key, begin and end in minutes, and sum of each session, in order."""
    minute = datetime.timedelta(minutes=1)
    return sorted(
        (row["k"], (row["w"]["start"] - _at(0)) / minute, (row["w"]["end"] - _at(0)) / minute, row["n"])
        for row in rows.to_pylist()
    )

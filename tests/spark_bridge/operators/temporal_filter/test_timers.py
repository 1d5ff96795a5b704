"""Filters by the time of the epoch: at every epoch the rows that Spark finds when that time is written in their place.

The expected rows are Spark's answer to the query with a constant in place of `now()`, over the present files.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_bridge.engine.catalyst.epoch_timestamps import filters_by_time, uses_epoch_timestamps
from spark_bridge.maintenance import parents_backfill
from spark_bridge.materializer import Materializer
from spark_bridge.operators.temporal_filter import temporal_filter_rows
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.query.analysis import analyse
from state.clock import ManualClock
from state.errors import NotIncrementalError
from tests.cases import few
from tests.spark_bridge.followed_view import FollowedView
from tests.spark_bridge.random_rows import SCHEMA, random_rows
from tests.spark_bridge.timed_graph import BEGIN, TimedGraph, timed_graph
from tests.spark_bridge.view_graph import random_files
from tests.spark_bridge.ways_of_rows import as_if_many

_TIMES = pa.schema([("i", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])
_SCHEMAS = {"t": SCHEMA, "u": SCHEMA}

VIEWS = {
    "leaves": "SELECT k, i, at FROM t WHERE at > now() - INTERVAL 5 HOURS",
    "comes": "SELECT k, i FROM t WHERE at <= current_timestamp()",
    "between": "SELECT k, i, x FROM t WHERE i > -500 AND at BETWEEN now() - INTERVAL 9 HOURS "
    "AND now() + INTERVAL 1 HOUR",
    "turned": "SELECT i FROM t WHERE NOT (at + make_interval(0, 0, 0, 0, g) < now())",
    "day": "SELECT k, i, day FROM t WHERE day = current_date()",
    "wall": "SELECT i FROM t WHERE localtimestamp() - INTERVAL 3 HOURS <= wall",
    "number": "SELECT i FROM t WHERE unix_timestamp(at) >= unix_timestamp(now()) - 7200",
    "back and forth": "SELECT i FROM t WHERE hour(at) < hour(now())",
    "truncated": "SELECT i FROM t WHERE at >= date_trunc('DAY', now()) - INTERVAL 6 HOURS "
    "AND day <= add_months(current_date(), 0)",
    "group": "SELECT k, count(*) AS n, sum(i) AS s, max(at) AS last FROM t "
    "WHERE at > now() - INTERVAL 5 HOURS GROUP BY k",
    "float": "SELECT g, count(DISTINCT k) AS n, sum(x) AS s FROM t WHERE at >= now() - INTERVAL 5 HOURS GROUP BY g",
    "having": "SELECT k, max(at) AS last FROM t GROUP BY k HAVING max(at) > now() - INTERVAL 5 HOURS",
    "join": "SELECT t.k, t.i, u.i AS j FROM t JOIN u USING (g) "
    "WHERE t.at > now() - INTERVAL 4 HOURS AND u.day <= current_date()",
    "both": "SELECT t.k, u.i FROM t JOIN u USING (g) WHERE greatest(t.at, u.at) > now() - INTERVAL 4 HOURS",
    "outer": "SELECT t.i, u.i AS j FROM t LEFT JOIN u ON t.g = u.g AND u.at > now() - INTERVAL 4 HOURS",
    "exists": "SELECT k, i FROM t WHERE NOT EXISTS "
    "(SELECT 1 FROM u WHERE u.k = t.k AND u.at > now() - INTERVAL 4 HOURS)",
    "window": "SELECT k, i, r FROM (SELECT k, i, at, row_number() OVER (PARTITION BY k ORDER BY i) AS r FROM t "
    "WHERE at > now() - INTERVAL 4 HOURS) WHERE r <= 2",
    "above": "SELECT k, n FROM (SELECT k, count(*) AS n, max(at) AS last FROM t GROUP BY k) WHERE last < now()",
    "union": "SELECT k, i FROM t WHERE at > now() - INTERVAL 4 HOURS UNION ALL SELECT k, i FROM u",
    "or": "SELECT k, i, at FROM t WHERE g = 1 OR at > now() - INTERVAL 5 HOURS",
    "nested": "SELECT k, i FROM t WHERE i > 900 OR (g = 2 OR at BETWEEN now() - INTERVAL 9 HOURS AND now()) "
    "AND NOT (x > 0 AND wall <= localtimestamp() - INTERVAL 3 HOURS)",
    "neither": "SELECT k, i, at FROM t WHERE NOT (g = 1 OR at < now() - INTERVAL 5 HOURS)",
    "case": "SELECT k, i FROM t WHERE CASE WHEN g = 1 THEN at > now() - INTERVAL 2 HOURS WHEN b THEN "
    "day = current_date() ELSE NOT (wall < localtimestamp()) END",
    "case of time": "SELECT k, i FROM t WHERE NOT CASE WHEN at > now() THEN g = 1 WHEN wall > localtimestamp() THEN b "
    "WHEN i > 500 THEN at <= now() - INTERVAL 8 HOURS END",
    "coalesce": "SELECT k, i FROM t WHERE coalesce(at > now() - INTERVAL 3 HOURS, day >= current_date(), g = 1)",
    "if": "SELECT k, i FROM t WHERE if(at <= now(), wall > localtimestamp() - INTERVAL 5 HOURS, b) IS NOT NULL",
    # The entry 0 of an array is an error.
    "guarded": "SELECT k, i FROM t WHERE (g = 1 OR at > now() OR element_at(array(5, 1), g - 1) > 4) "
    "AND (b OR g <> 2 AND (at > now() OR element_at(array(5), g - 2) > 2)) AND CASE WHEN g > 2 THEN "
    "at + make_interval(0, 0, 0, 0, element_at(array(6), g - 2)) > now() ELSE day <= current_date() OR b END",
    "unequal": "SELECT i, day FROM t WHERE day <> current_date()",
    "in": "SELECT i, day FROM t WHERE day IN (current_date(), date_add(current_date(), 1), DATE'2013-01-03', NULL)",
    "not in": "SELECT i, day FROM t WHERE date(at) NOT IN (current_date(), date_add(current_date(), 1), day)",
    "or back": "SELECT i FROM t WHERE hour(at) < hour(now()) OR at > now() + INTERVAL 5 HOURS",
    "or group": "SELECT k, count(*) AS n, sum(i) AS s FROM t WHERE b OR at > now() - INTERVAL 5 HOURS GROUP BY k",
    "or having": "SELECT k, max(at) AS last FROM t GROUP BY k HAVING min(b) OR max(at) > now() - INTERVAL 5 HOURS",
    "or join": "SELECT t.k, t.i, u.i AS j FROM t JOIN u ON t.g = u.g "
    "AND (t.at > now() - INTERVAL 4 HOURS OR u.at > now() AND t.b)",
    "or outer": "SELECT t.i, u.i AS j FROM t LEFT JOIN u ON t.g = u.g AND (u.b OR u.at > now() - INTERVAL 4 HOURS)",
    "or exists": "SELECT k, i FROM t WHERE at > now() - INTERVAL 4 HOURS OR EXISTS (SELECT 1 FROM u WHERE u.k = t.k)",
}  # fmt: skip


_IDENTITIES = {
    "comes": "at <= epoch_current_timestamp()",
    "day": "day >= epoch_current_date() and day <= epoch_current_date()",
    "turned": "__sw_time_1 >= epoch_now()",
}
_SELDOM = frozenset({"day", "having", "exists", "above", "unequal", "in", "not in", "or having"})
"""Views that time alone may leave as they are in the epochs of the test."""


def _follow(graph: TimedGraph, chance: random.Random, hours: Sequence[float]) -> int:
    """Epochs at these hours after each other, with files or without.  Returns how many without files changed a view."""
    changed = 0
    for number, each in enumerate(hours):
        graph.at(graph.now + timedelta(hours=each))
        before = graph.views.get("v")
        quiet = number % 3 == 2
        new, replaced = random_files(graph, chance)
        # Some of these rows are reached in the epoch that brings them.
        new = {**new, ("t", f"more{number}-{graph.epoch}"): random_rows(chance, 40)}
        stay = {file: rows for file, rows in replaced.items() if file[1] != "first"}
        graph.correct(*(({}, {}) if quiet else (new, stay)))
        graph.check()
        changed += quiet and before is not None and before.version != graph.views["v"].version
    return changed


@pytest.mark.parametrize("name", few(VIEWS, "group"))
def test_rows_come_and_leave_as_spark_says_at_every_epoch(local_spark: SparkSession, tmp_path: Path, name: str) -> None:
    chance = random.Random(7)
    graph = timed_graph(local_spark, tmp_path, VIEWS[name])
    graph.at(BEGIN)
    graph.correct({("t", "first"): random_rows(chance, 60), ("u", "first"): random_rows(chance, 30)})
    graph.check()
    changed = _follow(graph, chance, [0.5, 1, 2.5])
    graph.reopen()
    changed += _follow(graph, chance, [2, 0, 3])
    with as_if_many():
        changed += _follow(graph, chance, [1.5, 0.001, 5.5])
    assert changed or name in _SELDOM, "time alone changes the view"
    graph.at(graph.now + timedelta(hours=1))
    graph.correct({}, dict.fromkeys(graph.files))
    graph.check()
    graph.materializer.close()


@pytest.mark.more
def test_timed_views_that_are_declared_late_have_the_rows_of_their_epoch(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    chance = random.Random(5)
    graph = timed_graph(local_spark, tmp_path, "SELECT g, count(*) AS n FROM u GROUP BY g")
    graph.at(BEGIN)
    for number in range(3):
        graph.correct({(source, f"{number}"): random_rows(chance, 40) for source in ("t", "u")})
    first = graph.definitions[0]
    late = [ViewDefinition(f"late_{name}", VIEWS[name]) for name in ("between", "group", "join", "having", "case")]
    graph.declare([first, *late])
    with patch.object(parents_backfill, "_AT_ONCE_ROWS", 0):
        graph.settle()
    graph.check()
    for hours in (2, 0, 3.5):
        graph.at(graph.now + timedelta(hours=hours))
        graph.correct(*random_files(graph, chance))
        graph.check()
    graph.materializer.close()


@pytest.mark.more
def test_a_view_that_is_recomputed_as_a_whole_follows_a_timed_view(local_spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(3)
    full = ViewDefinition("full", "SELECT v.i, u.i AS j FROM v JOIN u ON v.i < u.i", on_full="allow")
    graph = TimedGraph(local_spark, tmp_path, [ViewDefinition("v", VIEWS["leaves"]), full], ("t", "u"))
    graph.at(BEGIN)
    graph.correct({("t", "first"): random_rows(chance, 60), ("u", "first"): random_rows(chance, 30)})
    for _ in range(3):
        graph.at(graph.now + timedelta(hours=2))
        graph.correct({})
        while graph.materializer.behind:
            time.sleep(0.02)
            if graph.materializer.has_news():
                graph.correct({})
        graph.check()
    graph.materializer.close()


@pytest.mark.more
def test_groups_that_are_taken_over_go_on_from_their_time(local_spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(3)
    graph = timed_graph(local_spark, tmp_path, VIEWS["group"])
    graph.at(BEGIN)
    graph.correct({("t", "first"): random_rows(chance, 200), ("u", "first"): random_rows(chance, 3)})
    graph.declare([ViewDefinition("v", f"{VIEWS['group']} HAVING count(*) > 1", replace=True)])
    assert not graph.materializer.backfilling, "its groups are stored"
    for hours in (3, 2):
        graph.at(graph.now + timedelta(hours=hours))
        graph.correct({})
        graph.check()
    graph.materializer.close()


@pytest.mark.more
def test_views_over_timed_views_follow_them(local_spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(11)
    queries = [
        VIEWS["leaves"],
        "SELECT k, count(*) AS n, sum(i) AS s FROM v GROUP BY k",
        "SELECT v1.k, n, u.i FROM v1 JOIN u USING (k) WHERE n > 1",
        "SELECT k, i FROM v WHERE at <= now() - INTERVAL 1 HOUR",
        "SELECT k, i FROM v ORDER BY i DESC LIMIT 4",
    ]
    graph = timed_graph(local_spark, tmp_path, *queries)
    graph.at(BEGIN)
    graph.correct({("t", "first"): random_rows(chance, 60), ("u", "first"): random_rows(chance, 30)})
    graph.check()
    _follow(graph, chance, [2, 1, 3])
    graph.reopen()
    _follow(graph, chance, [2, 0.5, 3])
    graph.materializer.close()


class _TimedFollowed(FollowedView):
    """A view over a source that is not stored, with a clock of its own."""

    def new_materializer(self) -> Materializer:
        self.clock = ManualClock(BEGIN)
        materializer = Materializer(self.spark, self.root, self.clock)
        self.plan = materializer.declare([self.definition], self.schemas, {}).plans[self.definition.name]
        return materializer

    def epoch_of(self, rows: Mapping[str, pa.Table]) -> None:
        self.epoch = (int(self.clock.now().timestamp() * 1000) << 16) - 1
        self.run(rows)


@pytest.mark.more
def test_an_epoch_begins_when_the_time_of_a_row_has_come(local_spark: SparkSession, tmp_path: Path) -> None:
    """Once, at most every five seconds, also for a row that came after others and leaves before them."""
    view = ViewDefinition("v", "SELECT i, at FROM t WHERE at > now() - INTERVAL 1 MINUTE")
    followed = _TimedFollowed(local_spark, tmp_path, view, {"t": _TIMES})

    def rows(*seconds: float) -> dict[str, pa.Table]:
        times = [BEGIN + timedelta(seconds=each) for each in seconds]
        return {"t": pa.table([pa.array(range(len(times)), pa.int64()), times], schema=_TIMES)}

    def news() -> bool:
        return followed.materializer.has_news()

    followed.epoch_of(rows(-40, -30, -90))
    assert followed.stored().num_rows == 2
    followed.clock.advance(1)
    assert not news(), "no row leaves before 20 seconds"
    followed.clock.advance(5)
    followed.epoch_of(rows(-50))
    found = []
    for _ in range(16):
        followed.clock.advance(2)
        found.append(news())
        if found[-1]:
            followed.epoch_of({})
    # The time of rows comes 10, 20 and 30 seconds after the beginning; 8, 14, 20, 26 and so on are five seconds apart.
    assert found == [seconds in (14, 20, 32) for seconds in range(8, 40, 2)]
    assert followed.stored().num_rows == 0
    followed.materializer.close()


@pytest.mark.more
def test_an_epoch_begins_when_any_boundary_of_a_condition_comes_to_a_row(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    """Rows leave after a minute, all but the first after two, and come again after three."""
    query = (
        "SELECT i FROM t WHERE i = 0 AND at > now() - INTERVAL 2 MINUTES OR at > now() - INTERVAL 1 MINUTE "
        "OR NOT at > now() - INTERVAL 3 MINUTES"
    )
    followed = _TimedFollowed(local_spark, tmp_path, ViewDefinition("v", query), {"t": _TIMES})
    times = [BEGIN - timedelta(seconds=each) for each in (0, 20, 30)]
    followed.epoch_of({"t": pa.table([pa.array([0, 1, 2], pa.int64()), times], schema=_TIMES)})
    found = {}
    for seconds in range(10, 200, 10):
        followed.clock.advance(10)
        if followed.materializer.has_news():
            followed.epoch_of({})
            found[seconds] = sorted(followed.stored()["i"].to_pylist())
    # At 60 and 90 seconds the boundaries come to a row whose other conditions decide.
    assert found == {
        30: [0, 1],
        40: [0],
        60: [0],
        90: [0],
        100: [0],
        120: [],
        150: [2],
        160: [1, 2],
        180: [0, 1, 2],
    }
    followed.materializer.close()


def test_rows_come_again_after_a_boundary_went_back(local_spark: SparkSession, tmp_path: Path) -> None:
    view = ViewDefinition("v", "SELECT i FROM t WHERE hour(at) < hour(now())")
    followed = _TimedFollowed(local_spark, tmp_path, view, {"t": _TIMES})
    times = [BEGIN.replace(hour=1), BEGIN.replace(hour=23)]
    followed.clock.advance(8 * 3600)
    followed.epoch_of({"t": pa.table([pa.array([1, 23]), times], schema=_TIMES)})
    found = [followed.stored()["i"].to_pylist()]
    for hours in (2, 2.5, 2, 21, 1):
        followed.clock.advance(hours * 3600)
        followed.epoch_of({})
        found.append(followed.stored()["i"].to_pylist())
    # At 20:00, 22:00, 0:30, 2:30, 23:30 and 0:30.
    assert found == [[1], [1], [], [1], [1], []]
    followed.materializer.close()


@pytest.mark.more
@pytest.mark.parametrize("condition", ["", "i < -1 AND at > now() - INTERVAL 15 MINUTES OR "])
def test_rows_that_leave_are_found_by_their_values(local_spark: SparkSession, tmp_path: Path, condition: str) -> None:
    """An epoch reads the rows that the time has reached, by any boundary, and no others."""
    view = ViewDefinition("v", f"SELECT i, at FROM t WHERE {condition}at > now() - INTERVAL 1 HOUR")
    followed = _TimedFollowed(local_spark, tmp_path, view, {"t": _TIMES})
    times = [BEGIN - timedelta(seconds=each) for each in range(5_000)]
    followed.epoch_of({"t": pa.table([pa.array(range(5_000), pa.int64()), times], schema=_TIMES)})
    read = list[int]()
    with patch.object(temporal_filter_rows, "count", lambda cost: read.append(cost.given)):
        followed.clock.advance(602)
        followed.epoch_of({})
    assert followed.stored().num_rows == 2_998 and read == [1204 if condition else 602]
    followed.materializer.close()


@pytest.mark.more_after(2)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT i FROM t WHERE i > 0 OR now() - at < INTERVAL 1 HOUR",
        "SELECT i FROM t WHERE i > nullif(hour(now()), 5)",
        "SELECT i FROM t WHERE cast(at AS string) < cast(now() AS string)",
        "SELECT i FROM t WHERE CASE WHEN i > 0 THEN at ELSE now() END > TIMESTAMP '2013-01-01'",
        "SELECT i FROM t WHERE b = (at > now())",
        "SELECT t.i FROM t LEFT JOIN u ON t.g = u.g AND t.at > now()",
        "SELECT count(*) FILTER (WHERE at > now()) AS n FROM t",
    ],
)
def test_other_conditions_on_the_time_are_refused(local_spark: SparkSession, query: str) -> None:
    views = [ViewDefinition("v", query), ViewDefinition("v", query, on_full="allow")]
    for view in views:
        with pytest.raises(NotIncrementalError, match=r"now\(\) in a condition: .* as in at > now\(\) - INTERVAL"):
            analyse(local_spark, view, _SCHEMAS, _SCHEMAS)


@pytest.mark.more
@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT i FROM t WHERE at > now() OR i NOT IN (SELECT i FROM u)", r"NOT IN .*write NOT EXISTS"),
        ("SELECT t.i FROM t JOIN u ON t.i < u.i WHERE t.at > now()", r"without equal columns"),
    ],
)
def test_the_reason_of_a_refusal_is_what_cannot_be_followed(local_spark: SparkSession, query: str, reason: str) -> None:
    for view in (ViewDefinition("v", query), ViewDefinition("v", query, on_full="allow")):
        with pytest.raises(NotIncrementalError, match=reason):
            analyse(local_spark, view, _SCHEMAS, _SCHEMAS)


@pytest.mark.more
def test_explain_tells_the_rule_and_the_cost(local_spark: SparkSession) -> None:
    plan = analyse(local_spark, ViewDefinition("v", VIEWS["group"]), _SCHEMAS)
    text = plan.explain()
    assert "below that, v.1 has the rows that the time adds or removes" in text
    assert "a scan of v.1 for the rows that the time has reached since the last epoch" in text
    assert filters_by_time(plan.identity) and not uses_epoch_timestamps(plan.identity)
    combined = analyse(local_spark, ViewDefinition("v", VIEWS["or"]), _SCHEMAS)
    assert "the rows with ((t.g = 1) OR (t.at > CAST(now() - INTERVAL '05' HOUR AS TIMESTAMP))), of v.1" in (
        combined.explain()
    )
    assert filters_by_time(combined.identity) and not uses_epoch_timestamps(combined.identity)


@pytest.mark.more
def test_the_identity_of_a_plain_filter_is_what_it_was(local_spark: SparkSession) -> None:
    """The views of a root that exists are not rebuilt."""
    text = {name: analyse(local_spark, ViewDefinition("v", VIEWS[name]), _SCHEMAS).identity for name in _IDENTITIES}
    found = {name: re.findall(r"time 1 of v\.1 is (.*)", each) for name, each in text.items()}
    assert found == {name: [each] for name, each in _IDENTITIES.items()}

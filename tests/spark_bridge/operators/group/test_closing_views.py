"""Views that show a group when its window, or its session, closes: at every epoch exactly the groups of closed ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_bridge.engine.catalyst.arrow_frames import arrow_schema, frame_of_table, table_of_frame
from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from state.errors import ViewError
from state.location import Location
from tests.cases import few
from tests.spark_bridge.closed_view import SCHEMA, START, Followed, Groups, Sessions, Windows, rows_of_file, us
from tests.spark_bridge.same_rows import difference
from tests.spark_bridge.ways_of_rows import as_if_many

_TUMBLING = (
    "SELECT window.start AS since, window.end AS until, k, count(*) AS n, sum(x) AS s FROM t "
    "WHERE x IS NOT NULL GROUP BY window(at, '10 minutes'), k"
)
_HOPPING = _TUMBLING.replace("'10 minutes'", "'20 minutes', '5 minutes'")
_HAVING = _TUMBLING + " HAVING count(*) > 1"
_SESSIONS = (
    "SELECT session_window.start AS since, session_window.end AS until, k, count(*) AS n, sum(x) AS s FROM t "
    "WHERE x IS NOT NULL GROUP BY k, session_window(at, '4 minutes')"
)
_VIEWS: dict[str, tuple[str, Callable[[], Groups], int]] = {
    "tumbling": (_TUMBLING, partial(Windows, 10, 10), 1),
    "hopping": (_HOPPING, partial(Windows, 20, 5), 1),
    "having": (_HAVING, partial(Windows, 10, 10), 2),
    "sessions": (_SESSIONS, partial(Sessions, 4), 1),
    "hopping, distinct": (_HOPPING.replace("sum(x)", "sum(DISTINCT x)"), partial(Windows, 20, 5), 1),
    "windows of a view": (
        _TUMBLING.replace("FROM t WHERE x IS NOT NULL", "FROM clean").replace("(at,", "(moment,"),
        partial(Windows, 10, 10),
        1,
    ),
    "sessions of a subquery": (
        _SESSIONS.replace("FROM t WHERE x IS NOT NULL", "FROM (SELECT x, k, at FROM t WHERE x > 0)"),
        partial(Sessions, 4),
        1,
    ),
    "sessions, having": (_SESSIONS + " HAVING count(*) > 1", partial(Sessions, 4), 2),
}


def _followed(spark: SparkSession, root: Path, name: str, *, is_late: bool = False) -> Followed:
    query, groups, least = _VIEWS[name]
    return Followed(spark, root, query, groups, least=least, is_late=is_late)


@pytest.mark.more_after(1)
@pytest.mark.parametrize("name", few([*_VIEWS], "sessions", "hopping, distinct"))
def test_groups_are_shown_when_their_window_closes_and_never_change(
    local_spark: SparkSession, tmp_path: Path, name: str
) -> None:
    chance = random.Random(7)
    followed = _followed(local_spark, tmp_path, name)
    shown = []
    for epoch in range(12):
        if epoch in (4, 9):
            followed.reopen()
        rows = None if epoch in (3, 8) else rows_of_file(chance, f"f{epoch}", 20, range(epoch * 5, epoch * 5 + 40))
        if epoch in (6, 10):
            rows = rows_of_file(chance, f"late{epoch}", 9, range(60))
        if epoch == 7:
            followed.lose(rows_of_file(chance, "lost", 9, range(60)), 7 * epoch + 30)
        with as_if_many() if epoch in (5, 6) else nullcontext():
            followed.run(rows, None if epoch < 2 else 7 * epoch)
        shown.append(followed.check())
    assert shown[0] == 0 and shown[-1] > shown[5] > 0
    followed.materializer.close()


@pytest.mark.more
@pytest.mark.parametrize(
    "sessions",
    [
        "GROUP BY session_window(at, '2 minutes')",
        pytest.param("GROUP BY session_window(at, '30 seconds'), upper(k), x > 1", marks=pytest.mark.more),
        pytest.param(
            "GROUP BY session_window(at, CASE WHEN x = 1 THEN '10 seconds' ELSE '3 minutes' END), k",
            marks=pytest.mark.more,
        ),
    ],
    ids=["without a key", "by expressions", "gaps of rows"],
)
def test_all_sessions_are_sparks_when_they_have_closed(
    local_spark: SparkSession, tmp_path: Path, sessions: str
) -> None:
    query = (
        "SELECT session_window.end AS until, count(*) AS n, max(x) AS most, avg(x) AS x, approx_count_distinct(k) AS k "
        f"FROM t WHERE x IS NOT NULL {sessions}"
    )
    chance, followed = random.Random(5), Followed(local_spark, tmp_path, query, partial(Sessions, 0))
    files = [rows_of_file(chance, f"f{epoch}", 30, range(90)) for epoch in range(5)]
    for rows in files:
        followed.run(rows, None)
        assert followed.shown().num_rows == 0
    followed.run(None, 1_000)
    frame_of_table(local_spark, pa.concat_tables(files)).createOrReplaceTempView("t")
    answer = local_spark.sql(query)
    expected = table_of_frame(answer, arrow_schema(answer.schema))
    local_spark.catalog.dropTempView("t")
    shown = followed.shown().select(expected.schema.names)
    assert shown.num_rows > 5 and difference(shown, expected, (), {}) is None
    followed.materializer.close()


@pytest.mark.more
def test_a_session_that_ends_at_the_watermark_may_get_longer(local_spark: SparkSession, tmp_path: Path) -> None:
    followed = _followed(local_spark, tmp_path, "sessions")

    def row(minute: int) -> pa.Table:
        values = {"at": START + timedelta(minutes=minute), "k": "a", "x": 1, "_path": f"/in/{minute}", "_row": 0}
        return pa.Table.from_pylist([values], SCHEMA)

    shown = []
    for rows, minute in ((row(0), None), (None, 4), (row(4), 5), (row(6), 10), (None, 11)):
        followed.run(rows, minute)
        shown.append(followed.check())
    assert shown == [0, 0, 0, 0, 1]
    assert followed.shown().column("n").to_pylist() == [3]
    followed.materializer.close()


@pytest.mark.more
@pytest.mark.parametrize("name", ["tumbling", "sessions", "hopping, distinct"])
def test_a_view_that_is_declared_late_closes_its_windows_when_it_is_shown(
    local_spark: SparkSession, tmp_path: Path, name: str
) -> None:
    chance = random.Random(3)
    followed = _followed(local_spark, tmp_path, name, is_late=True)
    for epoch in range(3):
        followed.run(rows_of_file(chance, f"f{epoch}", 20, range(epoch * 5, epoch * 5 + 40)), 5 * epoch)
    followed.declare()
    for epoch in range(3, 60):
        if not followed.is_hidden:
            break
        if epoch == 6:
            followed.reopen()
        if not followed.materializer.backfill():
            followed.run(rows_of_file(chance, f"f{epoch}", 3, range(60)), 20)
    assert followed.is_shown
    at = {"t": us(20)}
    news = [followed.materializer.has_news(at)]
    followed.run(None, 20)
    news.append(followed.materializer.has_news(at))
    assert news == [True, False], "the next epoch closes its windows"
    assert followed.check() > 0
    followed.run(rows_of_file(chance, "late", 9, range(60)), 30)
    assert followed.check() > 0
    # Late rows are accepted: the view is rebuilt.
    followed.rebuild()
    for epoch in range(60, 99):
        if not followed.is_hidden:
            break
        if epoch == 63:
            followed.reopen()
        if not followed.materializer.backfill():
            followed.run(rows_of_file(chance, f"f{epoch}", 3, range(60)), 40)
    assert not followed.is_hidden
    followed.run(None, 40)
    followed.check()
    followed.materializer.close()


@pytest.mark.more_after(2)
@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("SELECT at, k FROM t", "it does not group the rows of one source"),
        ("SELECT k, count(*) AS n FROM t GROUP BY k", "it does not group by one window of the event time at"),
        (
            "SELECT window.end AS e, count(*) AS n FROM t GROUP BY window(at + INTERVAL 1 HOUR, '1 hour')",
            "of the event",
        ),
        ("SELECT k, count(*) AS n FROM t GROUP BY ROLLUP (window(at, '1 hour'), k)", "a group of ROLLUP, CUBE or"),
        ("SELECT window.end AS e, count(*) AS n FROM u GROUP BY window(at, '1 hour')", "source u has no event time"),
        (
            "SELECT window.end AS e, count(*) AS n FROM p GROUP BY window(at, '1 hour')",
            "source p has no _path and _row",
        ),
        ("SELECT window.end AS e, count(*) AS n FROM m GROUP BY window(at, '1 hour')", "source m can be replaced"),
        (
            "SELECT window.end AS e, count(*) AS n FROM (SELECT DISTINCT at, k FROM t) GROUP BY window(at, '1 hour')",
            "it does not group the rows of one source",
        ),
        (
            "SELECT window.end AS e, count(*) AS n FROM t JOIN u USING (k) GROUP BY window(t.at, '1 hour')",
            "it does not group the rows of one source",
        ),
        (
            "SELECT count(*) AS n FROM t GROUP BY session_window(at + INTERVAL 1 DAY, '1 hour')",
            "it does not group by one window of the event time at",
        ),
        (
            "SELECT session_window.end AS e, count(DISTINCT k) AS n FROM t GROUP BY session_window(at, '1 hour')",
            "it has DISTINCT over sessions",
        ),
    ],
)
def test_what_cannot_be_closed_is_refused_with_the_reason(
    local_spark: SparkSession, tmp_path: Path, query: str, what: str
) -> None:
    bare = pa.schema([*SCHEMA][:3])
    event_times = dict.fromkeys("tpm", "at")
    materializer = Materializer(local_spark, Location(str(tmp_path)), materialized=["m"], event_times=event_times)
    schemas: dict[str, pa.Schema | None] = {"t": SCHEMA, "u": SCHEMA, "m": SCHEMA, "p": bare}
    with pytest.raises(ViewError, match=what):
        materializer.declare([ViewDefinition("v", query, emit="on_close", on_full="allow")], schemas, {})
    materializer.close()


def test_an_emit_that_there_is_not_is_refused() -> None:
    with pytest.raises(ViewError, match="view 'v': emit='final' is not 'on_close'"):
        ViewDefinition("v", "SELECT 1", emit="final")  # type: ignore[arg-type]

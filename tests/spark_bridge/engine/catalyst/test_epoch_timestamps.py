"""`current_timestamp()` is the time of the epoch: the same rows in the same epoch give the same view."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_bridge.engine.catalyst.epoch_timestamps import uses_epoch_timestamps
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.query.analysis import analyse
from state.epoch import epoch_time_us
from state.errors import NotIncrementalError
from tests.spark_bridge.followed_view import FollowedView

SCHEMA = pa.schema([("k", pa.string()), ("n", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
START = datetime(2026, 3, 1, 23, 59, 59, tzinfo=UTC)
FIRST = int(START.timestamp() * 1000) << 16


def rows(*numbers: int) -> pa.Table:
    return pa.table({"k": [f"k{n % 2}" for n in numbers], "n": numbers, "at": [START] * len(numbers)}, schema=SCHEMA)


def followed(spark: SparkSession, tmp_path: Path, query: str) -> list[dict[str, Any]]:
    """The view after two epochs, half a minute apart."""
    view = FollowedView(spark, tmp_path, ViewDefinition("v", query), {"t": SCHEMA})
    for epoch, table in ((FIRST, rows(1, 2)), (FIRST + (30_000 << 16), rows(3))):
        view.epoch = epoch - 1
        view.run({"t": table}, pieces=2)
    return sorted(view.stored().to_pylist(), key=str)


def test_the_time_of_an_epoch_is_in_its_number() -> None:
    assert epoch_time_us(FIRST) == int(START.timestamp() * 1_000_000)


def test_rows_get_the_time_of_the_epoch_that_ingests_them(local_spark: SparkSession, tmp_path: Path) -> None:
    query = "SELECT n, current_timestamp() AS ts, now() AS now, current_date() AS day, localtimestamp() AS wall FROM t"
    found = followed(local_spark, tmp_path, query)
    later = START + timedelta(seconds=30)
    assert found == [
        {"n": n, "ts": ts, "now": ts, "day": ts.date(), "wall": ts.replace(tzinfo=None)}
        for n, ts in ((1, START), (2, START), (3, later))
    ]


@pytest.mark.parametrize(
    "query",
    ["SELECT n, now() AS c FROM t", "SELECT n, max(c) AS c FROM (SELECT n, now() AS c FROM t) GROUP BY n"],
    ids=["projection", "grouped"],
)
def test_the_code_of_few_rows_keeps_no_time(local_spark: SparkSession, tmp_path: Path, query: str) -> None:
    view = FollowedView(local_spark, tmp_path, ViewDefinition("v", query), {"t": SCHEMA})
    for number in range(3):
        view.epoch = FIRST + (number * 1_000 << 16) - 1
        view.run({"t": rows(number)})
    found = {row["n"]: row["c"] for row in view.stored().to_pylist()}
    assert found == {number: START + timedelta(seconds=number) for number in range(3)}


@pytest.mark.more_after(1)
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT n FROM (SELECT n, at < now() AS past FROM t) WHERE past", [{"n": 3}]),
        ("SELECT n, d FROM t LATERAL VIEW explode(array(day(now()))) e AS d", [{"n": n, "d": d} for n, d in
         ((1, 1), (2, 1), (3, 2))]),
        ("SELECT current_date() AS day, count(*) AS n FROM t GROUP BY current_date()",
         [{"day": START.date(), "n": 2}, {"day": START.date() + timedelta(days=1), "n": 1}]),
        ("SELECT sum(if(at < now(), 1, 0)) AS late, max(now()) = timestamp'2026-03-02 00:00:29Z' AS is_last "
         "FROM t", [{"late": 1, "is_last": True}]),
        ("SELECT k, day(now()) AS d, count(*) AS n FROM t GROUP BY ROLLUP (k, day(now()))",
         [{"k": "k0", "d": 1, "n": 1}, {"k": "k0", "d": None, "n": 1}, {"k": "k1", "d": 1, "n": 1},
          {"k": "k1", "d": 2, "n": 1}, {"k": "k1", "d": None, "n": 2}, {"k": None, "d": None, "n": 3}]),
        ("SELECT max(s) AS s FROM (SELECT unix_timestamp(now()) AS s FROM t UNION ALL SELECT n FROM t)",
         [{"s": int(START.timestamp()) + 30}]),
    ],
)  # fmt: skip
def test_it_may_stand_in_every_expression_of_a_projection(
    local_spark: SparkSession, tmp_path: Path, query: str, expected: list[dict[str, Any]]
) -> None:
    assert followed(local_spark, tmp_path, query) == sorted(expected, key=str)


def test_above_an_aggregation_it_is_refused(local_spark: SparkSession) -> None:
    with pytest.raises(NotIncrementalError, match=r"now\(\).*below the aggregation"):
        analyse(local_spark, ViewDefinition("v", "SELECT k, max(at) < now() AS old FROM t GROUP BY k"), {"t": SCHEMA})


def test_in_a_condition_of_an_aggregate_it_is_refused(local_spark: SparkSession) -> None:
    query = "SELECT k, count(*) FILTER (WHERE at < now()) AS late FROM t GROUP BY k"
    with pytest.raises(NotIncrementalError, match=r"\(\) in a condition: rows come and leave as time passes by"):
        analyse(local_spark, ViewDefinition("v", query), {"t": SCHEMA})


def test_the_identity_of_a_view_shows_its_use(local_spark: SparkSession) -> None:
    for query, uses in (
        ("SELECT k, now() AS at FROM t", True),
        ("SELECT k, current_date() AS at FROM t", True),
        ("SELECT k, localtimestamp() AS at FROM t", True),
        ("SELECT k, current_timestamp() AS at FROM t", True),
        ("SELECT k, at AS now FROM t", False),
    ):
        plan = analyse(local_spark, ViewDefinition("v", query), {"t": SCHEMA})
        assert uses_epoch_timestamps(plan.identity) == uses

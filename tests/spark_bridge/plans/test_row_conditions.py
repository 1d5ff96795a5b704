"""Conditions over the rows of a view are those of Spark's SQL, and a condition that is none is refused at once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_bridge.engine.session.spark_jobs import SparkJobs
from spark_bridge.plans.row_conditions import RowConditions
from state.errors import ViewError

SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("amount", pa.int64()),
        ("price", pa.decimal128(10, 2)),
        ("at", pa.timestamp("us", tz="UTC")),
        ("tags", pa.list_(pa.string())),
    ]
)
ROWS = pa.table(
    {
        "name": ["a", "b", None, "d"],
        "amount": [1, -1, None, 4],
        "price": [Decimal("1.00"), Decimal("-2.50"), None, Decimal("0.00")],
        "at": [datetime(2026, 1, day, tzinfo=UTC) for day in range(1, 5)],
        "tags": [["x"], [], None, ["x", "y"]],
    },
    schema=SCHEMA,
)


def conditions_over(spark: SparkSession, conditions: Mapping[str, str]) -> RowConditions:
    return RowConditions(spark, SparkJobs(spark), "v", SCHEMA, conditions)


def unfulfilled(local_spark: SparkSession, **conditions: str) -> dict[str, list[bool]]:
    found, errors = conditions_over(local_spark, conditions).unfulfilled(ROWS)
    assert errors == {}
    return {name: each.to_pylist() for name, each in found.items()}


def test_each_condition_tells_the_rows_that_do_not_fulfil_it(local_spark: SparkSession) -> None:
    found = unfulfilled(
        local_spark,
        positive="amount > 0",
        named="name IS NOT NULL",
        tagged="size(tags) > 0",
        early="at < timestamp'2026-01-03 00:00:00Z'",
        cheap="price <= 1.0",
    )
    assert found == {
        "positive": [False, True, True, False],  # a null condition is not fulfilled
        "named": [False, False, True, False],
        "tagged": [False, True, True, False],
        "early": [False, False, True, True],
        "cheap": [False, False, True, False],
    }


def test_a_null_passes_where_the_condition_says_so(local_spark: SparkSession) -> None:
    assert unfulfilled(local_spark, c="amount > 0 OR amount IS NULL") == {"c": [False, True, False, False]}


@pytest.mark.parametrize("condition", ["1 = 1", "true", "name = name AND true"])
def test_conditions_that_spark_folds_are_computed_too(local_spark: SparkSession, condition: str) -> None:
    assert len(unfulfilled(local_spark, c=condition)["c"]) == 4


def test_an_error_of_one_condition_does_not_hide_the_others(local_spark: SparkSession) -> None:
    conditions = {"positive": "amount > 0", "whole": "assert_true(amount > 100) IS NULL"}
    found, errors = conditions_over(local_spark, conditions).unfulfilled(ROWS)
    assert found["positive"].to_pylist() == [False, True, True, False]
    assert list(errors) == ["whole"] and "amount" in errors["whole"]


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("amount >", "Syntax error"),
        ("amout > 0", "amout"),
        ("amount", "a value of type bigint"),
        ("sum(amount) > 0", "no one value for a row"),
        ("row_number() OVER (ORDER BY name) > 0", "no one value for a row"),
        ("at < current_timestamp()", "no one value for a row"),
        ("at < now()", "no one value for a row"),
        ("rand() < 2", "no one value for a row"),
        ("amount IN (SELECT 1)", "no one value for a row"),
        ("explode(tags) = 'x'", ""),
        ("", ""),
    ],
)
def test_what_is_no_condition_over_a_row_is_refused(local_spark: SparkSession, condition: str, reason: str) -> None:
    with pytest.raises(ViewError, match=r"view 'v': expectation 'it holds'") as refused:
        conditions_over(local_spark, {"it holds": condition})
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)

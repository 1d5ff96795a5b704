"""A query that is planned once gives the rows and the errors of the same query, planned over these rows."""

from __future__ import annotations

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from spark_bridge.engine.catalyst.arrow_frames import frame_of_table, table_of_frame
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.queries import analysed
from spark_bridge.engine.execution.planned_once import TableQuery
from spark_bridge.engine.session.spark_errors import one_line
from tests.cases import few

SCHEMA = pa.schema([("k", pa.string()), ("i", pa.int64()), ("many", pa.list_(pa.string()))])


def query(spark: SparkSession, *expressions: str, where: str | None = None) -> tuple[TableQuery, pa.Schema]:
    catalyst = Catalyst(spark)
    frame = frame_of_table(spark, SCHEMA.empty_table())
    plan = analysed((frame if where is None else frame.where(where)).selectExpr(*expressions))
    return TableQuery(catalyst, plan), catalyst.schemas.arrow_schema(plan)


def rows(count: int) -> pa.Table:
    return pa.table(
        {
            "k": [None if number % 7 == 0 else f"it's {number}" for number in range(count)],
            "i": [None if number % 5 == 0 else number for number in range(count)],
            "many": [[f"{number}"] * (number % 3) for number in range(count)],
        },
        schema=SCHEMA,
    )


@pytest.mark.parametrize("count", few([0, 1, 3, 50_000], 3), ids=["none", "one", "few", "by a file"])
@pytest.mark.parametrize("where", few([None, "i % 2 = 1"], "i % 2 = 1"), ids=["projected", "filtered"])
def test_it_gives_the_rows_of_a_query(local_spark: SparkSession, count: int, where: str | None) -> None:
    expressions = ("upper(k) AS u", "i", "i + 1 AS next", "many", "transform(many, each -> concat(each, k)) AS joined")
    made, schema = query(local_spark, *expressions, where=where)
    frame = frame_of_table(local_spark, rows(count))
    expected = (frame if where is None else frame.where(where)).selectExpr(*expressions)
    for _ in range(2):
        assert made.table(rows(count), schema).equals(table_of_frame(expected, schema))


def test_a_plan_that_changes_nothing_gives_its_rows(local_spark: SparkSession) -> None:
    made, schema = query(local_spark, "*")
    assert made.table(rows(100), schema).equals(rows(100))


def test_an_error_in_a_last_row_is_raised(local_spark: SparkSession) -> None:
    made, schema = query(local_spark, "if(i = 49999, raise_error('too wet'), k) AS e")
    with pytest.raises(Py4JJavaError) as failed:
        made.table(rows(50_000), schema)
    assert "too wet" in one_line(failed.value)


@pytest.mark.more_after(1)
@pytest.mark.parametrize("count", [0, 1, 1_000])
def test_other_operators_have_a_physical_plan_that_is_made_once(local_spark: SparkSession, count: int) -> None:
    local_spark.udf.register("shouted", lambda text: text and f"{text}!", "string")
    for expressions in (("k", "explode(many) AS each"), ("shouted(k) AS s", "i")):
        made, schema = query(local_spark, *expressions)
        for present in (rows(count), rows(3)):
            expected = table_of_frame(frame_of_table(local_spark, present).selectExpr(*expressions), schema)
            assert made.table(present, schema).equals(expected)


@pytest.mark.parametrize("count", few([0, 3, 50_000], 3), ids=["none", "few", "by a file"])
def test_a_filter_that_is_never_true_passes_no_row(local_spark: SparkSession, count: int) -> None:
    for where in ("CAST(NULL AS string) IS NOT NULL", "i < 1 AND i IS NULL", "false"):
        made, schema = query(local_spark, "k", "i + 1 AS next", where=where)
        assert made.table(rows(count), schema).equals(schema.empty_table())
    local_spark.udf.register("shouted", lambda text: text and f"{text}!", "string")
    made, schema = query(local_spark, "shouted(k) AS s", where="false")
    assert made.table(rows(count), schema).equals(schema.empty_table())


def test_a_null_element_is_null_for_an_interpreted_function(local_spark: SparkSession) -> None:
    catalyst, given = Catalyst(local_spark), pa.table({"many": pa.array([[1, None], None, []], pa.list_(pa.int64()))})
    frame = frame_of_table(local_spark, given.schema.empty_table()).selectExpr("transform(many, n -> n + 1) AS more")
    found = TableQuery(catalyst, analysed(frame)).table(given, pa.schema([("more", pa.list_(pa.int64()))]))
    assert found.column("more").to_pylist() == [[2, None], None, []]

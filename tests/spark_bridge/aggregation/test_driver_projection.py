"""A compiled projection over rows in the driver gives the rows and the errors of a query with the same plan."""

from __future__ import annotations

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from spark_bridge.aggregation.driver_projection import DriverProjection
from spark_bridge.catalyst.arrow_frames import frame_of_table, table_of_frame
from spark_bridge.catalyst.catalyst import Catalyst
from spark_bridge.session.spark_errors import one_line
from tests.cases import few

SCHEMA = pa.schema([("k", pa.string()), ("i", pa.int64()), ("many", pa.list_(pa.string()))])


def projection(spark: SparkSession, *expressions: str, where: str | None = None) -> tuple[DriverProjection, pa.Schema]:
    catalyst = Catalyst(spark)
    frame = frame_of_table(spark, SCHEMA.empty_table())
    if where is not None:
        frame = frame.where(where)
    plan = frame.selectExpr(*expressions)
    schema = table_of_frame(plan, catalyst.arrow_schema(plan._jdf.queryExecution().analyzed())).schema
    analysed = plan._jdf.queryExecution().analyzed()
    leaf = analysed
    while leaf.children().size():
        leaf = leaf.children().apply(0)
    return DriverProjection(catalyst, analysed, catalyst.items(leaf.output()), SCHEMA, schema), schema


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
    compiled, schema = projection(local_spark, *expressions, where=where)
    frame = frame_of_table(local_spark, rows(count))
    query = (frame if where is None else frame.where(where)).selectExpr(*expressions)
    for _ in range(2):
        assert compiled.run(rows(count)).equals(table_of_frame(query, schema))


def test_a_plan_that_changes_nothing_gives_its_rows(local_spark: SparkSession) -> None:
    compiled, _ = projection(local_spark, "*")
    assert compiled.run(rows(100)).equals(rows(100))


def test_an_error_in_a_last_row_is_raised(local_spark: SparkSession) -> None:
    compiled, _ = projection(local_spark, "if(i = 49999, raise_error('too wet'), k) AS e")
    with pytest.raises(Py4JJavaError) as failed:
        compiled.run(rows(50_000))
    assert "too wet" in one_line(failed.value)

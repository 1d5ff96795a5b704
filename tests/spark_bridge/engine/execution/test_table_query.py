"""Projections and filters over one leaf give the rows of the query that Spark plans."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from weakref import WeakKeyDictionary

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_bridge.engine.catalyst import java_classes
from spark_bridge.engine.catalyst.arrow_frames import arrow_schema, frame_of_table, table_of_frame
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Plan
from spark_bridge.engine.execution.planned_once import TableQuery

SCHEMA = pa.schema([("k", pa.string()), ("i", pa.int64()), ("many", pa.list_(pa.string()))])
ROWS = pa.table(
    {
        "k": [None if number % 7 == 0 else f"a text of {number}" for number in range(1_000)],
        "i": [None if number % 5 == 0 else number % 4 for number in range(1_000)],
        "many": [[f"{number}"] * (number % 3) for number in range(1_000)],
    },
    schema=SCHEMA,
)
QUERIES = {
    "a projection": "SELECT upper(k) AS u, i + 1 AS next, many FROM t",
    "a filter": "SELECT * FROM t WHERE i > 1",
    "a filter guards the projection": "SELECT k, 12 / i AS share FROM t WHERE i <> 0",
    "a projection below a filter": "SELECT u FROM (SELECT upper(k) AS u, i FROM t) WHERE u LIKE '%1%' AND i > 0",
    "all rows": "SELECT * FROM t",
}


def plan_of(spark: SparkSession, query: str) -> Plan:
    frame_of_table(spark, SCHEMA.empty_table()).createOrReplaceTempView("t")
    try:
        return Catalyst(spark).queries.analyse(Catalyst(spark).queries.parse(query))
    finally:
        spark.catalog.dropTempView("t")


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_they_give_the_rows_of_the_query(local_spark: SparkSession, query: str) -> None:
    catalyst, plan = Catalyst(local_spark), plan_of(local_spark, query)
    compiled = TableQuery(catalyst, plan)
    frame_of_table(local_spark, ROWS).createOrReplaceTempView("t")
    expected = local_spark.sql(query)
    schema = arrow_schema(expected.schema)
    expected_rows = table_of_frame(expected, schema)
    assert expected_rows.num_rows
    for _ in range(2):
        assert compiled.table(ROWS, schema).equals(expected_rows)
    assert compiled.table(ROWS.slice(0, 0), schema).num_rows == 0


def test_a_java_class_that_is_compiled_again_is_another_one(
    local_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for another session in the same JVM: py4j calls the methods of classes by their names."""
    schema, query = pa.schema([("i", pa.int64())]), "SELECT i FROM t WHERE i > 1"
    for _ in range(2):
        monkeypatch.setattr(java_classes, "_instances", WeakKeyDictionary())
        compiled = TableQuery(Catalyst(local_spark), plan_of(local_spark, query))
        assert compiled.table(pa.table({"i": [1, 2]}), schema).to_pydict() == {"i": [2]}


def test_a_system_without_files_in_memory_has_temporary_ones(
    local_spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    compiled = TableQuery(Catalyst(local_spark), plan_of(local_spark, "SELECT i FROM t WHERE i > 1"))
    found = compiled.table(pa.table({"i": [1, 2, 3]}), pa.schema([("i", pa.int64())]))
    assert found.to_pydict() == {"i": [2, 3]}
    assert not [*tmp_path.iterdir()]


def test_a_column_that_the_rows_lack_is_null(local_spark: SparkSession) -> None:
    compiled = TableQuery(Catalyst(local_spark), plan_of(local_spark, "SELECT i, k, many IS NULL AS none FROM t"))
    schema = pa.schema([("i", pa.int64()), ("k", pa.string()), ("none", pa.bool_())])
    found = compiled.table(pa.table({"i": [1, 2]}), schema)
    assert found.to_pydict() == {"i": [1, 2], "k": [None, None], "none": [True, True]}

"""Rows as Spark's tasks read them, without a DataFrame: RDDs of internal rows, for the leaves of physical plans.

Spark makes an RDD of rows from Arrow messages by a function that it does not offer apart from a DataFrame, whose
creation analyses a query.  So a DataFrame without meaning is made once for each schema, and its function is applied to
other messages.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import SparkSession

from spark_bridge.engine.catalyst.arrow_frames import arrow_schema, frame_of_table, spark_schema, write_stream
from spark_bridge.engine.catalyst.queries import analysed
from spark_bridge.engine.execution.driver_plan import java_plans
from state.tables.lance_layout import with_schema


@dataclass(frozen=True, eq=False)
class TaskRows:
    """Rows as tasks read them.

    Args:
        rdd: an RDD of Spark's internal rows, a Java object.
        schema: their columns.
        constants: further columns, of integers: name → the value of all rows.
    """

    rdd: Any
    schema: pa.Schema
    constants: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Converter:
    to_rows: Callable[[Any], Any]
    schema: pa.Schema


_converters: WeakKeyDictionary[Any, dict[pa.Schema, _Converter]] = WeakKeyDictionary()


def rows_of_messages(spark: SparkSession, messages: Any, schema: pa.Schema) -> TaskRows:
    """Rows of Arrow messages, which tasks convert.

    Args:
        messages: an RDD of bytes, a Java object; each partition has the batches of some rows, without their schema.
        schema: the columns of the batches.
    """
    converter = _converter(spark, schema)
    return TaskRows(converter.to_rows(messages), converter.schema)


def rows_of_table(spark: SparkSession, table: pa.Table, rows_per_task: int | None = None) -> TaskRows:
    """Rows of this process, which are sent to the tasks.

    Args:
        rows_per_task: at most; None for Arrow's own batches.
    """
    converter = _converter(spark, table.schema)
    with tempfile.NamedTemporaryFile(prefix="slackwater-", suffix=".arrow") as file:
        write_stream(file, with_schema(table, converter.schema), rows_per_task)
        messages = java_plans(spark).messages(file.name, spark._jsparkSession.sparkContext())
    return TaskRows(converter.to_rows(messages), converter.schema)


def _converter(spark: SparkSession, schema: pa.Schema) -> _Converter:
    known = _converters.setdefault(spark.sparkContext, {})
    if schema not in known:
        java, struct = java_plans(spark), spark_schema(schema)
        columns = spark._jsparkSession.parseDataType(struct.json())
        session = spark.newSession()
        # One row is too large for the driver, so that the DataFrame has an RDD.
        session.conf.set("spark.sql.execution.arrow.localRelationThreshold", "0")
        session.conf.set("spark.sql.session.timeZone", "UTC")
        like = arrow_schema(struct)
        row = pa.table([pa.nulls(1, each.type) for each in like], names=like.names)
        rdd = analysed(frame_of_table(session, row)).rdd()
        known[schema] = _Converter(lambda messages: java.converted(messages, rdd, columns), like)
    return known[schema]

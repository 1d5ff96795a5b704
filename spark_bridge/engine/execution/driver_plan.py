"""A physical plan over a few rows that runs in the driver's thread: put together and compiled once, without a job.

Spark makes the code of a stage again for each job, cleans and ships the closures around it, and schedules a task: 20 to
30 ms for rows that take one.  RDDs without a shuffle compute their partitions in the thread that asks for them.  So the
RDDs of a plan are made once, over leaves whose rows are set before each run.

Each call from Python takes 0.1 ms, so a run is one call of a Java class, `driver_plan.java`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import IO, Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import SparkSession

from spark_bridge.engine.catalyst.arrow_frames import (
    Messages,
    arrow_schema,
    spark_schema,
    table_of_messages,
    write_stream,
)
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.java_classes import java_instance
from spark_bridge.engine.catalyst.trees import PhysicalPlan, Plan, parts_of
from state.tables.lance_layout import with_schema

_SOURCE = Path(__file__).with_suffix(".java")
_NULL = pa.field("__sw_null", pa.null())


@dataclass(frozen=True, eq=False)
class HeldRows:
    """Rows in the memory of the driver's JVM, converted from Arrow once for all plans that read them.

    Args:
        rows: Spark's internal rows, a Java object; behind the columns each has a null.
        layout: the number of the columns and their order.
        schema: the columns, with the types as Spark has them.
        table: the same rows.
    """

    rows: Any
    layout: int
    schema: pa.Schema
    table: pa.Table


@dataclass(frozen=True)
class _Reader:
    read: Any
    layout: int
    schema: pa.Schema


_layouts = count(1)
_readers: WeakKeyDictionary[Any, dict[pa.Schema, _Reader]] = WeakKeyDictionary()


def held_rows(spark: SparkSession, table: pa.Table) -> HeldRows:
    """Converts few rows for plans in the driver."""
    readers = _readers.setdefault(spark.sparkContext, {})
    if (reader := readers.get(table.schema)) is None:
        struct = spark_schema(table.schema.append(_NULL))
        columns = spark._jsparkSession.parseDataType(struct.json())
        schema = arrow_schema(struct)
        layout = next(_layouts)
        reader = readers[table.schema] = _Reader(java_plans(spark).reader(columns, layout).rows, layout, schema)
    rows = with_schema(table.append_column(_NULL, pa.nulls(table.num_rows)), reader.schema)
    with _scratch() as (file, path):
        write_stream(file, rows)
        return HeldRows(reader.read(path), reader.layout, reader.schema.remove(len(reader.schema) - 1), table)


def java_plans(spark: SparkSession) -> Any:
    """The Java object that makes plans and readers."""
    return java_instance(spark, _SOURCE, "DriverPlan")


class DriverPlan:
    """A plan without shuffles and processes of Python, put together.

    Args:
        plan: a physical plan, not prepared.
        leaves: of the analysed plan; each has the columns of a leaf of the physical plan.
        before: the leaves of the physical plan that are replaced, one for each of `leaves`.
        struct: StructType of the result, a Java object; its names are free.
    """

    def __init__(
        self, catalyst: Catalyst, plan: PhysicalPlan, leaves: Sequence[Plan], before: Sequence[Any], struct: Any
    ) -> None:
        self._catalyst = catalyst
        java, session = java_plans(catalyst.spark), catalyst.spark._jsparkSession
        self._schemas = [catalyst.schemas.arrow_schema(each) for each in leaves]
        rdds = [java.leaf(session.sparkContext(), each.schema()) for each in leaves]
        scans = [catalyst.physical.scan_of_one(each.output(), rdd) for each, rdd in zip(leaves, rdds, strict=True)]
        over_rows = java.over(plan, list(before), scans)
        self._made: Any = None
        prepared = catalyst.physical.prepared(over_rows)
        if not any(map(_needs_job, parts_of(catalyst.trees, prepared))):
            self._made = java.of(prepared.execute(), rdds, struct, session)
        self._has_types: dict[tuple[int, int], bool] = {}
        gateway: Any = catalyst.spark.sparkContext._gateway
        self._gateway = gateway.java_gateway_server.getGateway()

    @property
    def needs_job(self) -> bool:
        """True if the plan has a shuffle or a process of Python, so that the driver's thread cannot run it."""
        return self._made is None

    def stream(self, rows: pa.Table, schema: pa.Schema) -> pa.Table:
        """The result over rows of the only leaf, which are read once; no operator may hold them.

        Args:
            rows: the rows; a column of the leaf that they lack is null.
            schema: of the result; only Arrow's names of the types may differ.
        """
        [of_leaf] = self._schemas
        with _scratch() as (file, path):
            write_stream(file, _with_columns(rows, of_leaf))
            self._made.stream(path, rows.num_rows)
            return _result(file, schema)

    def table(self, rows: Sequence[HeldRows], schema: pa.Schema) -> pa.Table:
        """The result over rows of the leaves, in the order of the leaves.  Arguments as for `stream`."""
        given = [self._of_leaf(number, each).rows for number, each in enumerate(rows)]
        with _scratch() as (file, path):
            self._made.run(self._gateway, " ".join(each._target_id for each in given), path)
            return _result(file, schema)

    def _of_leaf(self, number: int, rows: HeldRows) -> HeldRows:
        """The rows, or others that have the types of the leaf, in an order that the plan has received."""
        key, of_leaf = (number, rows.layout), self._schemas[number]
        if key not in self._has_types:
            types = dict(zip(rows.schema.names, rows.schema.types, strict=True))
            if rows.schema.names[: len(of_leaf)] != of_leaf.names:
                at = {name: place for place, name in enumerate(rows.schema.names)}
                ordinals = [at.get(name, len(rows.schema)) for name in of_leaf.names]
                self._made.order(*key, self._catalyst.scala.seq(ordinals))
            # Last: another thread may run the plan as soon as it finds the key.
            self._has_types[key] = all(types.get(each.name, each.type) == each.type for each in of_leaf)
        if self._has_types[key]:
            return rows
        return held_rows(self._catalyst.spark, _with_columns(rows.table, of_leaf))


def run_job(catalyst: Catalyst, plan: PhysicalPlan, struct: Any, schema: pa.Schema) -> pa.Table:
    """Prepares a physical plan and runs it as a job.

    Args:
        struct: StructType of the result, a Java object; its names are free.
        schema: of the result; only Arrow's names of the types may differ.
    """
    session = catalyst.spark._jsparkSession
    with _scratch() as (file, path):
        java_plans(catalyst.spark).job(catalyst.physical.prepared(plan), struct, path, session)
        return _result(file, schema)


def _result(file: IO[bytes], schema: pa.Schema) -> pa.Table:
    file.seek(0)
    return table_of_messages(Messages().load_stream(file), schema)


def _needs_job(node: PhysicalPlan) -> bool:
    name = str(node.getClass().getName())
    return ".exchange." in name or ".python." in name


def _with_columns(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of a schema; a column that the rows lack is null."""
    present: Mapping[str, Any] = dict(zip(rows.column_names, rows.columns, strict=True))
    arrays = [present[each.name] if each.name in present else pa.nulls(rows.num_rows, each.type) for each in schema]
    return with_schema(pa.table(arrays, names=schema.names), schema)


@contextmanager
def _scratch() -> Iterator[tuple[IO[bytes], str]]:
    """Yields an empty file, and the path by which the JVM finds it: in memory, where the system has such files."""
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("slackwater-rows"), "w+b") as file:
            yield file, f"/proc/{os.getpid()}/fd/{file.fileno()}"
    else:
        with tempfile.NamedTemporaryFile(prefix="slackwater-", suffix=".arrow") as named:
            yield named, named.name

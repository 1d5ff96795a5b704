"""Conversion between Arrow tables and Spark DataFrames, without pandas and, for few rows, without a job."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.rdd import _load_from_socket
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from state.tables.lance_layout import for_lance, with_schema

_MAX_BATCH_BYTES = 64 << 20
_MAX_BATCH_ROWS = 1 << 20
_BY_CALL_BYTES = 128 << 10
_PART_BYTES = 4 << 20


class Messages:
    """Reads length-prefixed messages as bytes, to the end of the stream."""

    def load_stream(self, stream: IO[bytes]) -> Iterator[bytes]:
        while len(prefix := stream.read(4)) == 4:
            yield stream.read(int.from_bytes(prefix, "big"))


def spark_schema(schema: pa.Schema) -> Any:
    """The StructType of an Arrow schema: a timestamp without zone is a TIMESTAMP_NTZ."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def arrow_schema(struct: Any) -> pa.Schema:
    """The Arrow schema of a StructType: microseconds, and UTC where Spark has an instant."""
    return to_arrow_schema(struct)


def frame_of_table(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A DataFrame over an Arrow table.

    A table below `spark.sql.execution.arrow.localRelationThreshold` becomes a LocalRelation: Spark evaluates its
    projections and filters in the optimizer, without a job.
    """
    driver = _driver(spark)
    frame = driver.to_frame(_messages(driver, table), spark_schema(table.schema).json(), spark._jsparkSession)
    return DataFrame(frame, spark)


def frame_of_rdd(spark: SparkSession, rdd: Any, schema: pa.Schema) -> DataFrame:
    """A DataFrame over an RDD of Spark's internal rows, a Java object."""
    session: Any = spark._jsparkSession
    struct = session.parseDataType(spark_schema(schema).json())
    return DataFrame(session.internalCreateDataFrame(rdd, struct, False), spark)


def table_of_frame(frame: DataFrame, schema: pa.Schema) -> pa.Table:
    """Runs a DataFrame.  Returns all its rows, with the given schema.

    Args:
        schema: the same columns in the same order; only Arrow's names of the types may differ, not the values.
    """
    plan = frame._jdf.queryExecution().executedPlan()
    if plan.getClass().getSimpleName() == "LocalTableScanExec":
        return table_of_rows(frame.sparkSession, plan.rows().iterator(), frame._jdf.schema(), schema)
    return _table(frame._collect_as_arrow(), schema)


def table_of_rows(spark: SparkSession, rows: Any, struct: Any, schema: pa.Schema) -> pa.Table:
    """Rows of the driver as an Arrow table, over a socket: py4j needs 40 ms for an answer above 8 KiB.

    Args:
        rows: a Scala iterator of Spark's internal rows.
        struct: StructType of the rows, a Java object.
        schema: as in `table_of_frame`.
    """
    driver = _driver(spark)
    messages = driver.converters.toBatchWithSchemaIterator(
        rows, struct, _MAX_BATCH_ROWS, _MAX_BATCH_BYTES, "UTC", False
    )
    # Computed here: an error in the serving thread would only cut the stream short.
    served = driver.serve(messages.toList().iterator(), "serve local rows")
    return table_of_messages(_load_from_socket(served, Messages()), schema)


def table_of_messages(messages: Iterable[bytes], schema: pa.Schema) -> pa.Table:
    """The rows of Arrow streams, one after the other.

    Args:
        schema: as in `table_of_frame`.
    """
    return _table([batch for message in messages for batch in pa.ipc.open_stream(message)], schema)


def write_stream(file: IO[bytes], table: pa.Table, batch_rows: int | None = None) -> None:
    """Writes a table into a file as one stream that Spark reads whole, with a bounded size of its batches.

    Spark 3.5 takes a second batch without rows for the end: the rows behind it are lost.

    Args:
        batch_rows: number of rows of a batch at most; None for the bound of all batches.
    """
    with pa.ipc.new_stream(file, table.schema) as stream:
        for part in _parts(table):
            for batch in part.to_batches(max_chunksize=batch_rows or _MAX_BATCH_ROWS):
                if batch.num_rows:
                    stream.write_batch(batch)
    file.flush()


class _Driver:
    """The driver's methods for Arrow, looked up once: each name on the path to a method is a call of its own."""

    def __init__(self, jvm: Any) -> None:
        converters = jvm.java.lang.Class.forName("org.apache.spark.sql.execution.arrow.ArrowConverters$")
        self.converters = converters.getField("MODULE$").get(None)
        self.new_list = jvm.java.util.ArrayList
        self.to_seq = jvm.PythonUtils.toSeq
        self.to_frame = jvm.PythonSQLUtils.toDataFrame
        self.read_stream = jvm.PythonSQLUtils.readArrowStreamFromFile
        self.serve = jvm.org.apache.spark.api.python.PythonRDD.serveIterator


_drivers: WeakKeyDictionary[Any, _Driver] = WeakKeyDictionary()


def _messages(driver: _Driver, table: pa.Table) -> Any:
    """A Scala iterator of the table's batches as Arrow messages.  py4j passes 30 MB/s of arguments, a file 1 GB/s.

    Each batch is a partition.
    """
    if table.nbytes > _BY_CALL_BYTES:
        with tempfile.NamedTemporaryFile(prefix="slackwater-", suffix=".arrow") as file:
            write_stream(file, table)
            return driver.read_stream(file.name).toList().iterator()
    messages = driver.new_list()
    for batch in table.combine_chunks().to_batches():
        messages.add(batch.serialize().to_pybytes())
    return driver.to_seq(messages).iterator()


def _parts(table: pa.Table) -> Iterator[pa.Table]:
    """The table in parts; small chunks are put together, part by part."""
    chunks = max((column.num_chunks for column in table.columns), default=0)
    if chunks <= table.nbytes // _PART_BYTES + 1:
        yield table
        return
    rows = max(1, table.num_rows * _PART_BYTES // max(1, table.nbytes))
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows).combine_chunks()


def _driver(spark: SparkSession) -> _Driver:
    jvm = spark._jvm
    if jvm not in _drivers:
        _drivers[jvm] = _Driver(jvm)
    return _drivers[jvm]


def _table(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    if not batches:
        return schema.empty_table()
    return with_schema(for_lance(pa.Table.from_batches(batches)), schema)

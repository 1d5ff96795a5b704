"""Arrow tables in and out of Spark without pandas and, for few rows, without a job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa
from pyspark.rdd import _load_from_socket
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from state.lance_layout import for_lance

_MAX_BATCH_BYTES = 64 << 20
_MAX_BATCH_ROWS = 1 << 20


class _Messages:
    """Reads length-prefixed messages as they are, to the end of the stream."""

    def load_stream(self, stream: BinaryIO) -> Iterator[bytes]:
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

    A table below `spark.sql.execution.arrow.localRelationThreshold` becomes a LocalRelation, whose projections and
    filters Spark evaluates while it optimises, without a job.
    """
    batches = spark._jvm.java.util.ArrayList()
    for batch in table.combine_chunks().to_batches():
        batches.add(batch.serialize().to_pybytes())
    iterator = spark._jvm.PythonUtils.toSeq(batches).iterator()
    schema = spark_schema(table.schema)
    frame = spark._jvm.PythonSQLUtils.toDataFrame(iterator, schema.json(), spark._jsparkSession)
    return DataFrame(frame, spark)


def table_of_frame(frame: DataFrame, schema: pa.Schema) -> pa.Table:
    """All rows of a DataFrame, as the given schema has them.

    Args:
        frame: what is run.
        schema: the same columns in the same order; the types may differ in what Arrow calls them, not in their values.
    """
    plan = frame._jdf.queryExecution().executedPlan()
    if plan.getClass().getSimpleName() == "LocalTableScanExec":
        return table_of_rows(frame.sparkSession, plan.rows().iterator(), frame._jdf.schema(), schema)
    return _table(frame._collect_as_arrow(), schema)


def table_of_rows(spark: SparkSession, rows: Any, struct: Any, schema: pa.Schema) -> pa.Table:
    """Rows that are in the driver, over a socket: py4j's answers above 8 KiB take 40 ms.

    Args:
        spark: the session.
        rows: a Scala iterator of Spark's internal rows.
        struct: their StructType, in Java.
        schema: as in `table_of_frame`.
    """
    jvm: Any = spark._jvm
    converters = jvm.java.lang.Class.forName("org.apache.spark.sql.execution.arrow.ArrowConverters$")
    messages = (
        converters.getField("MODULE$")
        .get(None)
        .toBatchWithSchemaIterator(rows, struct, _MAX_BATCH_ROWS, _MAX_BATCH_BYTES, "UTC", False)
    )
    served = jvm.org.apache.spark.api.python.PythonRDD.serveIterator(messages, "serve local rows")
    batches: list[pa.RecordBatch] = []
    for message in _load_from_socket(served, _Messages()):
        batches.extend(pa.ipc.open_stream(message))
    return _table(batches, schema)


def _table(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    if not batches:
        return schema.empty_table()
    table = for_lance(pa.Table.from_batches(batches))
    return table.rename_columns(schema.names).cast(schema)

"""Recomputation of a view in one Spark query over all rows of its sources, without epochs and partials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark_bridge.analysis.analysis import analyse
from spark_bridge.analysis.total_order import TotalOrder
from spark_bridge.analysis.view_definition import ViewDefinition
from spark_bridge.catalyst.arrow_frames import spark_schema, table_of_frame
from spark_bridge.catalyst.catalyst import Catalyst, analysed
from spark_bridge.session.spark_errors import one_line
from state.errors import RunFailedError, ViewError


def recompute(
    spark: SparkSession,
    definition: ViewDefinition,
    schemas: Mapping[str, pa.Schema],
    directories: Mapping[str, Path],
    schema: pa.Schema,
) -> pa.Table:
    """All rows of a view.

    Args:
        spark: a session whose workers can read the directories.
        definition: of the view.
        schemas: source → its schema; all sources that the view may read.
        directories: source → directory of Parquet files with its rows.
        schema: of the result.

    Raises:
        ViewError: the query is invalid, or its result has another schema.
        RunFailedError: Spark failed.
    """
    frames = {name: _frame(spark, schemas[name], directories[name]) for name in schemas}
    try:
        with computed(spark, definition, frames) as result:
            return table_of_frame(result, schema)
    except (pa.ArrowInvalid, ValueError) as error:
        raise ViewError(f"view {definition.name!r} has another result than the stored one: {error}") from error
    except PySparkException as error:
        if error.getErrorClass() is not None:
            raise ViewError(f"view {definition.name!r}: {one_line(error)}") from error
        raise RunFailedError(f"view {definition.name!r}: Spark failed: {one_line(error)}") from error
    except Py4JError as error:
        raise RunFailedError(f"view {definition.name!r}: Spark failed: {one_line(error)}") from error


@contextmanager
def computed(spark: SparkSession, definition: ViewDefinition, frames: Mapping[str, DataFrame]) -> Iterator[DataFrame]:
    """A view over all rows of its sources, as a lazy frame, with total orders.  Compute it inside the context.

    Args:
        spark: the session of the frames; inside the context it has temporary views of their names.
        definition: of the view.
        frames: source → its rows; all sources that the view may read.
    """
    try:
        for name, frame in frames.items():
            frame.createOrReplaceTempView(name)
        if definition.function is None:
            result = spark.sql(definition.query or "")
        else:
            result = definition.function(**{name: frames[name] for name in definition.parameters})
        catalyst = Catalyst(spark)
        yield catalyst.frame(TotalOrder(catalyst, definition.name).of(analysed(result)))
    finally:
        for name in frames:
            spark.catalog.dropTempView(name)


def is_same_view(
    spark: SparkSession, definition: ViewDefinition, schemas: Mapping[str, pa.Schema], identity: str
) -> bool:
    """Whether a declared view has the identity of the view in the catalog.

    Raises:
        ViewError: the view cannot be built.
    """
    return analyse(spark, definition, schemas).identity == identity


def _frame(spark: SparkSession, schema: pa.Schema, directory: Path) -> DataFrame:
    # Without the option Spark refuses dates before 1582 in files of other writers.
    reader = spark.read.schema(spark_schema(schema)).option("datetimeRebaseMode", "CORRECTED")
    return reader.parquet(str(directory))

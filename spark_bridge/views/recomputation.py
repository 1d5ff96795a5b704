"""Recomputation of a view in one Spark query over all rows of its sources, without epochs and partials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from actors.schemas.ddl import quoted_name
from spark_bridge.analysis.planned_view import PlannedView
from spark_bridge.analysis.total_order import TotalOrder
from spark_bridge.analysis.view_definition import ViewDefinition
from spark_bridge.catalyst.arrow_frames import spark_schema, table_of_frame
from spark_bridge.catalyst.catalyst import Catalyst, Plan, analysed
from spark_bridge.catalyst.current_rows import RowKeys, current_rows
from spark_bridge.catalyst.epoch_timestamps import with_time
from spark_bridge.catalyst.session_windows import with_all_sessions
from spark_bridge.session.spark_errors import one_line
from state.errors import RunFailedError, ViewError


def recompute(
    spark: SparkSession,
    definition: ViewDefinition,
    schemas: Mapping[str, pa.Schema],
    directories: Mapping[str, Path],
    schema: pa.Schema,
    views: Mapping[str, PlannedView] = MappingProxyType({}),
    keys: RowKeys = MappingProxyType({}),
    time_us: int | None = None,
) -> pa.Table:
    """All rows of a view, computed from the rows of sources alone.

    Args:
        spark: a session whose workers can read the directories.
        definition: of the view.
        schemas: source → its schema; all sources that the view may read.
        directories: source → directory of Parquet files with its rows.
        schema: of the result.
        views: name → view, of those that it reads; they are computed too.
        keys: the sources of which views see the last row of each key.
        time_us: the time in filters by it, in microseconds since 1970; None for that of the computation.

    Raises:
        ViewError: the query is invalid, or its result has another schema.
        RunFailedError: Spark failed.
    """
    frames = {name: _frame(spark, schemas[name], directories[name]) for name in schemas}
    try:
        with computed(spark, definition, frames, views, keys, time_us) as result:
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
def computed(
    spark: SparkSession,
    definition: ViewDefinition,
    frames: Mapping[str, DataFrame],
    views: Mapping[str, PlannedView] = MappingProxyType({}),
    keys: RowKeys = MappingProxyType({}),
    time_us: int | None = None,
) -> Iterator[DataFrame]:
    """A view over all rows of its leaves, as a lazy frame, with total orders and the sessions that an epoch computes.

    Compute it inside the context.

    Args:
        spark: the session of the frames; inside the context it has temporary views of their names.
        definition: of the view.
        frames: source or view → its rows; all sources that the view may read, and the views whose rows are stored.
        views: name → view, of those that it reads; without a frame, the view is computed too.
        keys: the sources of which views see the last row of each key.
        time_us: see `recompute`.
    """
    frames = {name: current_rows(frame, keys[name]) if name in keys else frame for name, frame in frames.items()}
    with ExitStack() as stack:
        catalyst = Catalyst(spark)
        plan = _plan(spark, definition, frames, views, stack, time_us)
        yield catalyst.frame(TotalOrder(catalyst, definition.name).of(with_all_sessions(catalyst, plan)))


def _plan(
    spark: SparkSession,
    definition: ViewDefinition,
    frames: Mapping[str, DataFrame],
    views: Mapping[str, PlannedView],
    stack: ExitStack,
    time_us: int | None,
) -> Plan:
    """The analysed plan of a view.  The stack drops the temporary views."""
    catalyst = Catalyst(spark)
    tables = dict(frames)
    for name, view in views.items():
        if name not in frames:
            seen = {
                each: frame.select(*map(quoted_name, _columns(view, each, frame))) for each, frame in frames.items()
            }
            plan = _plan(spark, view.definition, seen, view.views, stack, time_us)
            tables[name] = catalyst.frame(TotalOrder(catalyst, name).of(with_all_sessions(catalyst, plan)))
    for name, frame in tables.items():
        frame.createOrReplaceTempView(name)
        stack.callback(spark.catalog.dropTempView, name)
    if definition.function is None:
        frame = spark.sql(definition.query or "")
    else:
        frame = definition.function(**{name: tables[name] for name in definition.parameters})
    return analysed(frame) if time_us is None else with_time(catalyst, analysed(frame), time_us)


def _columns(view: PlannedView, name: str, frame: DataFrame) -> list[str]:
    """The columns of a leaf as a view sees them: a source may have got further ones since."""
    schema = view.known_schemas.get(name)
    return frame.columns if schema is None else list(schema.names)


def _frame(spark: SparkSession, schema: pa.Schema, directory: Path) -> DataFrame:
    # Without the option Spark refuses dates before 1582 in files of other writers.
    reader = spark.read.schema(spark_schema(schema)).option("datetimeRebaseMode", "CORRECTED")
    return reader.parquet(str(directory))

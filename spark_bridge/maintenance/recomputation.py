"""Recomputation of a view in one Spark query over all rows of its sources, without epochs and partials."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from actors.schemas.ddl import quoted_name
from actors.schemas.metadata_columns import PATH, ROW
from spark_bridge.engine.catalyst.arrow_frames import frame_of_table, spark_schema, table_of_frame
from spark_bridge.engine.catalyst.carried_column import PLACE, with_carried_column
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.current_rows import RowKeys, current_rows
from spark_bridge.engine.catalyst.epoch_timestamps import with_time
from spark_bridge.engine.catalyst.queries import analysed
from spark_bridge.engine.catalyst.trees import Plan, attribute_id, simple_name
from spark_bridge.engine.session.spark_errors import one_line
from spark_bridge.operators.join.joined_form import with_joins, without_order
from spark_bridge.operators.join.time_bounds import with_bounds
from spark_bridge.operators.window.session_windows import with_all_sessions, with_sessions
from spark_bridge.operators.window.time_windows import session_positions, window_positions
from spark_bridge.plans.planned_view import PlannedView
from spark_bridge.plans.total_order import TotalOrder
from spark_bridge.plans.view_definition import ViewDefinition
from state.errors import RunFailedError, ViewError

MISSED = "__sw_missed"
"""The watermark by which a row was late, in microseconds since 1970, beside its place in `_path` and `_row`."""


@dataclass(frozen=True)
class Followed:
    """The effects of the watermarks of its sources on a view, which its query does not contain.

    Args:
        late: source → `_path`, `_row` and `MISSED` of the rows that came too late for the view.
        closes: whether it shows a group when its window closes.  Then a late row counts in the windows that end after
            the watermark that it missed, but in no session; else it does not count.
        closed_us: the watermark up to which its windows are closed, in microseconds since 1970; None before the first.
        num_late: the number of its late rows, all of them in `late`; a row counts once for each window.
        ttl_us: the largest difference between the event times of partners in a join, in microseconds.
        event_times: source → the column with its event time.
        least_us: source → the event time before which its rows do not count, by a time to live.
    """

    late: Mapping[str, pa.Table] = field(default_factory=dict)
    closes: bool = False
    closed_us: int | None = None
    num_late: int = 0
    ttl_us: int | None = None
    event_times: Mapping[str, str] = field(default_factory=dict)
    least_us: Mapping[str, int] = field(default_factory=dict)


def recompute(
    spark: SparkSession,
    definition: ViewDefinition,
    schemas: Mapping[str, pa.Schema],
    directories: Mapping[str, Path],
    schema: pa.Schema,
    views: Mapping[str, PlannedView] = MappingProxyType({}),
    keys: RowKeys = MappingProxyType({}),
    time_us: int | None = None,
    followed: Mapping[str, Followed] = MappingProxyType({}),
) -> pa.Table:
    """All rows of a view, computed from the rows of sources alone.

    Args:
        spark: a session whose workers can read the directories.
        schemas: source → its schema; all sources that the view may read.
        directories: source → directory of Parquet files with its rows.
        views: name → view, of those that it reads; they are computed too.
        keys: the sources of which views see the last row of each key.
        time_us: the time in filters by it, in microseconds since 1970; None for that of the computation.
        followed: view → what it has followed, of those that follow watermarks.

    Raises:
        ViewError: the query is invalid, or its result has another schema, or late rows are missing.
        RunFailedError: Spark failed.
    """
    frames = {name: _frame(spark, schemas[name], directories[name]) for name in schemas}
    try:
        with computed(spark, definition, frames, views, keys, time_us, followed) as result:
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
    followed: Mapping[str, Followed] = MappingProxyType({}),
) -> Iterator[DataFrame]:
    """A view over all rows of its leaves, as a lazy frame, with total orders and the sessions that an epoch computes.

    Compute it inside the context.

    Args:
        spark: the session of the frames; inside the context it has temporary views of their names.
        frames: source or view → its rows; all sources that the view may read, and the views whose rows are stored.
        views: name → view, of those that it reads; without a frame, the view is computed too.
        keys: the sources of which views see the last row of each key.
        time_us: see `recompute`.
        followed: see `recompute`.
    """
    frames = {name: current_rows(frame, keys[name]) if name in keys else frame for name, frame in frames.items()}
    with ExitStack() as stack:
        catalyst = Catalyst(spark)
        plan = _plan(spark, definition, frames, views, stack, time_us, followed)
        yield catalyst.queries.frame(TotalOrder(catalyst, definition.name).of(with_all_sessions(catalyst, plan)))


def _plan(
    spark: SparkSession,
    definition: ViewDefinition,
    frames: Mapping[str, DataFrame],
    views: Mapping[str, PlannedView],
    stack: ExitStack,
    time_us: int | None,
    followed: Mapping[str, Followed],
) -> Plan:
    """The analysed plan of a view.  The stack drops the temporary views."""
    catalyst, own = Catalyst(spark), followed.get(definition.name)
    tables = dict(frames)
    for name, view in views.items():
        if name not in frames:
            seen = {
                each: frame.select(*map(quoted_name, _columns(view, each, frame))) for each, frame in frames.items()
            }
            plan = _plan(spark, view.definition, seen, view.views, stack, time_us, followed)
            tables[name] = catalyst.queries.frame(TotalOrder(catalyst, name).of(with_all_sessions(catalyst, plan)))
    if own is not None and not own.closes:
        tables.update({name: _in_time(spark, frames[name], late) for name, late in own.late.items()})
        tables.update({name: _young(frames[name], own, name) for name in own.least_us})
    for name, frame in tables.items():
        frame.createOrReplaceTempView(name)
        stack.callback(spark.catalog.dropTempView, name)
    if definition.function is None:
        frame = spark.sql(definition.query or "")
    else:
        frame = definition.own_rows(definition.function(**{name: tables[name] for name in definition.parameters}))
    plan = analysed(frame) if time_us is None else with_time(catalyst, analysed(frame), time_us)
    if own is None:
        return plan
    if own.closes:
        return _of_closed_windows(catalyst, definition.name, plan, own)
    return plan if own.ttl_us is None else _within_ttl(catalyst, plan, own.event_times, own.ttl_us)


def _in_time(spark: SparkSession, rows: DataFrame, late: pa.Table) -> DataFrame:
    """The rows of a source without its late ones."""
    return rows.join(frame_of_table(spark, late.select([PATH, ROW])), [PATH, ROW], "left_anti")


def _young(rows: DataFrame, followed: Followed, source: str) -> DataFrame:
    """The rows of a source that count by a time to live."""
    time = F.col(quoted_name(followed.event_times[source])).cast("timestamp")
    return rows.where(F.unix_micros(time) >= followed.least_us[source])


def _of_closed_windows(catalyst: Catalyst, name: str, plan: Plan, followed: Followed) -> Plan:
    """The plan over the rows of closed windows or sessions alone, without those that were late for them.

    Raises:
        ViewError: late rows are missing.
    """
    children = catalyst.trees.items(plan.children())
    if simple_name(plan) != "Aggregate":
        below = [_of_closed_windows(catalyst, name, each, followed) for each in children]
        return catalyst.trees.with_children(plan, below) if children else plan
    sessions = session_positions(catalyst.trees, plan)
    [position] = sessions or window_positions(catalyst.trees, plan)
    end = _end(catalyst, plan, position)
    rows = catalyst.queries.frame(children[0])
    if followed.num_late:
        for field in PLACE:
            rows = catalyst.queries.frame(with_carried_column(catalyst, analysed(rows), field))
        late = frame_of_table(catalyst.spark, pa.concat_tables(followed.late.values()))
        late = late.toDF(*(f"__sw_late{each}" for each in late.columns))
        place = [*map(catalyst.queries.column, catalyst.trees.items(analysed(rows).output())[-len(PLACE) :])]
        of_late = [F.col(each) for each in late.columns]
        is_late = (place[0] == of_late[0]) & (place[1] == of_late[1]) & (F.lit(bool(sessions)) | (end <= of_late[2]))
        found = rows.join(late, is_late, "left_semi").count()
        if found != followed.num_late:
            raise ViewError(
                f"view {name!r} has {followed.num_late:,} late rows, of which {found:,} are among those of its files "
                "that the quarantine keeps"
            )
        rows = rows.join(late, is_late, "left_anti")
    if sessions:
        plan = with_sessions(catalyst, catalyst.trees.with_children(plan, [analysed(rows)]))
        end, rows = _end(catalyst, plan, position), catalyst.queries.frame(plan.child())
    if followed.closed_us is None:
        closed = F.lit(False)
    else:
        closed = end < followed.closed_us if sessions else end <= followed.closed_us
    return catalyst.trees.with_children(plan, [analysed(rows.where(closed))])


def _end(catalyst: Catalyst, aggregate: Plan, position: int) -> Column:
    """The end of a window in the grouping, in microseconds since 1970."""
    window = catalyst.queries.column(aggregate.groupingExpressions().apply(position))
    return F.unix_micros(window.getField("end").cast("timestamp"))


def _within_ttl(catalyst: Catalyst, plan: Plan, event_times: Mapping[str, str], ttl_us: int) -> Plan:
    """The plan in which rows of a join are partners only if their event times are so close, see `with_bounds`."""
    leaves: dict[int, str] = {}
    rows: dict[int, Plan] = {}

    def without_rows(part: Plan) -> Plan:
        if simple_name(part) == "View" and part.isTempView():
            number, name = attribute_id(part.output().apply(0)), str(part.desc().identifier().table())
            leaves[number], rows[number] = name, part
            return catalyst.rows.local_relation(part.output())
        return over(part, without_rows)

    def with_rows(part: Plan) -> Plan:
        if simple_name(part) == "LocalRelation" and part.output().size():
            return rows.get(attribute_id(part.output().apply(0)), part)
        return over(part, with_rows)

    def over(part: Plan, change: Callable[[Plan], Plan]) -> Plan:
        children = catalyst.trees.items(part.children())
        if simple_name(part) == "SubqueryAlias":
            return change(children[0])
        return catalyst.trees.with_children(part, map(change, children)) if children else part

    joined = without_rows(with_joins(catalyst, without_order(catalyst.trees, plan)))
    return with_rows(with_bounds(catalyst, joined, leaves, event_times, ttl_us))


def _columns(view: PlannedView, name: str, frame: DataFrame) -> list[str]:
    """The columns of a leaf as a view sees them: a source may have got further ones since."""
    schema = view.known_schemas.get(name)
    return frame.columns if schema is None else list(schema.names)


def _frame(spark: SparkSession, schema: pa.Schema, directory: Path) -> DataFrame:
    # Without the option Spark refuses dates before 1582 in files of other writers.
    reader = spark.read.schema(spark_schema(schema)).option("datetimeRebaseMode", "CORRECTED")
    return reader.parquet(str(directory))

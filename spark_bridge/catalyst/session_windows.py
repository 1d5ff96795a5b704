"""Sessions among the groups of a query, as in `GROUP BY k, session_window(at, '10 minutes')`, as windows by key.

    Aggregate  by k and a session       Aggregate  by k and the same column
      rows, each with the     ──→         Project  the session of each row
      session of it alone                   Window   its end, the greatest end of the rows with that start
                                              Window   its start, the last row up to here that begins one
                                                Window   the greatest end of the rows before, in order of time
                                                  rows

A row begins a session when its time is after all ends before it: Spark puts sessions together that touch.  The windows
are by the other keys, so an epoch computes the sessions of the keys again of which it changes a row, and only the rows
change whose session is another one.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark_bridge.catalyst.catalyst import (
    Catalyst,
    Expression,
    Plan,
    analysed,
    attribute_id,
    is_attribute,
    simple_name,
)

_MARK = "spark.sessionWindow"
"""Spark's mark of a column that `session_window` makes."""

_ENDS_BEFORE, _BEGINS, _START, _END = (f"__sw_session_{name}" for name in ("before", "begins", "start", "end"))


def is_of_sessions(catalyst: Catalyst, window: Plan) -> bool:
    """Whether a Window has been made by `with_sessions`."""
    return any(str(each.name()) == _END for each in catalyst.items(window.windowExpressions()))


def with_sessions(catalyst: Catalyst, aggregate: Plan) -> Plan:
    """An Aggregate by sessions as one over rows that have their session; the same plan for another Aggregate.

    Args:
        catalyst: of the session.
        aggregate: analysed.
    """
    grouping = catalyst.items(aggregate.groupingExpressions())
    session = next((each for each in grouping if is_attribute(each) and each.metadata().contains(_MARK)), None)
    if session is None:
        return aggregate
    columns = [each for each in catalyst.items(aggregate.child().output()) if aggregate.references().contains(each)]
    others = [each for each in grouping if not (is_attribute(each) and attribute_id(each) == attribute_id(session))]
    keys = [
        each if is_attribute(each) else catalyst.alias(each, f"__sw_key_{at}")
        for at, each in enumerate(others)
        if not each.foldable()
    ]
    computed = [each for each in keys if not is_attribute(each)]
    frame = catalyst.frame(catalyst.project([*columns, *computed], aggregate.child()))
    frame = _in_sessions(catalyst, frame, session, [each.toAttribute() for each in keys])
    merged = catalyst.items(analysed(frame).output())[-1]
    are_distinct = _has_distinct(catalyst, aggregate)

    def in_session(part: Expression) -> Expression | None:
        # As in Spark, a function sees the session of each row alone, unless it or another one is DISTINCT.
        if simple_name(part) == "AggregateExpression" and not are_distinct:
            return part
        return merged if is_attribute(part) and attribute_id(part) == attribute_id(session) else None

    results = [
        catalyst.alias_as(merged, each)
        if is_attribute(each) and attribute_id(each) == attribute_id(session)
        else catalyst.rewrite(each, in_session)
        for each in catalyst.items(aggregate.aggregateExpressions())
    ]
    return catalyst.aggregate([catalyst.rewrite(each, in_session) for each in grouping], results, analysed(frame))


def _in_sessions(catalyst: Catalyst, frame: DataFrame, session: Expression, keys: list[Expression]) -> DataFrame:
    """The rows with the session that they are in as the last column.

    Args:
        catalyst: of the session of Spark.
        frame: the rows.
        session: the column with the session of each row alone.
        keys: the columns of which each combination has sessions of its own.
    """
    columns = [catalyst.column(each) for each in catalyst.items(analysed(frame).output())]
    alone = catalyst.column(session)
    time, end = alone["start"], alone["end"]
    by_key = Window.partitionBy(*map(catalyst.column, keys))
    in_order = by_key.orderBy(time)
    first, before, here = Window.unboundedPreceding, -1, Window.currentRow

    def beside(frame: DataFrame, more: Column, name: str, *others: Column) -> tuple[DataFrame, Column]:
        frame = frame.select(*columns, *others, more.alias(name))
        return frame, catalyst.column(catalyst.items(analysed(frame).output())[-1])

    frame, ends = beside(frame, F.max(end).over(in_order.rowsBetween(first, before)), _ENDS_BEFORE)
    frame, begins = beside(frame, F.when(ends.isNull() | (time > ends), time), _BEGINS)
    frame, start = beside(frame, F.max(begins).over(in_order.rangeBetween(first, here)), _START)
    of_session = by_key.orderBy(start).rangeBetween(here, here)
    frame, end = beside(frame, F.max(end).over(of_session), _END, start)
    merged = F.struct(start.alias("start"), end.alias("end"))
    # A grouping set without the session has null for it.
    merged = F.when(alone.isNotNull(), merged) if session.nullable() else merged
    return frame.select(*columns, merged.alias(str(session.name())))


def _has_distinct(catalyst: Catalyst, expression: Plan | Expression) -> bool:
    """Whether an Aggregate, or an expression of it, calls a function with DISTINCT."""
    if simple_name(expression) == "AggregateExpression":
        return bool(expression.isDistinct())
    below = expression.aggregateExpressions() if simple_name(expression) == "Aggregate" else expression.children()
    return any(_has_distinct(catalyst, each) for each in catalyst.items(below))

"""Sessions among the groups of a query, as in `GROUP BY k, session_window(at, '10 minutes')`, as windows by key.

    Aggregate  by k and a session       Aggregate  by k and the same column
      rows, each with the     ──→         Project  the session of each row
      session of it alone                   Window   its end, the greatest end of the rows with that start
                                              Window   its start, the last row up to here that begins one
                                                Window   the greatest end of the rows before, in order of time
                                                  rows

A row begins a session when its time is after all ends before it: Spark puts sessions together that touch.  The windows
are by the other keys, so an epoch computes the sessions of those keys again of which it changes a row, and only rows
whose session is another one change.  A condition on sessions stays above them; Spark's optimizer takes it for one on
rows, and tears sessions apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.queries import analysed
from spark_bridge.engine.catalyst.trees import (
    Expression,
    Plan,
    Trees,
    attribute_id,
    is_attribute,
    parts_of,
    simple_name,
)
from spark_bridge.operators.window.time_windows import session_positions

_ENDS_BEFORE, _BEGINS, _START, _END = (f"__sw_session_{name}" for name in ("before", "begins", "start", "end"))


def is_of_sessions(trees: Trees, window: Plan) -> bool:
    """Whether a Window has been made by `with_sessions`."""
    return any(str(each.name()) == _END for each in trees.items(window.windowExpressions()))


def with_all_sessions(catalyst: Catalyst, plan: Plan) -> Plan:
    """An analysed plan with `with_sessions` of each Aggregate, those of subqueries without correlation among them.

    The same plan if it has no sessions; otherwise every WITH is expanded.
    """
    aggregates = (part for part in parts_of(catalyst.trees, plan) if simple_name(part) == "Aggregate")
    if all(_session(catalyst.trees, each) is None for each in aggregates):
        return plan
    plan = catalyst.queries.inline_common_tables(plan)
    children = catalyst.trees.items(plan.children())
    if children:
        plan = catalyst.trees.with_children(plan, [with_all_sessions(catalyst, each) for each in children])
    if plan.subqueries().size():

        def within(part: Expression) -> Expression | None:
            if not catalyst.trees.is_instance(part, "catalyst.expressions.SubqueryExpression"):
                return None
            is_correlated = part.outerAttrs().size() > 0
            return part if is_correlated else part.withNewPlan(with_all_sessions(catalyst, part.plan()))

        plan = catalyst.plans.with_expressions(plan, lambda each: catalyst.trees.rewrite(each, within)) or plan
    return with_sessions(catalyst, plan) if simple_name(plan) == "Aggregate" else plan


def with_sessions(catalyst: Catalyst, aggregate: Plan) -> Plan:
    """An Aggregate by sessions as one over rows that have their session; the same plan for another Aggregate.

    Args:
        aggregate: analysed.
    """
    session = _session(catalyst.trees, aggregate)
    if session is None:
        return aggregate
    grouping = catalyst.trees.items(aggregate.groupingExpressions())
    number, child = attribute_id(session), aggregate.child()

    def is_session(part: Expression) -> bool:
        return is_attribute(part) and attribute_id(part) == number

    calls = [
        call for each in catalyst.trees.items(aggregate.aggregateExpressions()) for call in _calls(catalyst.trees, each)
    ]
    # As in Spark, a function sees the session of each row alone, unless it or another one is DISTINCT.
    are_alone = not any(call.isDistinct() for call in calls)
    is_read = are_alone and any(call.references().contains(session) for call in calls)
    keys = [each for each in grouping if not is_session(each) and not each.foldable()]
    columns = [each for each in catalyst.trees.items(child.output()) if aggregate.references().contains(each)]
    columns = [each for each in columns if is_read or not is_session(each)]
    rows = _in_sessions(catalyst, catalyst.queries.frame(child), columns, keys, session)
    merged = catalyst.trees.items(rows.output())[-1]

    def merged_in(part: Expression) -> Expression | None:
        if simple_name(part) == "AggregateExpression" and are_alone:
            return part
        return merged if is_session(part) else None

    results = [
        catalyst.expressions.alias_as(merged, each) if is_session(each) else catalyst.trees.rewrite(each, merged_in)
        for each in catalyst.trees.items(aggregate.aggregateExpressions())
    ]
    return catalyst.plans.aggregate([catalyst.trees.rewrite(each, merged_in) for each in grouping], results, rows)


def _session(trees: Trees, aggregate: Plan) -> Expression | None:
    """The column of an Aggregate's grouping that has the session of each row alone, if any."""
    positions = session_positions(trees, aggregate)
    return aggregate.groupingExpressions().apply(positions[0]) if positions else None


def _in_sessions(
    catalyst: Catalyst,
    frame: DataFrame,
    columns: Sequence[Expression],
    keys: Sequence[Expression],
    session: Expression,
) -> Plan:
    """The rows with the session that they are in as the last column.

    Args:
        catalyst: of the session of Spark.
        columns: those that are kept.
        keys: each combination of their values has sessions of its own.
        session: the column with the session of each row alone.
    """
    alone = catalyst.queries.column(session)
    kept = [*map(catalyst.queries.column, columns)]

    def beside(*more: Column) -> list[Column]:
        """Adds columns to the kept ones."""
        nonlocal frame
        frame = frame.select(*kept, *more)
        return [*map(catalyst.queries.column, catalyst.trees.items(analysed(frame).output())[len(kept) :])]

    named = [catalyst.queries.column(each) for each in keys if is_attribute(each)]
    computed = [
        catalyst.queries.column(each).alias(f"__sw_key_{at}") for at, each in enumerate(keys) if not is_attribute(each)
    ]
    time, end, *computed = beside(alone["start"].alias("start"), alone["end"].alias("end"), *computed)
    kept += [time, end, *computed]
    by_key = Window.partitionBy(*named, *computed)
    in_order = by_key.orderBy(time)
    first, before, here = Window.unboundedPreceding, -1, Window.currentRow
    [ends] = beside(F.max(end).over(in_order.rowsBetween(first, before)).alias(_ENDS_BEFORE))
    [begins] = beside(F.when(ends.isNull() | (time > ends), time).alias(_BEGINS))
    [start] = beside(F.max(begins).over(in_order.rangeBetween(first, here)).alias(_START))
    of_session = by_key.orderBy(start).rangeBetween(here, here)
    start, latest = beside(start, F.max(end).over(of_session).alias(_END))
    merged = F.struct(start.alias("start"), latest.alias("end"))
    # A grouping set without the session has null for it.
    merged = F.when(time.isNotNull(), merged) if session.nullable() else merged
    kept = kept[: len(columns)]
    beside(merged.alias(str(session.name())))
    return analysed(frame)


def _calls(trees: Trees, expression: Expression) -> Iterator[Expression]:
    """The calls of aggregate functions in an expression."""
    if simple_name(expression) == "AggregateExpression":
        yield expression
        return
    for each in trees.items(expression.children()):
        yield from _calls(trees, each)

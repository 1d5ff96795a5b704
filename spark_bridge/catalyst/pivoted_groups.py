"""The columns of a PIVOT as calls that are maintained.

    Aggregate  k                        Aggregate  k
      pivotfirst(g, s, [1, 2])   ──→      array(max(s) FILTER (WHERE g <=> 1), max(s) FILTER (WHERE g <=> 2))
      Aggregate  k, g                     Aggregate  k, g
        sum(i) AS s                         sum(i) AS s

The lower Aggregate has one row for each k and g, so the greatest value is that of the row.
"""

from __future__ import annotations

from spark_bridge.catalyst.catalyst import Catalyst, Expression, Plan, simple_name

_WITH_NAN = frozenset({"FloatType$", "DoubleType$"})
"""PIVOT looks for values as Java does, to which NaN never equals itself."""


def with_plain_pivot(catalyst: Catalyst, aggregate: Plan) -> Plan:
    """An Aggregate whose columns of a PIVOT are greatest values; the same plan without such columns.

    Args:
        catalyst: of the session.
        aggregate: analysed.
    """
    if simple_name(aggregate.child()) != "Aggregate":
        return aggregate
    columns = catalyst.items(aggregate.aggregateExpressions())
    plain = {at: calls for at, each in enumerate(columns) if (calls := _calls_of(catalyst, each)) is not None}
    if not plain:
        return aggregate
    named = [catalyst.alias_as(plain[at], each) if at in plain else each for at, each in enumerate(columns)]
    return catalyst.aggregate(catalyst.items(aggregate.groupingExpressions()), named, aggregate.child())


def _calls_of(catalyst: Catalyst, column: Expression) -> Expression | None:
    """The calls for a column of a PIVOT; None for another column, or if it looks for floats."""
    if simple_name(column) != "Alias" or simple_name(column.child()) != "AggregateExpression":
        return None
    function = column.child().aggregateFunction()
    return _greatest(catalyst, function) if simple_name(function) == "PivotFirst" else None


def _greatest(catalyst: Catalyst, pivot: Expression) -> Expression | None:
    """The values of a `pivotfirst`, as an array of calls; None if it looks for floats."""
    key, value = pivot.pivotColumn(), pivot.valueColumn()
    if simple_name(key.dataType()) in _WITH_NAN:
        return None
    calls = list[Expression]()
    for wanted in catalyst.constants(pivot.pivotColumnValues(), key.dataType()):
        condition = catalyst.expressions.EqualNullSafe(key, wanted)
        function = catalyst.expressions.aggregate.Max(value)
        calls.append(function.toAggregateExpression(False, catalyst.option(condition)))
    return catalyst.expressions.CreateArray(catalyst.seq(calls))

"""Aggregate functions in three steps, each with Spark's own expressions, so that results are Spark's own.

A declarative aggregate of Spark's has a buffer of one to three values, knows how to merge two buffers
(`mergeExpressions`) and what a buffer's value is (`evaluateExpression`).  Only the first step is written here: the
buffer of the new rows, as ordinary aggregate columns that Spark runs in its usual two phases.

    function                  buffer
    count                     count
    sum                       sum; for decimals also whether no value was seen
    avg                       sum, count
    min, max                  the value
    variance and deviation    n, avg, m2 = sum of squared differences from avg, merged as in Chan, Golub and LeVeque,
                              "Updating formulae and a pairwise algorithm for computing sample variances" (1979)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType, DoubleType, NumericType

from spark_bridge.catalyst import Catalyst, Expression, Plan, attribute_id, simple_name
from spark_bridge.operators import refuse
from spark_bridge.result_columns import same

_MOMENTS = frozenset({"StddevPop", "StddevSamp", "VariancePop", "VarianceSamp"})
_FUNCTIONS = frozenset({"Count", "Sum", "Average", "Min", "Max"}) | _MOMENTS
_SUPPORTED = "count, sum, avg, min, max, variance and stddev"


class AggregateCall:
    """One call of an aggregate function in a query.

    Args:
        catalyst: of the session.
        view: the view's name, for the messages.
        expression: Spark's AggregateExpression.

    Raises:
        NotIncrementalError: the function, or this way of calling it, cannot be maintained.
    """

    def __init__(self, catalyst: Catalyst, view: str, expression: Expression) -> None:
        self._catalyst = catalyst
        self.expression = expression
        self._function = expression.aggregateFunction()
        self._filter = expression.filter()
        kind = simple_name(self._function)
        name = str(self._function.name()) if kind == "PythonUDAF" else str(self._function.prettyName())
        if kind not in _FUNCTIONS or name.startswith("try_"):
            raise refuse(view, f"the aggregate function {name}", f"use {_SUPPORTED}")
        if expression.isDistinct():
            raise refuse(view, f"{name}(DISTINCT ...)", "group by the column too, and count those groups when reading")
        if kind in ("Sum", "Average") and not isinstance(self._buffer_type(0), NumericType):
            raise refuse(view, f"{name} over an interval", "aggregate its seconds instead")
        self._kind = kind

    @property
    def buffer(self) -> list[Expression]:
        """The attributes of the buffer."""
        return self._catalyst.items(self._function.aggBufferAttributes())

    def partials(self) -> list[Expression]:
        """What fills the buffer from new rows, one aggregate expression per attribute."""
        if self._kind in ("Count", "Min", "Max"):
            return [self._over_rows(self._function)]
        child = self._catalyst.column(self._catalyst.items(self._function.children())[0])
        count = self._aggregate(F.count(child))
        if self._kind == "Sum":
            total = self._catalyst.column(self._over_rows(self._function))
            if len(self.buffer) == 1:
                return [self._catalyst.expression(total)]
            return [self._or_zero(count, total), self._catalyst.expression(count == 0)]
        if self._kind == "Average":
            # A decimal's sum is wider than its values by itself; anything else is summed as a double.
            summed = child if isinstance(self._buffer_type(0), DecimalType) else child.cast(DoubleType())
            return [self._or_zero(count, self._aggregate(F.sum(summed))), self._catalyst.expression(count)]
        n = count.cast(DoubleType())
        return [
            self._catalyst.expression(n),
            self._or_zero(count, self._aggregate(F.avg(child))),
            self._or_zero(count, self._aggregate(F.var_pop(child)) * n),
        ]

    def merged(self, left: Mapping[int, Expression], right: Mapping[int, Expression]) -> list[Expression]:
        """The buffer of two buffers together.

        Args:
            left: stands for the buffer's attributes, by their position.
            right: the same for the other buffer.
        """
        attributes = {attribute_id(each): left[position] for position, each in enumerate(self.buffer)}
        inputs = self._catalyst.items(self._function.inputAggBufferAttributes())
        attributes.update({attribute_id(each): right[position] for position, each in enumerate(inputs)})
        merges = self._catalyst.items(self._function.mergeExpressions())
        return [self._catalyst.substitute(each, attributes) for each in merges]

    def value(self, buffer: Mapping[int, Expression]) -> Expression:
        """The function's value, from what stands for its buffer's attributes, by their position."""
        attributes = {attribute_id(each): buffer[position] for position, each in enumerate(self.buffer)}
        return self._catalyst.substitute(self._function.evaluateExpression(), attributes)

    def value_position(self) -> int | None:
        """The position in the buffer of what already is the function's value, or None when that is computed."""
        value = self._function.evaluateExpression()
        return next((position for position, each in enumerate(self.buffer) if each.equals(value)), None)

    def is_call(self, expression: Expression) -> bool:
        """Whether another expression is the same call."""
        return same(self.expression, expression)

    def _buffer_type(self, position: int) -> Any:
        return self._catalyst.data_type(self.buffer[position])

    def _over_rows(self, function: Expression) -> Expression:
        return function.toAggregateExpression(False, self._filter)

    def _aggregate(self, column: Column) -> Column:
        """The same aggregate over only the rows that pass the call's FILTER."""
        return self._catalyst.column(self._over_rows(self._catalyst.expression(column).aggregateFunction()))

    def _or_zero(self, count: Column, value: Column) -> Expression:
        """The value, or zero where it saw none: an overflowed sum stays null."""
        zero = F.lit(0).cast(self._catalyst.data_type(self._catalyst.expression(value)))
        return self._catalyst.expression(F.when(count == 0, zero).otherwise(value))


def aggregate_calls(catalyst: Catalyst, view: str, aggregate: Plan) -> list[AggregateCall]:
    """The distinct calls of aggregate functions in an Aggregate, in the order in which they appear.

    Raises:
        NotIncrementalError: one of them cannot be maintained.
    """
    calls: list[AggregateCall] = []
    for expression in catalyst.items(aggregate.aggregateExpressions()):
        for found in _aggregate_expressions(catalyst, expression):
            if not any(call.is_call(found) for call in calls):
                calls.append(AggregateCall(catalyst, view, found))
    return calls


def _aggregate_expressions(catalyst: Catalyst, expression: Expression) -> list[Expression]:
    if simple_name(expression) == "AggregateExpression":
        return [expression]
    return [
        found for child in catalyst.items(expression.children()) for found in _aggregate_expressions(catalyst, child)
    ]

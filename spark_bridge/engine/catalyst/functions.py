"""Functions: builds calls of Spark's functions over several rows, aggregates and windows."""

from __future__ import annotations

from collections.abc import Iterable

from spark_bridge.engine.catalyst.expressions import Expressions
from spark_bridge.engine.catalyst.scala import Scala
from spark_bridge.engine.catalyst.trees import Expression


class Functions:
    """Builds calls of functions."""

    def __init__(self, scala: Scala, expressions: Expressions) -> None:
        self._scala, self._expressions, self._classes = scala, expressions, expressions.classes
        self._types = scala.jvm.org.apache.spark.sql.types

    def over(
        self, function: Expression, spec: Expression, order: Iterable[Expression], frame: Expression
    ) -> Expression:
        """A function over the partitions of a window's specification, with this order and frame."""
        ordered = self._classes.WindowSpecDefinition(spec.partitionSpec(), self._scala.seq(order), frame)
        return self._classes.WindowExpression(function, ordered)

    def count_of_rows(self) -> Expression:
        """The call `count(1)`."""
        return self.count(self._expressions.number(1))

    def count(self, value: Expression, condition: Expression | None = None, *, is_distinct: bool = False) -> Expression:
        """The call `count(value) FILTER (WHERE condition)`, or `count(DISTINCT value)`."""
        function = self._classes.aggregate.Count(self._scala.seq([value]))
        return function.toAggregateExpression(is_distinct, self._scala.option(condition))

    def exact_sum(self, integer: Expression, condition: Expression | None = None) -> Expression:
        """The call `sum(CAST(integer AS decimal(20, 0))) FILTER (WHERE condition)`, which does not overflow."""
        digits = self._types.DecimalType(20, 0)
        function = self._classes.aggregate.Sum(self._expressions.cast(integer, digits), self._expressions.legacy_mode)
        return function.toAggregateExpression(False, self._scala.option(condition))

"""The buffers of Spark's aggregate functions: their initial value, merging and evaluation, as expressions."""

from __future__ import annotations

from collections.abc import Sequence

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Expression, attribute_id


class DeclarativeBuffer:
    """The buffer of one of Spark's DeclarativeAggregates: a few values.

    Central moments hold the number of values, their average, and sums of powers of differences from it, merged
    as in Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979).
    """

    is_opaque = False

    def __init__(self, catalyst: Catalyst, function: Expression) -> None:
        self._catalyst = catalyst
        self._function = function
        self.attributes = catalyst.trees.items(function.aggBufferAttributes())

    def initial(self) -> list[Expression]:
        """The buffer of no rows."""
        return self._catalyst.trees.items(self._function.initialValues())

    def merged(self, left: Sequence[Expression], right: Sequence[Expression]) -> list[Expression]:
        """The buffer of two buffers together."""
        values = self._by_id(self.attributes, left)
        values.update(self._by_id(self._catalyst.trees.items(self._function.inputAggBufferAttributes()), right))
        merges = self._catalyst.trees.items(self._function.mergeExpressions())
        return [self._catalyst.trees.substitute(each, values) for each in merges]

    def value(self, buffer: Sequence[Expression]) -> Expression:
        """The function's value."""
        return self._catalyst.trees.substitute(
            self._function.evaluateExpression(), self._by_id(self.attributes, buffer)
        )

    def value_position(self) -> int | None:
        """The position in the buffer that holds the function's value, or None if the value is computed."""
        value = self._function.evaluateExpression()
        return next((position for position, each in enumerate(self.attributes) if each.equals(value)), None)

    @staticmethod
    def _by_id(attributes: Sequence[Expression], values: Sequence[Expression]) -> dict[int, Expression]:
        return {attribute_id(each): value for each, value in zip(attributes, values, strict=True)}


class TypedBuffer:
    """The buffer of one of Spark's TypedImperativeAggregates: one binary value, read and written by its own methods.

    Args:
        estimates: whether the function gives a sketch, and the value is the estimate of that sketch.
    """

    is_opaque = True

    def __init__(self, catalyst: Catalyst, function: Expression, estimates: bool) -> None:
        self._catalyst = catalyst
        self._function = function
        self._estimates = estimates
        self._object = catalyst.expressions.java_object(function)
        self.attributes = catalyst.trees.items(function.aggBufferAttributes())

    def initial(self) -> list[Expression]:
        """The buffer of no rows."""
        return [self._stored(self._catalyst.expressions.call(self._object, "createAggregationBuffer", []))]

    def merged(self, left: Sequence[Expression], right: Sequence[Expression]) -> list[Expression]:
        """The buffer of two buffers together; the values of the left one come first."""
        buffers = [self._restored(left[0]), self._restored(right[0])]
        return [self._stored(self._catalyst.expressions.call(self._object, "merge", buffers))]

    def value(self, buffer: Sequence[Expression]) -> Expression:
        """The function's value."""
        kind = self._function.dataType()
        value = self._catalyst.expressions.call(self._object, "eval", [self._restored(buffer[0])], kind)
        return self._catalyst.expressions.classes.HllSketchEstimate(value) if self._estimates else value

    def value_position(self) -> int | None:
        """None: the buffer never holds the value."""
        return None

    def _stored(self, buffer: Expression) -> Expression:
        written = self._catalyst.expressions.call(self._object, "serialize", [buffer], self.attributes[0].dataType())
        # Spark's functions may write into the same bytes again for the next row.
        return self._catalyst.expressions.copied(written)

    def _restored(self, stored: Expression) -> Expression:
        return self._catalyst.expressions.call(self._object, "deserialize", [stored])

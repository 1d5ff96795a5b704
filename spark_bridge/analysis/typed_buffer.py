"""A buffer that is an object of Spark's, and bytes where it is stored."""

from __future__ import annotations

from collections.abc import Sequence

from spark_bridge.catalyst.catalyst import Catalyst, Expression


class TypedBuffer:
    """The buffer of a TypedImperativeAggregate of Spark's: one binary value, which its own methods read and write.

    Args:
        catalyst: of the session.
        function: Spark's.
        estimates: whether the function's value is the estimate of the sketch that it gives.
    """

    is_opaque = True

    def __init__(self, catalyst: Catalyst, function: Expression, estimates: bool) -> None:
        self._catalyst = catalyst
        self._function = function
        self._estimates = estimates
        self._object = catalyst.java_object(function)
        self.attributes = catalyst.items(function.aggBufferAttributes())

    def initial(self) -> list[Expression]:
        """The buffer of no rows."""
        return [self._stored(self._catalyst.call(self._object, "createAggregationBuffer", []))]

    def merged(self, left: Sequence[Expression], right: Sequence[Expression]) -> list[Expression]:
        """The buffer of two buffers together; what the left one has comes first."""
        buffers = [self._restored(left[0]), self._restored(right[0])]
        return [self._stored(self._catalyst.call(self._object, "merge", buffers))]

    def value(self, buffer: Sequence[Expression]) -> Expression:
        """The function's value."""
        kind = self._function.dataType()
        value = self._catalyst.call(self._object, "eval", [self._restored(buffer[0])], kind)
        return self._catalyst.expressions.HllSketchEstimate(value) if self._estimates else value

    def value_position(self) -> int | None:
        """The buffer never is the value."""
        return None

    def _stored(self, buffer: Expression) -> Expression:
        written = self._catalyst.call(self._object, "serialize", [buffer], self.attributes[0].dataType())
        # Spark's functions may write into the same bytes again for the next row.
        return self._catalyst.copied(written)

    def _restored(self, stored: Expression) -> Expression:
        return self._catalyst.call(self._object, "deserialize", [stored])

"""Conditions on the time of the epoch, as `at > now() - INTERVAL 1 HOUR`: a value of each row, and a boundary in time.

Such a condition compares an expression of the row with one of the time alone.  The time reaches a row when the boundary
does: a row that is kept by `>` or `>=` leaves then, and one that is kept by `<` or `<=` comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

from spark_bridge.catalyst.catalyst import Catalyst, Expression, Plan, parts_of, simple_name
from spark_bridge.catalyst.epoch_timestamps import EpochTimestamps, has_epoch_timestamp

_OPERATORS = {
    "GreaterThan": (True, True),
    "GreaterThanOrEqual": (True, False),
    "LessThan": (False, False),
    "LessThanOrEqual": (False, True),
}
"""A comparison of a row's value with a boundary -> `leaves` and `at_equal` of a `TimedCondition`."""
_FROM_RIGHT = {
    "GreaterThan": "LessThan",
    "GreaterThanOrEqual": "LessThanOrEqual",
    "LessThan": "GreaterThan",
    "LessThanOrEqual": "GreaterThanOrEqual",
}
_OPPOSITE = {
    "GreaterThan": "LessThanOrEqual",
    "GreaterThanOrEqual": "LessThan",
    "LessThan": "GreaterThanOrEqual",
    "LessThanOrEqual": "GreaterThan",
}
_HAVE_VALUES = (
    frozenset({"CurrentTimestamp", "Now", "CurrentDate", "LocalTimestamp", "Literal", "Cast"})
    | frozenset({"TimeAdd", "DatetimeSub", "TimestampAdd", "TimestampAddYMInterval", "DateAdd", "DateSub", "AddMonths"})
    | frozenset({"DateAddInterval", "DateAddYMInterval", "ExtractANSIIntervalDays", "UnaryMinus", "MakeInterval"})
    | frozenset({"MultiplyDTInterval", "MultiplyYMInterval", "MakeDTInterval", "MakeYMInterval"})
    | frozenset({"TruncDate", "TruncTimestamp", "LastDay", "ParseToDate", "ParseToTimestamp"})
    | frozenset({"UnixTimestamp", "ToUnixTimestamp", "UnixSeconds", "UnixMillis", "UnixMicros", "UnixDate"})
    | frozenset({"Year", "Quarter", "Month", "WeekOfYear", "DayOfYear", "DayOfMonth", "DayOfWeek", "WeekDay"})
    | frozenset({"Hour", "Minute", "Second", "Add", "Subtract", "Multiply"})
)
"""Spark's expressions of the time that have a value at all times if they have one at some time."""
_TYPES = frozenset({"timestamp", "timestamp_ntz", "date", "long", "integer", "short", "byte"})


@dataclass(frozen=True)
class TimedCondition:
    """A condition that keeps rows until a time, or from a time on.

    Args:
        value: of the row.
        boundary: of the time alone.
        leaves: whether a row leaves when the boundary reaches its value; else it comes then.
        at_equal: whether an equal boundary has reached a value.
    """

    value: Expression
    boundary: Expression
    leaves: bool
    at_equal: bool


class Boundary:
    """An expression of the time alone, computed by Spark's own code.

    Args:
        catalyst: of the session.
        expression: analysed.
    """

    def __init__(self, catalyst: Catalyst, expression: Expression) -> None:
        self._timestamps, self._lock = EpochTimestamps(catalyst), Lock()
        timed = _evaluable(catalyst, self._timestamps.put_in(expression))
        self._kind, of_time = timed.dataType(), catalyst.seq([timed])
        self._row = catalyst.expressions.InterpretedMutableProjection(of_time, catalyst.seq([]))

    def at(self, time_us: int) -> int:
        """The value at a time, in microseconds since 1970: a number, as Spark stores it."""
        value = self.or_none(time_us)
        assert value is not None, "it has a value at all times"
        return value

    def or_none(self, time_us: int) -> int | None:
        """As `at`; None for an expression without a value."""
        with self._lock:
            self._timestamps.set_time(time_us)
            value: int | None = self._row.apply(None).get(0, self._kind)
            return value


def has_timed_filter(catalyst: Catalyst, plan: Plan) -> bool:
    """Whether a plan has a filter by the time of the epoch."""
    if not catalyst.may_have(plan, "CURRENT_LIKE"):
        return False
    filters = (part for part in parts_of(catalyst, plan) if simple_name(part) == "Filter")
    return any(has_epoch_timestamp(catalyst, part.condition()) for part in filters)


def timed_conditions(catalyst: Catalyst, condition: Expression) -> Sequence[TimedCondition] | None:
    """A condition on the time as one or two that keep rows until a time, or from one on; None if it is another one."""
    name, is_opposite = simple_name(condition), False
    while name == "Not":
        condition, is_opposite = condition.child(), not is_opposite
        name = simple_name(condition)
    if name == "EqualTo" and not is_opposite:
        names = ["GreaterThanOrEqual", "LessThanOrEqual"]
    elif name in _OPERATORS:
        names = [_OPPOSITE[name] if is_opposite else name]
    else:
        return None
    value, boundary = condition.left(), condition.right()
    if has_epoch_timestamp(catalyst, value):
        value, boundary = boundary, value
        names = [_FROM_RIGHT[each] for each in names]
    if not _is_boundary(catalyst, boundary) or has_epoch_timestamp(catalyst, value) or not value.references().size():
        return None
    return [TimedCondition(value, boundary, *_OPERATORS[each]) for each in names]


def _is_boundary(catalyst: Catalyst, expression: Expression) -> bool:
    """Whether an expression is of the time alone, with a value at all times: a time, a date or a whole number."""
    if expression.references().size() or str(expression.dataType().typeName()) not in _TYPES:
        return False
    has_values = _has_values(catalyst, _evaluable(catalyst, expression))
    return has_values and Boundary(catalyst, expression).or_none(0) is not None


def _has_values(catalyst: Catalyst, expression: Expression) -> bool:
    has_one = simple_name(expression) in _HAVE_VALUES
    return has_one and all(_has_values(catalyst, each) for each in catalyst.items(expression.children()))


def _evaluable(catalyst: Catalyst, expression: Expression) -> Expression:
    """The expression without those that Spark replaces by others before it computes them."""

    def replaced(part: Expression) -> Expression | None:
        if not catalyst.is_instance(part, "catalyst.expressions.RuntimeReplaceable"):
            return None
        return _evaluable(catalyst, part.replacement())

    return catalyst.rewrite(expression, replaced)

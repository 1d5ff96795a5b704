"""Conditions on the time of the epoch, as `at > now() - INTERVAL 1 HOUR`: a value of each row, and a boundary in time.

Such a condition compares an expression of the row with one of the time alone.  The time reaches a row when the boundary
does: a row that is kept by `>` or `>=` leaves then, and one that is kept by `<` or `<=` comes.

Others are made of these, and of conditions that time does not change, by SQL's logic of three values::

    status = 'open' OR at > now()                    or(status = 'open', at > now())
    CASE WHEN c THEN at > now() ELSE b END           or(and(c, c has a value, at > now()),
                                                        and(not(and(c, c has a value)), b))
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from threading import Lock
from typing import Literal

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.epoch_timestamps import EpochTimestamps, has_epoch_timestamp
from spark_bridge.engine.catalyst.trees import Expression, Plan, Trees, is_attribute, parts_of, simple_name

_OPERATORS = {
    "GreaterThan": (True, True),
    "GreaterThanOrEqual": (True, False),
    "LessThan": (False, False),
    "LessThanOrEqual": (False, True),
}
"""A comparison of a row's value with a boundary -> `leaves` and `at_equal` of a `TemporalCondition`."""
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


Logic = Literal["and", "or", "not", "has a value"]


@dataclass(frozen=True, eq=False)
class TemporalCondition:
    """A condition that keeps rows until a time, or from a time on.

    Args:
        boundary: of the time alone.
        leaves: whether a row leaves when the boundary reaches its value; else it comes then.
        at_equal: whether an equal boundary has reached a value.
    """

    value: Expression
    boundary: Expression
    leaves: bool
    at_equal: bool


@dataclass(frozen=True, eq=False)
class RowCondition:
    """A condition on a row that time does not change.

    Args:
        value: whether a row fulfils it.
    """

    value: Expression


@dataclass(frozen=True, eq=False)
class CombinedCondition:
    """A condition made of others.

    Args:
        logic: how, with a null for what is not known: neither true nor false.
        parts: the others.
    """

    logic: Logic
    parts: tuple[ConditionPart, ...]


ConditionPart = TemporalCondition | RowCondition | CombinedCondition


class Boundary:
    """An expression of the time alone, computed by Spark's own code.

    Args:
        expression: analysed.
    """

    def __init__(self, catalyst: Catalyst, expression: Expression) -> None:
        self._timestamps, self._lock = EpochTimestamps(catalyst), Lock()
        temporal = _evaluable(catalyst.trees, self._timestamps.put_in(expression))
        self._kind, of_time = temporal.dataType(), catalyst.scala.seq([temporal])
        self._row = catalyst.expressions.classes.InterpretedMutableProjection(of_time, catalyst.scala.seq([]))

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


def has_temporal_filter(trees: Trees, plan: Plan) -> bool:
    """Whether a plan has a filter by the time of the epoch."""
    if not trees.may_have(plan, "CURRENT_LIKE"):
        return False
    filters = (part for part in parts_of(trees, plan) if simple_name(part) == "Filter")
    return any(has_epoch_timestamp(trees, part.condition()) for part in filters)


def temporal_condition(catalyst: Catalyst, condition: Expression) -> ConditionPart | None:
    """A condition on the time by its parts; None if one of them is no comparison with a boundary."""
    return _Parts(catalyst).of(condition, None)


def comparisons_of(part: ConditionPart) -> Iterator[TemporalCondition | RowCondition]:
    """Yields the parts that are not made of others, in the order of the query."""
    if isinstance(part, CombinedCondition):
        for each in part.parts:
            yield from comparisons_of(each)
    else:
        yield part


class _Parts:
    """Takes conditions apart.

    The values of all parts are computed before the time is known.  A value that the query computes for some rows only,
    by a condition on the row before it, is computed for these: it may be an error for others.
    """

    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst = catalyst

    def of(self, condition: Expression, needed: Expression | None) -> ConditionPart | None:
        """A condition by its parts.

        Args:
            needed: whether a row needs its value; None if each does.
        """
        catalyst, expressions = self._catalyst, self._catalyst.expressions.classes
        if not has_epoch_timestamp(catalyst.trees, condition):
            return RowCondition(self._where(needed, condition))
        if (compared := self._compared(condition, needed)) is not None:
            return compared
        children = catalyst.trees.items(condition.children())
        match simple_name(condition):
            case "And" | "Or" as name:
                parts = list[ConditionPart | None]()
                for each in _operands(condition, name):
                    parts.append(self.of(each, needed))
                    needed = self._also(needed, each, expressions.Not(self._is(each, name == "Or")))
                return _combined("and" if name == "And" else "or", *parts)
            case "Not":
                return _combined("not", self.of(children[0], needed))
            case "IsNotNull":
                return _combined("has a value", self.of(children[0], needed))
            case "In":
                equal = [expressions.EqualTo(children[0], each) for each in children[1:]]
                return self.of(reduce(expressions.Or, equal), needed)
            case "Coalesce" if len(children) > 1:
                rest = expressions.Coalesce(catalyst.scala.seq(children[1:]))
                return self._choice(expressions.IsNotNull(children[0]), children[0], rest, needed)
            case "Coalesce":
                return self.of(children[0], needed)
            case "If":
                return self._choice(children[0], children[1], children[2], needed)
            case "CaseWhen":
                pairs = [*children, catalyst.expressions.null(condition.dataType())][: len(children) // 2 * 2 + 1]
                cases = zip(pairs[-3::-2], pairs[-2::-2], strict=True)
                return self.of(reduce(lambda rest, each: expressions.If(*each, rest), cases, pairs[-1]), needed)
            case _:
                return None

    def _choice(
        self, condition: Expression, then: Expression, otherwise: Expression, needed: Expression | None
    ) -> ConditionPart | None:
        known, is_true = self.of(condition, needed), self._is(condition, True)
        chosen = _combined("and", known, _combined("has a value", known))
        one = self.of(then, self._also(needed, condition, is_true))
        other = self.of(otherwise, self._also(needed, condition, self._catalyst.expressions.classes.Not(is_true)))
        return _combined("or", _combined("and", chosen, one), _combined("and", _combined("not", chosen), other))

    def _compared(self, condition: Expression, needed: Expression | None) -> ConditionPart | None:
        """A comparison with a boundary, or the `NOT` of one."""
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
        if has_epoch_timestamp(self._catalyst.trees, value):
            value, boundary = boundary, value
            names = [_FROM_RIGHT[each] for each in names]
        is_of_time = _is_boundary(self._catalyst, boundary) and not has_epoch_timestamp(self._catalyst.trees, value)
        if not is_of_time or not value.references().size():
            return None
        value = self._where(needed, value)
        return _combined("and", *(TemporalCondition(value, boundary, *_OPERATORS[each]) for each in names))

    def _where(self, needed: Expression | None, value: Expression) -> Expression:
        """A value of the rows that need it, null for others; a column as it is."""
        if needed is None or is_attribute(value):
            return value
        return self._catalyst.expressions.when(needed, value, self._catalyst.expressions.null(value.dataType()))

    def _also(self, needed: Expression | None, condition: Expression, fulfilled: Expression) -> Expression | None:
        """Whether a row needs a value behind a condition; one on the time is not known yet."""
        if has_epoch_timestamp(self._catalyst.trees, condition):
            return needed
        return fulfilled if needed is None else self._catalyst.expressions.classes.And(needed, fulfilled)

    def _is(self, condition: Expression, value: bool) -> Expression:
        expressions = self._catalyst.expressions.classes
        return expressions.EqualNullSafe(condition, expressions.Literal(value, condition.dataType()))


def _operands(condition: Expression, name: str) -> list[Expression]:
    """The conditions that one joins by `AND`, or by `OR`, in their order."""
    if simple_name(condition) != name:
        return [condition]
    return [*_operands(condition.left(), name), *_operands(condition.right(), name)]


def _combined(logic: Logic, *parts: ConditionPart | None) -> ConditionPart | None:
    """A condition made of parts, if there are all of them."""
    known = tuple(each for each in parts if each is not None)
    if len(known) < len(parts):
        return None
    return known[0] if logic == "and" and len(known) == 1 else CombinedCondition(logic, known)


def _is_boundary(catalyst: Catalyst, expression: Expression) -> bool:
    """Whether an expression is of the time alone, with a value at all times: a time, a date or a whole number."""
    if expression.references().size() or str(expression.dataType().typeName()) not in _TYPES:
        return False
    has_values = _has_values(catalyst.trees, _evaluable(catalyst.trees, expression))
    return has_values and Boundary(catalyst, expression).or_none(0) is not None


def _has_values(trees: Trees, expression: Expression) -> bool:
    has_one = simple_name(expression) in _HAVE_VALUES
    return has_one and all(_has_values(trees, each) for each in trees.items(expression.children()))


def _evaluable(trees: Trees, expression: Expression) -> Expression:
    """The expression without those that Spark replaces by others before it computes them."""

    def replaced(part: Expression) -> Expression | None:
        if not trees.is_instance(part, "catalyst.expressions.RuntimeReplaceable"):
            return None
        return _evaluable(trees, part.replacement())

    return trees.rewrite(expression, replaced)

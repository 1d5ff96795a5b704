"""Bounds of the difference of two times, as in `a.at BETWEEN b.at - INTERVAL 10 MINUTES AND b.at + INTERVAL 1 HOUR`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from spark_bridge.catalyst.catalyst import Catalyst, Expression, attribute_id, is_attribute, simple_name

_LENGTH = "DayTimeIntervalType"
_TYPES = frozenset({"TimestampType", "TimestampNTZType", _LENGTH})
_SECOND = 3
"""Spark's number of the unit of an interval that has all units."""
_AT_MOST = frozenset({"LessThan", "LessThanOrEqual"})
_AT_LEAST = frozenset({"GreaterThan", "GreaterThanOrEqual"})
_EQUAL = frozenset({"EqualTo", "EqualNullSafe"})


@dataclass(frozen=True)
class TimeBound:
    """The time `later` is at most `most_us` microseconds after the time `earlier`; both are ids of attributes."""

    later: int
    earlier: int
    most_us: int


@dataclass(frozen=True)
class _Sum:
    """Times, each so often, and microseconds: a difference of times has one of them once and another one -1 times."""

    times: Counter[int]
    us: int

    def plus(self, other: _Sum, sign: int) -> _Sum:
        times = Counter(self.times)
        for number, count in other.times.items():
            times[number] += sign * count
        return _Sum(Counter({number: count for number, count in times.items() if count}), self.us + sign * other.us)


_NOTHING = _Sum(Counter(), 0)


def time_bounds(catalyst: Catalyst, condition: Expression) -> Iterator[TimeBound]:
    """Yields those that follow from the conjuncts of a condition, analysed in a session whose time zone is UTC."""
    for each in catalyst.conjuncts(condition):
        kind = simple_name(each)
        if kind not in _AT_MOST | _AT_LEAST | _EQUAL:
            continue
        sides = _sum(catalyst, each.left()), _sum(catalyst, each.right())
        if sides[0] is None or sides[1] is None:
            continue
        difference = sides[0].plus(sides[1], -1)
        if kind not in _AT_LEAST:
            yield from _bound(difference)
        if kind not in _AT_MOST:
            yield from _bound(_NOTHING.plus(difference, -1))


def _bound(difference: _Sum) -> Iterator[TimeBound]:
    """The bound that a sum of at most 0 gives."""
    if sorted(difference.times.values()) == [-1, 1]:
        [(later, _), (earlier, _)] = difference.times.most_common()
        yield TimeBound(later, earlier, -difference.us)


def _sum(catalyst: Catalyst, expression: Expression) -> _Sum | None:
    """An expression of times and intervals as a sum; None for another one."""
    kind, data_type = simple_name(expression), _type(expression)
    if data_type not in _TYPES:
        return None
    if is_attribute(expression):
        return None if data_type == _LENGTH else _Sum(Counter({attribute_id(expression): 1}), 0)
    if kind == "Literal":
        is_length = data_type == _LENGTH and expression.value() is not None
        return _Sum(Counter(), int(expression.value())) if is_length else None
    children = catalyst.items(expression.children())
    parts = [part for each in children if (part := _sum(catalyst, each)) is not None]
    if len(parts) < len(children):
        return None
    match kind, parts:
        case ("Cast", [part]):
            # An interval without seconds is cut to its units.
            is_same = data_type != _LENGTH or int(expression.dataType().endField()) == _SECOND
            return part if _type(children[0]) == data_type and is_same else None
        case ("DatetimeSub", [part]):
            return part
        case ("UnaryMinus", [part]):
            return _NOTHING.plus(part, -1)
        case ("TimeAdd" | "Add", [one, other]):
            return one.plus(other, 1)
        case ("SubtractTimestamps" | "Subtract", [one, other]):
            return one.plus(other, -1)
        case _:
            return None


def _type(expression: Expression) -> str:
    return simple_name(expression.dataType()).removesuffix("$")

"""Bounds of the difference of two times, as in `a.at BETWEEN b.at - INTERVAL 10 MINUTES AND b.at + INTERVAL 1 HOUR`.

They are found in the conditions of joins, or put into them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import functions as F

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.column_origin import column_origin
from spark_bridge.engine.catalyst.trees import Expression, Plan, Trees, attribute_id, is_attribute, simple_name

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


def time_bounds(trees: Trees, condition: Expression) -> Iterator[TimeBound]:
    """Yields those that follow from the conjuncts of a condition, analysed in a session whose time zone is UTC."""
    for each in trees.conjuncts(condition):
        kind = simple_name(each)
        if kind not in _AT_MOST | _AT_LEAST | _EQUAL:
            continue
        sides = _sum(trees, each.left()), _sum(trees, each.right())
        if sides[0] is None or sides[1] is None:
            continue
        difference = sides[0].plus(sides[1], -1)
        if kind not in _AT_LEAST:
            yield from _bound(difference)
        if kind not in _AT_MOST:
            yield from _bound(_NOTHING.plus(difference, -1))


def with_bounds(
    catalyst: Catalyst, plan: Plan, leaves: Mapping[int, str], event_times: Mapping[str, str], most_us: int
) -> Plan:
    """A plan in which rows are partners only if their event times are at most so far apart.

    Args:
        plan: analysed, without names of relations.
        leaves: id of a leaf's first attribute → the name of the leaf.
        event_times: leaf → the column with its event time.
        most_us: the greatest distance, in microseconds.

    Returns:
        The plan with two more conditions in each join that has one event time on either side.
    """

    def times_of(side: Plan) -> list[Expression]:
        def is_time(column: Expression) -> bool:
            origin = column_origin(catalyst.trees, side, attribute_id(column), leaves)
            return origin is not None and event_times.get(origin[0]) == origin[1] and _type(column) in _TYPES

        return [each for each in catalyst.trees.items(side.output()) if is_time(each)]

    def bounded(part: Plan) -> Plan:
        children = catalyst.trees.items(part.children())
        if not children:
            return part
        part = catalyst.trees.with_children(part, map(bounded, children))
        if simple_name(part) != "Join":
            return part
        left, right = times_of(part.left()), times_of(part.right())
        if len(left) != 1 or len(right) != 1:
            return part
        present = [part.condition().get()] if part.condition().isDefined() else []
        condition = catalyst.expressions.all_of([*present, _within(catalyst, left[0], right[0], most_us)])
        return catalyst.plans.join_of(part.joinType(), part.left(), part.right(), condition)

    return bounded(plan)


def with_ages(
    catalyst: Catalyst, plan: Plan, leaves: Mapping[int, str], event_times: Mapping[str, str], most_us: int
) -> Plan:
    """A plan over those rows of its leaves whose event time is at most so far before the time of the epoch.

    Args:
        plan: analysed, without names of relations.
        leaves: id of a leaf's first attribute → the name of the leaf.
        event_times: leaf → the column with its event time; all leaves.
        most_us: the greatest age, in microseconds.
    """
    children = catalyst.trees.items(plan.children())
    if children:
        below = [with_ages(catalyst, each, leaves, event_times, most_us) for each in children]
        return catalyst.trees.with_children(plan, below)
    output = catalyst.trees.items(plan.output())
    column = event_times[leaves[attribute_id(output[0])]]
    [time] = [each for each in output if str(each.name()) == column]
    value = "time" if _type(time) == "TimestampType" else "CAST(time AS TIMESTAMP)"
    condition = f"{value} >= now() - {_interval(most_us)}"
    leaf = catalyst.rows.local_relation(catalyst.scala.seq([time.withName("time")]))
    is_young = catalyst.queries.analyse(
        catalyst.plans.filter(catalyst.queries.expression(F.expr(condition)), leaf)
    ).condition()
    return catalyst.plans.filter(is_young, plan)


def _interval(us: int) -> str:
    return f"INTERVAL '{us / 1_000_000:.6f}' SECOND"


def _within(catalyst: Catalyst, time: Expression, other: Expression, most_us: int) -> Expression:
    """Whether two times are at most so far apart; null if one of them is null."""
    leaf = catalyst.rows.local_relation(catalyst.scala.seq([time.withName("time"), other.withName("other")]))
    most = _interval(most_us)
    within = catalyst.queries.expression(F.expr(f"time BETWEEN other - {most} AND other + {most}"))
    return catalyst.queries.analyse(catalyst.plans.filter(within, leaf)).condition()


def _bound(difference: _Sum) -> Iterator[TimeBound]:
    """The bound that a sum of at most 0 gives."""
    if sorted(difference.times.values()) == [-1, 1]:
        [(later, _), (earlier, _)] = difference.times.most_common()
        yield TimeBound(later, earlier, -difference.us)


def _sum(trees: Trees, expression: Expression) -> _Sum | None:
    """An expression of times and intervals as a sum; None for another one."""
    kind, data_type = simple_name(expression), _type(expression)
    if data_type not in _TYPES:
        return None
    if is_attribute(expression):
        return None if data_type == _LENGTH else _Sum(Counter({attribute_id(expression): 1}), 0)
    if kind == "Literal":
        is_length = data_type == _LENGTH and expression.value() is not None
        return _Sum(Counter(), int(expression.value())) if is_length else None
    children = trees.items(expression.children())
    parts = [part for each in children if (part := _sum(trees, each)) is not None]
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

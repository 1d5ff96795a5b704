"""`current_timestamp()` and the like: the time of the epoch that ingests the rows, the same after a recovery."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.java_classes import java_instance
from spark_bridge.engine.catalyst.trees import Expression, Plan, Trees, parts_of, simple_name

_SOURCE = Path(__file__).with_suffix(".java")
_KINDS = frozenset({"CurrentTimestamp", "Now", "CurrentDate", "LocalTimestamp"})
_CLOCK_WORDS = frozenset({"now", "today", "tomorrow", "yesterday"})
_TIMES = frozenset({"DateType", "TimestampType", "TimestampNTZType"})
_SUBQUERY = "catalyst.expressions.SubqueryExpression"
_TYPED_LITERAL = re.compile(
    rf"""\b(?:date|timestamp(?:_ltz|_ntz)?)\s*(['"])\s*(?:{"|".join(_CLOCK_WORDS)})\b""", re.IGNORECASE
)
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_NAMES = "current_timestamp|now|current_date|localtimestamp"
_IN_IDENTITY = re.compile(rf"\b(?:{_NAMES})\(")
_FILTERS = re.compile(rf"\bepoch_(?:{_NAMES})\(")


def is_epoch_timestamp(expression: Expression) -> bool:
    """Whether an expression gives the time of its computation."""
    return simple_name(expression) in _KINDS


def has_epoch_timestamp(trees: Trees, expression: Expression) -> bool:
    """Whether an expression or a part of it gives the time of its computation."""
    if not trees.may_have(expression, "CURRENT_LIKE"):
        return False
    children = trees.items(expression.children())
    return is_epoch_timestamp(expression) or any(has_epoch_timestamp(trees, each) for each in children)


def is_wall_clock(expression: Expression) -> bool:
    """Whether an expression is a word for a time, as 'now', that Spark reads from the clock when it plans a job."""
    if simple_name(expression) != "Cast" or simple_name(expression.dataType()).rstrip("$") not in _TIMES:
        return False
    text = expression.child()
    if simple_name(text) != "Literal" or text.value() is None:
        return False
    words = str(text.value()).split()
    return bool(words) and words[0].lower() in _CLOCK_WORDS


def wall_clock_literal(text: str) -> str | None:
    """A typed literal of SQL that Spark's parser reads from the clock, as `DATE 'today'`; None without one."""
    found = _TYPED_LITERAL.search(_COMMENT.sub(" ", text))
    return None if found is None else f"{found[0]}{found[1]}"


def uses_epoch_timestamps(identity: str) -> bool:
    """Whether the values of a view with this identity depend on the time of ingestion."""
    return _IN_IDENTITY.search(identity) is not None


def filter_text(text: str) -> str:
    """The identity of a filter by the time of the present epoch: no value of it depends on the time of ingestion."""
    return _IN_IDENTITY.sub(lambda found: f"epoch_{found[0]}", text)


def filters_by_time(identity: str) -> bool:
    """Whether rows of a view with this identity come or leave as time passes."""
    return _FILTERS.search(identity) is not None


def with_time(catalyst: Catalyst, plan: Plan, time_us: int) -> Plan:
    """An analysed plan, as Spark makes it of a query, with a time in place of every `current_timestamp()` and the like.

    Args:
        time_us: the time, in microseconds since 1970.
    """
    time = _java_times(catalyst).literal(time_us)

    def within(expression: Expression) -> Expression:
        return catalyst.trees.rewrite(expression, replaced)

    def replaced(part: Expression) -> Expression | None:
        if is_epoch_timestamp(part):
            return catalyst.expressions.cast(time, part.dataType())
        return part.withNewPlan(of(part.plan())) if catalyst.trees.is_instance(part, _SUBQUERY) else None

    def of(part: Plan) -> Plan:
        if not catalyst.trees.may_have(part, "CURRENT_LIKE"):
            return part
        children = catalyst.trees.items(part.children())
        part = catalyst.trees.with_children(part, map(of, children)) if children else part
        if not any(catalyst.trees.may_have(each, "CURRENT_LIKE") for each in catalyst.trees.items(part.expressions())):
            return part
        return catalyst.plans.with_expressions(part, within) or part

    return of(plan)


def _java_times(catalyst: Catalyst) -> Any:
    return java_instance(catalyst.spark, _SOURCE, "EpochTimestamps")


class EpochTimestamps:
    """The time in one view's plan, which can be set before each run of the plan.

    The time is a lambda function that returns its argument: an expression whose value the optimizer does not see.
    Spark sends the objects of a plan with each task, so a job computes with the time set before its start.

    The optimizer may evaluate a condition above an outer join for a row of nulls, and would take the value that the
    variable has then.  The plans of views have no joins.
    """

    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst = catalyst
        self._holder: Any = None
        self._variable: Any = None

    def set_time(self, time_us: int) -> None:
        """Sets the time for the next jobs: microseconds since 1970."""
        if self._holder is not None:
            _java_times(self._catalyst).set(self._holder, time_us)

    @property
    def are_used(self) -> bool:
        """Whether a plan has the settable time."""
        return self._holder is not None

    def are_in(self, plan: Plan) -> bool:
        """Whether an analysed plan has such an expression."""
        if not self._catalyst.trees.may_have(plan, "CURRENT_LIKE"):
            return False
        parts = parts_of(self._catalyst.trees, plan)
        return any(
            has_epoch_timestamp(self._catalyst.trees, each)
            for part in parts
            for each in self._catalyst.trees.items(part.expressions())
        )

    def put_into(self, plan: Plan) -> Plan:
        """The analysed plan with every such expression replaced by the settable time.

        The plan is a projection below at most one Aggregate; the analysis refuses such an expression above it.
        """
        catalyst = self._catalyst
        if not catalyst.trees.may_have(plan, "CURRENT_LIKE"):
            return plan
        children = [self.put_into(child) for child in catalyst.trees.items(plan.children())]
        if not any(has_epoch_timestamp(catalyst.trees, each) for each in catalyst.trees.items(plan.expressions())):
            return catalyst.trees.with_children(plan, children) if children else plan
        match simple_name(plan):
            case "Project":
                return catalyst.plans.project(self._all_put_in(plan.projectList()), children[0])
            case "Filter":
                return catalyst.plans.filter(self.put_in(plan.condition()), children[0])
            case "Aggregate":
                grouping = self._all_put_in(plan.groupingExpressions())
                values = self._all_put_in(plan.aggregateExpressions())
                return catalyst.plans.aggregate(grouping, values, children[0])
            case "Generate":
                return catalyst.plans.generate(plan, self.put_in(plan.generator()), children[0])
            case "Expand":
                projections = [self._all_put_in(each) for each in catalyst.trees.items(plan.projections())]
                return catalyst.plans.expand(projections, plan.output(), children[0])
            case other:
                raise AssertionError(f"{other} is not a projection")

    def _all_put_in(self, expressions: Any) -> list[Expression]:
        return [self.put_in(each) for each in self._catalyst.trees.items(expressions)]

    def put_in(self, expression: Expression) -> Expression:
        """The analysed expression with the settable time."""
        return self._catalyst.trees.rewrite(
            expression, lambda part: self._time(part) if is_epoch_timestamp(part) else None
        )

    def _time(self, timestamp: Expression) -> Expression:
        catalyst = self._catalyst
        if self._holder is None:
            self._variable, self._holder = catalyst.expressions.variable(
                "epoch_time", catalyst.expressions.timestamp_type
            )
            self.set_time(0)
        return catalyst.expressions.cast(self._variable, timestamp.dataType())

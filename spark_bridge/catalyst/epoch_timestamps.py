"""`current_timestamp()` and its kin: the time of the epoch that ingests the rows, so that recovery gives the same."""

from __future__ import annotations

import re
from typing import Any

from spark_bridge.catalyst.catalyst import Catalyst, Expression, Plan, simple_name

_KINDS = frozenset({"CurrentTimestamp", "Now", "CurrentDate", "LocalTimestamp"})
_IN_IDENTITY = re.compile(r"\b(?:current_timestamp|now|current_date|localtimestamp)\(")


def is_epoch_timestamp(expression: Expression) -> bool:
    """Whether an expression stands for the time at which it is computed."""
    return simple_name(expression) in _KINDS


def uses_epoch_timestamps(identity: str) -> bool:
    """Whether a view of this identity has values that depend on when its rows were ingested."""
    return _IN_IDENTITY.search(identity) is not None


def epoch_time_us(epoch: int) -> int:
    """The time of an epoch, in microseconds since 1970."""
    return (epoch >> 16) * 1000


class EpochTimestamps:
    """The time that one view's plan computes with.

    Spark sends what the plan refers to with each task, so a job computes with the time that was set when it began.

    Args:
        catalyst: of the session.
    """

    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst = catalyst
        self._holder: Any = None

    def set_time(self, time_us: int) -> None:
        """From the next job on: microseconds since 1970."""
        if self._holder is not None:
            self._holder.set(0, time_us)

    def put_into(self, plan: Plan) -> Plan:
        """The analysed plan with every moment replaced, but for what is above a grouping."""
        catalyst = self._catalyst
        children = [self.put_into(child) for child in catalyst.items(plan.children())]
        if not any(map(self._has_moment, catalyst.items(plan.expressions()))):
            return catalyst.with_children(plan, children) if children else plan
        kind = simple_name(plan)
        if kind == "Project":
            return catalyst.project(self._all_put_in(plan.projectList()), children[0])
        if kind == "Filter":
            return catalyst.filter(self._put_in(plan.condition()), children[0])
        if kind == "Aggregate":
            grouping, values = (
                self._all_put_in(plan.groupingExpressions()),
                self._all_put_in(plan.aggregateExpressions()),
            )
            return catalyst.aggregate(grouping, values, children[0])
        if kind == "Generate":
            return catalyst.generate(plan, self._put_in(plan.generator()), children[0])
        assert kind == "Expand", f"{kind} is not row by row"
        projections = [self._all_put_in(each) for each in catalyst.items(plan.projections())]
        return catalyst.expand(projections, plan.output(), children[0])

    def _all_put_in(self, expressions: Any) -> list[Expression]:
        return [self._put_in(each) for each in self._catalyst.items(expressions)]

    def _put_in(self, expression: Expression) -> Expression:
        return self._catalyst.rewrite(expression, lambda part: self._time(part) if is_epoch_timestamp(part) else None)

    def _time(self, moment: Expression) -> Expression:
        if self._holder is None:
            self._holder = self._catalyst.shared_number()
        catalyst = self._catalyst
        time = catalyst.call(catalyst.java_object(self._holder), "get", [catalyst.number(0)], catalyst.timestamp_type)
        return catalyst.cast(time, moment.dataType())

    def _has_moment(self, expression: Expression) -> bool:
        return is_epoch_timestamp(expression) or any(map(self._has_moment, self._catalyst.items(expression.children())))

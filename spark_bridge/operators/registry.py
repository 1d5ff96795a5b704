"""The registry of operators: the one place that lists them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spark_bridge.engine.catalyst.trees import Plan
from spark_bridge.operators.cut import Cut, InnerRows
from spark_bridge.operators.global_window.global_window_operator import GlobalWindowOperator
from spark_bridge.operators.join.join_operator import JoinOperator
from spark_bridge.operators.limit.limit_operator import LimitOperator
from spark_bridge.operators.operator import Operator
from spark_bridge.operators.scalar_subquery.scalar_subquery_operator import ScalarSubqueryOperator
from spark_bridge.operators.temporal_filter.temporal_filter_operator import TemporalFilterOperator
from spark_bridge.operators.window.window_operator import WindowOperator
from spark_bridge.plans.operator_plan import OperatorPlan

OPERATORS: tuple[type[Operator[Any]], ...] = (
    # An operator may be of several kinds, as a join with one row with a condition on the time: the first one cuts it.
    ScalarSubqueryOperator,
    TemporalFilterOperator,
    GlobalWindowOperator,
    LimitOperator,
    WindowOperator,
    JoinOperator,
)


class Operators:
    """One instance of each operator."""

    def __init__(self) -> None:
        self._by_plan: dict[type[OperatorPlan], Operator[Any]] = {each.plan_type: each() for each in OPERATORS}

    def of(self, plan: OperatorPlan) -> Operator[Any]:
        """The operator of a plan."""
        return self._by_plan[type(plan)]

    def cut(self, cut: Cut, plan: Plan) -> Plan | None:
        """See `Operator.cut`; None if no operator is at the top of the plan."""
        leaves = (each.cut(cut, plan) for each in self._by_plan.values())
        return next((leaf for leaf in leaves if leaf is not None), None)

    @property
    def inner_rows(self) -> Iterator[InnerRows]:
        """The descriptions of the rows of internal views, of all operators."""
        for each in reversed(OPERATORS):
            yield from each.inner_rows

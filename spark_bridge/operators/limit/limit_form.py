"""Limits with an ORDER BY in the form in which they are maintained: in a total order."""

from __future__ import annotations

from collections.abc import Sequence

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.logical_plans import LogicalPlans
from spark_bridge.engine.catalyst.trees import Expression, Plan, Trees, parts_of, simple_name
from spark_bridge.operators.scalar_subquery.single_values import SingleRows
from spark_bridge.plans.operators import refuse, refuse_operator
from spark_bridge.plans.total_order import is_ordered

_MOST_FIRST_ROWS = 10_000
_LIMITS = frozenset({"GlobalLimit", "LocalLimit", "Offset"})


def has_limit(trees: Trees, plan: Plan) -> bool:
    """Whether a plan has a limit or an offset."""
    return any(map(is_limit, parts_of(trees, plan)))


def is_limit(plan: Plan) -> bool:
    """Whether an operator is a limit or an offset."""
    return simple_name(plan) in _LIMITS


def keeps_any_row(plan: Plan) -> bool:
    """Whether an operator is a limit without an order that keeps a row, if there is one."""
    if simple_name(plan) not in ("GlobalLimit", "LocalLimit") or is_ordered(plan):
        return False
    number = plan.limitExpr()
    return simple_name(number) == "Literal" and int(number.value()) > 0


def drops_nothing(plans: LogicalPlans, plan: Plan) -> bool:
    """Whether an operator is a limit above one row at most, which it keeps."""
    return keeps_any_row(plan) and SingleRows(plans).has_one(plan.child())


class LimitForm:
    """Limits and offsets over sorted rows, with projections between them.

    Attributes:
        operators: the limits, offsets and projections, from the top down.
        projections: those between, from the top down.
        order: that of the rows.
        below: the plan below the sort.
        skipped: the number of first rows that are left out.
        end: the number of first rows, with those that are left out; None for all.
        sort: the operator that sorts the rows.

    Args:
        view: the name of the view, for messages.
        top: the upper limit or offset.

    Raises:
        NotIncrementalError: the rows have no order.
    """

    def __init__(self, catalyst: Catalyst, view: str, top: Plan) -> None:
        self._catalyst, self._view = catalyst, view
        self.operators, part = list[Plan](), top
        while simple_name(part) == "Project" or is_limit(part):
            self.operators.append(part)
            part = part.child()
        self.projections = [each for each in self.operators if not is_limit(each)]
        if simple_name(part) != "Sort" or not getattr(part, "global")():
            raise refuse_operator(view, top)
        self.sort: Plan = part
        self.order: list[Expression] = catalyst.trees.items(part.order())
        self.below: Plan = part.child()
        self.skipped, end = 0, None
        for each in reversed(self.operators):
            match simple_name(each):
                case "Offset":
                    self.skipped += self._number(each.offsetExpr())
                case "GlobalLimit":
                    later = self.skipped + self._number(each.limitExpr())
                    end = later if end is None else min(end, later)
        self.skipped, self.end = self.skipped if end is None else min(self.skipped, end), end

    @property
    def are_few(self) -> bool:
        """Whether the first rows are few, so that they are kept."""
        return self.end is not None and self.end <= _MOST_FIRST_ROWS

    def positions(self, leaf: Plan, rows: Sequence[Expression]) -> Plan:
        """The numbers of rows, in the order of the rows; of rows that tie, the least number comes first.

        Args:
            leaf: the rows, with their numbers in the last column.
            rows: its columns, without the number, under the names and ids that the order uses.
        """
        catalyst = self._catalyst
        number = catalyst.trees.items(leaf.output())[-1]
        order = [*self.order, catalyst.expressions.ascending(number)]
        in_order = catalyst.plans.sort(order, catalyst.plans.project([*rows, number], leaf), of_partitions=True)
        return catalyst.queries.analyse(catalyst.plans.project([number], in_order))

    def whole(self, leaf: Plan, rows: Sequence[Expression], names: Sequence[str]) -> Plan:
        """All rows in their order, as tasks compute them.

        Args:
            rows: its columns, under the names and ids that the order uses.
            names: of the columns of the result.
        """
        catalyst = self._catalyst
        in_order = catalyst.plans.sort(self.order, catalyst.plans.project(rows, leaf))
        columns = catalyst.trees.items(in_order.output())
        return catalyst.queries.analyse(
            catalyst.plans.project(map(catalyst.expressions.alias, columns, names), in_order)
        )

    def all_at_once(self, leaf: Plan, rows: Sequence[Expression], names: Sequence[str]) -> Plan:
        """The limits over all rows.  Arguments as for `whole`; the result has the columns of the upper operator."""
        catalyst = self._catalyst
        plan = catalyst.plans.sort(self.order, catalyst.plans.project(rows, leaf))
        for each in reversed(self.operators):
            plan = catalyst.trees.with_children(each, [plan])
        columns = catalyst.trees.items(plan.output())
        return catalyst.queries.analyse(catalyst.plans.project(map(catalyst.expressions.alias, columns, names), plan))

    def _number(self, expression: Expression) -> int:
        if simple_name(expression) != "Literal":
            raise refuse(self._view, f"a limit of {expression.sql()} rows", "write a number")
        return int(expression.value())

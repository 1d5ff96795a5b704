"""The plain form of an analysed plan: without names of relations, and with named leaves."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Expression, Plan, Trees, attribute_id, parts_of, simple_name
from spark_bridge.operators.group.aggregate_functions import with_plain_pivot
from spark_bridge.operators.join.joined_form import (
    with_joins,
)
from spark_bridge.operators.limit.limit_form import drops_nothing, keeps_any_row
from spark_bridge.operators.scalar_subquery.single_values import (
    existence,
    is_existence,
    is_single_value,
)
from spark_bridge.operators.window.session_windows import with_sessions
from spark_bridge.plans.operators import (
    PLACES_ROWS,
    refuse_operator,
)
from spark_bridge.query.declared_view import DeclaredView
from spark_bridge.query.spark_analysis import LEAVES


class PlainForm:
    """Makes plans plain.

    Attributes:
        leaves: id of a leaf's first attribute → the source or the view of the leaf, for all plans given to `of`.

    Args:
        expanded: the views whose definitions take the place of their names.
        stored: the views whose stored rows are read.
    """

    def __init__(
        self, catalyst: Catalyst, declared: DeclaredView, expanded: Collection[str], stored: Collection[str]
    ) -> None:
        self._catalyst, self._trees, self._declared = catalyst, catalyst.trees, declared
        self._expanded, self._stored = expanded, stored
        self.leaves: dict[int, str] = {}

    def of(self, plan: Plan) -> Plan:
        """The plan without aliases of relations, with the definitions of views in place of their names.

        It also omits operators that keep the rows of their child.

        Stores the leaf of each source and of each parent in `leaves`.

        Args:
            plan: analysed.
        """
        kind = simple_name(plan)
        children = self._trees.items(plan.children())
        if kind == "View" and plan.isTempView():
            name = str(plan.desc().identifier().table())
            leaf = children[0]
            if name in self._stored or (name in self._declared.schemas and simple_name(leaf) in LEAVES):
                self.leaves[attribute_id(leaf.output().apply(0))] = name
                return self._catalyst.rows.local_relation(leaf.output())
            if name in self._expanded or name in self._declared.keys:
                return self.of(leaf)
        if kind == "SubqueryAlias" or self._keeps_rows(kind, plan):
            return self.of(children[0])
        if not children:
            return plan
        plan = self._trees.with_children(plan, map(self.of, children))
        if self._drops_duplicates(plan):
            plan = self._catalyst.plans.without_duplicates(plan)
        if simple_name(plan) == "Aggregate":
            plan = with_plain_pivot(self._catalyst, plan)
            # A view that shows closed sessions puts them together itself.
            plan = plan if self._declared.definition.emit is not None else with_sessions(self._catalyst, plan)
        return plan

    def with_plain_values(self, plan: Plan) -> Plan:
        """The plan in which the plans of subqueries of one value are plain, too."""
        catalyst = self._catalyst
        if not catalyst.trees.may_have(plan, "PLAN_EXPRESSION"):
            return plan
        children = catalyst.trees.items(plan.children())
        if children:
            plan = catalyst.trees.with_children(plan, map(self.with_plain_values, children))
        if not plan.subqueries().size():
            return plan

        def plain(expression: Expression) -> Expression | None:
            if not is_single_value(expression) and not is_existence(expression):
                return None
            rows = expression.plan()
            while is_existence(expression) and keeps_any_row(rows):
                rows = rows.child()
            below = self.of(with_joins(catalyst, rows))
            below = self.with_plain_values(below)
            return existence(catalyst, below) if is_existence(expression) else expression.withNewPlan(below)

        return catalyst.plans.with_expressions(plan, lambda each: catalyst.trees.rewrite(each, plain)) or plan

    def _keeps_rows(self, kind: str, plan: Plan) -> bool:
        """True if an operator keeps the rows of its child: it moves or sorts them, or limits a child of one row."""
        match kind:
            case "Sort":
                return not getattr(plan, "global")()
            case "GlobalLimit" | "LocalLimit":
                return drops_nothing(self._catalyst.plans, plan)
            case _:
                return kind in PLACES_ROWS

    def _drops_duplicates(self, plan: Plan) -> bool:
        """True if an operator only removes duplicate rows."""
        if simple_name(plan) == "Deduplicate":
            return {attribute_id(each) for each in self._trees.items(plan.keys())} == {
                attribute_id(each) for each in self._trees.items(plan.child().output())
            }
        return simple_name(plan) == "Distinct"


def leaves_used(trees: Trees, plan: Plan, leaves: Mapping[int, str]) -> tuple[str, ...]:
    """The sources and the views whose rows a plan reads, in the order of their first use."""
    ends = (part for part in parts_of(trees, plan) if not part.children().size())
    names = (leaves.get(attribute_id(leaf.output().apply(0))) for leaf in ends)
    return tuple(dict.fromkeys(name for name in names if name is not None))


def require_own_leaves(trees: Trees, view: str, plan: Plan, leaves: Mapping[int, str]) -> None:
    """Refuses rows that are neither of a source nor of a view."""
    for leaf in trees.leaves(plan):
        output = trees.items(leaf.output())
        if not output or attribute_id(output[0]) not in leaves:
            raise refuse_operator(view, leaf)

"""A query with its joins in the form in which they are maintained, by rules of Spark's own optimizer.

EXISTS, IN and correlated subqueries, INTERSECT and EXCEPT become joins.  A condition in WHERE becomes that of its join,
and each side of a join keeps the columns and the rows that the query uses.
"""

from __future__ import annotations

from spark_bridge.catalyst.catalyst import Catalyst, Plan, parts_of, simple_name

_TO_JOINS = (
    "EliminateResolvedHint",
    "ReplaceIntersectWithSemiJoin",
    "ReplaceExceptWithAntiJoin",
    "PullupCorrelatedPredicates",
    "RewritePredicateSubquery",
    "RewriteCorrelatedScalarSubquery",
    "RewriteLateralSubquery",
)
_TO_SIDES = ("ReorderJoin", "PushDownPredicates")
_MOST_TURNS = 100


def with_joins(catalyst: Catalyst, plan: Plan) -> Plan:
    """An analysed plan whose subqueries are joins; the same plan if there is no join."""
    joined = plan
    for rule in _TO_JOINS:
        joined = catalyst.optimized(rule, joined)
    return joined if has_join(catalyst, joined) else plan


def with_narrow_sides(catalyst: Catalyst, plan: Plan) -> Plan:
    """A plan without names of relations, in which each side of a join has what the query uses."""
    for _ in range(_MOST_TURNS):
        before = plan
        for rule in _TO_SIDES:
            plan = catalyst.optimized(rule, plan)
        if plan.fastEquals(before):
            break
    return catalyst.prune_columns(plan)


def without_order(catalyst: Catalyst, plan: Plan) -> Plan:
    """A plan without the sort of its whole result; the same plan if it has none."""
    match simple_name(plan):
        case "Sort" if getattr(plan, "global")():
            return plan.child()
        case "Project":
            below = plan.child()
            child = without_order(catalyst, below)
            return plan if child is below else catalyst.with_children(plan, [child])
        case _:
            return plan


def has_join(catalyst: Catalyst, plan: Plan) -> bool:
    """Whether a plan has a join."""
    return any(simple_name(part) == "Join" for part in parts_of(catalyst, plan))

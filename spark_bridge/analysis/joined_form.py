"""A query with its joins in the form in which they are maintained, by rules of Spark's own optimizer.

EXISTS, IN and correlated subqueries, INTERSECT and EXCEPT become joins.  A condition in WHERE becomes that of its join,
and each side of a join keeps the columns and the rows that the query uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spark_bridge.catalyst.catalyst import Catalyst, Plan, parts_of, simple_name

_WITHOUT_SETS = ("EliminateResolvedHint", "ReplaceIntersectWithSemiJoin", "ReplaceExceptWithAntiJoin")
_WITHOUT_PREDICATES = ("PullupCorrelatedPredicates", "RewritePredicateSubquery")
_WITHOUT_SUBQUERIES = (*_WITHOUT_PREDICATES, "RewriteCorrelatedScalarSubquery", "RewriteLateralSubquery")
_TO_SIDES = ("ReorderJoin", "PushDownPredicates")
_MOST_TURNS = 100


def with_joins(catalyst: Catalyst, plan: Plan) -> Plan:
    """An analysed plan whose subqueries are joins; the same plan if there is no join."""
    joined = _settled(catalyst, plan, _WITHOUT_SETS)
    # The plan of EXISTS or IN, when it is in a join, may have subqueries, whose conditions must leave them first.
    joined = _settled(catalyst, joined, _WITHOUT_PREDICATES)
    joined = _settled(catalyst, joined, _WITHOUT_SUBQUERIES)
    return joined if has_join(catalyst, joined) else plan


def with_narrow_sides(catalyst: Catalyst, plan: Plan) -> Plan:
    """A plan without names of relations, in which each side of a join has what the query uses."""
    plan = _settled(catalyst, plan, _TO_SIDES)
    if any(catalyst.equal_keys(join) is None for join in _joins(catalyst, plan)):
        # An equality may be in each alternative of an OR.
        plan = _settled(catalyst, catalyst.optimized("BooleanSimplification", plan), _TO_SIDES)
    return catalyst.prune_columns(plan)


def _settled(catalyst: Catalyst, plan: Plan, rules: Sequence[str]) -> Plan:
    """The plan after these rules, one after the other until none changes it."""
    for _ in range(_MOST_TURNS):
        before = plan
        for rule in rules:
            plan = catalyst.optimized(rule, plan)
        if plan.fastEquals(before):
            break
    return plan


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
    return any(True for _ in _joins(catalyst, plan))


def _joins(catalyst: Catalyst, plan: Plan) -> Iterator[Plan]:
    return (part for part in parts_of(catalyst, plan) if simple_name(part) == "Join")

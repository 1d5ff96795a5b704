"""A query with its joins in the form in which they are maintained, by rules of Spark's own optimizer.

EXISTS, IN and correlated subqueries, INTERSECT and EXCEPT become joins; INTERSECT ALL and EXCEPT ALL become
aggregations. A condition in WHERE becomes a join condition. Each side of a join keeps only the columns and the rows
that the query uses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.queries import Queries
from spark_bridge.engine.catalyst.trees import Plan, Trees, attribute_id, join_type, parts_of, simple_name

_WITHOUT_SETS = (
    "EliminateResolvedHint",
    "RewriteIntersectAll",
    "RewriteExceptAll",
    "ReplaceIntersectWithSemiJoin",
    "ReplaceExceptWithAntiJoin",
)
_SETS = frozenset({"Intersect", "Except"})
_WITHOUT_PREDICATES = ("PullupCorrelatedPredicates", "RewritePredicateSubquery", *_WITHOUT_SETS)
_WITHOUT_SUBQUERIES = (*_WITHOUT_PREDICATES, "RewriteCorrelatedScalarSubquery", "RewriteLateralSubquery")
_TO_SIDES = ("ReorderJoin", "PushDownPredicates")
_MOST_TURNS = 100


def with_joins(catalyst: Catalyst, plan: Plan) -> Plan:
    """An analysed plan whose subqueries are joins, without operators on sets; the same plan if it has none of these."""
    joined = _settled(catalyst.queries, plan, _WITHOUT_SETS)
    # The plan of EXISTS or IN, when it is in a join, may have subqueries, whose conditions must leave them first.
    joined = _settled(catalyst.queries, joined, _WITHOUT_PREDICATES)
    joined = _settled(catalyst.queries, joined, _WITHOUT_SUBQUERIES)
    has_sets = any(simple_name(part) in _SETS for part in parts_of(catalyst.trees, plan))
    return joined if has_sets or has_join(catalyst.trees, joined) else plan


def with_narrow_sides(catalyst: Catalyst, plan: Plan) -> Plan:
    """A plan without names of relations, in which each side of a join has what the query uses."""
    plan = _settled(catalyst.queries, plan, _TO_SIDES)
    if _lacks_keys(catalyst, plan):
        # An equality may be in each alternative of an OR.
        plan = _settled(catalyst.queries, catalyst.queries.optimized("BooleanSimplification", plan), _TO_SIDES)
    return catalyst.queries.prune_columns(plan)


def without_unused(catalyst: Catalyst, plan: Plan) -> Plan:
    """A plan without columns that nothing uses, whose sides can still become narrow.

    `FROM a, b, c` may first join rows that no condition is about.  The rule that puts other rows first sees only joins
    that stand right above one another, so it goes before the projections of columns where it is needed.
    """
    pruned = catalyst.queries.prune_columns(plan)
    needs_order = _lacks_keys(catalyst, pruned) and _lacks_keys(catalyst, with_narrow_sides(catalyst, pruned))
    return with_narrow_sides(catalyst, plan) if needs_order else pruned


def _lacks_keys(catalyst: Catalyst, plan: Plan) -> bool:
    return any(catalyst.plans.equal_keys(join) is None for join in _joins(catalyst.trees, plan))


def _settled(queries: Queries, plan: Plan, rules: Sequence[str]) -> Plan:
    """The plan after these rules, one after the other until none changes it."""
    for _ in range(_MOST_TURNS):
        before = plan
        for rule in rules:
            plan = queries.optimized(rule, plan)
        if plan.fastEquals(before):
            break
    return plan


def without_constant_sides(catalyst: Catalyst, plan: Plan, sources: Collection[int]) -> Plan:
    """A plan in which a join with constant rows (`VALUES`) is an operator over the rows of its other side.

    Args:
        plan: with narrow sides.
        sources: ids of the first attributes of the leaves that are sources or views.
    """
    children = catalyst.trees.items(plan.children())
    if not children:
        return plan
    plan = catalyst.trees.with_children(plan, [without_constant_sides(catalyst, each, sources) for each in children])
    if simple_name(plan) != "Join":
        return plan
    left, right = (_constant(catalyst, side, sources) for side in (plan.left(), plan.right()))
    kind = join_type(plan)
    if right is not None:
        return _beside(catalyst, plan, kind, plan.left(), right)
    if left is not None and kind in ("Inner", "Cross"):
        return _beside(catalyst, plan, kind, plan.right(), left)
    return plan


def _constant(catalyst: Catalyst, side: Plan, sources: Collection[int]) -> Plan | None:
    """A side as a LocalRelation, if its rows are constant; None otherwise."""
    for leaf in catalyst.trees.leaves(side):
        if simple_name(leaf) != "LocalRelation" or attribute_id(leaf.output().apply(0)) in sources:
            return None
    folded = _settled(catalyst.queries, side, ("ConvertToLocalRelation",))
    return folded if simple_name(folded) == "LocalRelation" else None


def _beside(catalyst: Catalyst, join: Plan, kind: str, rows: Plan, constant: Plan) -> Plan:
    """A join of rows with constant ones; the same join if it also has constant rows alone."""
    array = catalyst.expressions.array_of(constant)
    if join.condition().isDefined():
        array = catalyst.expressions.fulfilling(array, constant.output(), join.condition().get())
    has_partner = catalyst.expressions.classes.GreaterThan(
        catalyst.expressions.classes.Size(array, False), catalyst.expressions.number(0)
    )
    columns = catalyst.trees.items(join.output())
    match kind:
        case "Inner" | "Cross" | "LeftOuter":
            output = catalyst.scala.seq(each.withNullability(True) for each in catalyst.trees.items(constant.output()))
            return catalyst.plans.project(
                columns, catalyst.plans.inline(array, output, rows, outer=kind == "LeftOuter")
            )
        case "LeftSemi":
            return catalyst.plans.filter(has_partner, rows)
        case "LeftAnti":
            return catalyst.plans.filter(catalyst.expressions.classes.Not(has_partner), rows)
        case "ExistenceJoin":
            return catalyst.plans.project(
                [*columns[:-1], catalyst.expressions.alias_as(has_partner, columns[-1])], rows
            )
        case _:
            return join


def without_order(trees: Trees, plan: Plan) -> Plan:
    """A plan without the sort of its whole result; the same plan if it has none."""
    match simple_name(plan):
        case "Sort" if getattr(plan, "global")():
            return plan.child()
        case "Project":
            below = plan.child()
            child = without_order(trees, below)
            return plan if child is below else trees.with_children(plan, [child])
        case _:
            return plan


def has_join(trees: Trees, plan: Plan) -> bool:
    """Whether a plan has a join."""
    return any(True for _ in _joins(trees, plan))


def _joins(trees: Trees, plan: Plan) -> Iterator[Plan]:
    return (part for part in parts_of(trees, plan) if simple_name(part) == "Join")

"""The cut of a join out of a query.

Join                           Filter             the condition, if only rows with a partner are in the result
  rows of a        ──→           Project          the columns under the names that the query uses
  rows of b                        a leaf         pairs of rows, which nobody stores: see `JoinPlan`
                   and         Project            the columns of one side, and the hash of its key; and so the other
                                 rows of a
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from spark_bridge.changes.joined_positions import JoinKind
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.column_origin import column_origin
from spark_bridge.engine.catalyst.expressions import Expressions
from spark_bridge.engine.catalyst.trees import (
    Expression,
    Plan,
    Trees,
    attribute_id,
    is_attribute,
    join_type,
    simple_name,
)
from spark_bridge.operators.cut import Cut, InnerRows, InnerView, unique_names
from spark_bridge.operators.join.join_plan import LEFT, RIGHT, Between, JoinPlan
from spark_bridge.operators.join.time_bounds import time_bounds
from spark_bridge.plans.expiry import EventTime
from spark_bridge.plans.operators import refuse
from spark_bridge.plans.plan_text import identity_text
from state.tables.stored_rows import JOIN_FIELD

SIDES = InnerRows("the rows that it joins", "a join whose rows")

_KINDS: Mapping[str, tuple[JoinKind, str]] = {
    "Inner": ("inner", "inner"),
    "Cross": ("inner", "cross"),
    "LeftOuter": ("left", "left"),
    "RightOuter": ("left", "right"),
    "LeftSemi": ("semi", "semi"),
    "LeftAnti": ("anti", "anti"),
    "ExistenceJoin": ("existence", "existence"),
    "FullOuter": ("full", "full"),
}
"""Spark's type of a join -> what its rows are, and its name for people."""


def cut_join(cut: Cut, plan: Plan) -> Plan | None:
    """A join as a leaf, below the condition of an inner join, over two internal views with the rows of its sides."""
    if simple_name(plan) != "Join":
        return None
    catalyst = cut.catalyst
    plan = catalyst.trees.with_children(plan, [cut.below(child) for child in catalyst.trees.items(plan.children())])
    cut.check.check(plan, is_of_rows=True)
    found = catalyst.plans.equal_keys(plan)
    if found is None:
        raise _without_keys(cut.view, plan)
    sides = {LEFT: plan.left(), RIGHT: plan.right()}
    name = join_type(plan)
    kind, text = _KINDS[name]
    inner = {
        side: cut.inner(sides[side], [_hash(catalyst.expressions, keys)], SIDES)
        for side, keys in zip(sides, found, strict=True)
    }
    keys = found[0]
    if name == "RightOuter":
        keys = found[1]
        sides, inner = {LEFT: sides[RIGHT], RIGHT: sides[LEFT]}, {LEFT: inner[RIGHT], RIGHT: inner[LEFT]}
    columns = catalyst.trees.items(plan.output())
    names = unique_names(str(each.name()) for each in columns)
    joined, leaves = _over_leaves(cut, plan, sides, inner)
    named = catalyst.plans.project(map(catalyst.expressions.alias, columns, names), joined)
    stored = _stored(catalyst.trees, sides, inner)
    condition, used = _condition(catalyst, plan.condition().get(), stored)
    identity = identity_text(catalyst.trees, named, {key: inner[side].name for key, side in leaves.items()}, "", [])
    join = JoinPlan(
        name=cut.next_name("join"),
        kind=kind,
        left=inner[LEFT].name,
        right=inner[RIGHT].name,
        columns=tuple(
            (name, *stored.get(attribute_id(each), (LEFT, None))) for name, each in zip(names, columns, strict=True)
        ),
        key=tuple(stored[attribute_id(key)][1] for key in keys if is_attribute(key)),
        identity=identity,
        text=text,
        plan=catalyst.queries.analyse(named),
        leaves=leaves,
        condition=condition,
        condition_columns=used,
        between=_between(cut, plan.condition().get(), sides, stored) if cut.event_times else None,
    )
    leaf = cut.add(join, catalyst.trees.items(named.output()))
    rows = cut.under_columns(plan, leaf)
    return catalyst.plans.filter(plan.condition().get(), rows) if join.kind == "inner" else rows


def _over_leaves(
    cut: Cut, plan: Plan, sides: Mapping[str, Plan], inner: Mapping[str, InnerView]
) -> tuple[Plan, dict[int, str]]:
    """A join over a leaf for each side, and the sides of the leaves.

    Args:
        sides: side → its rows.
        inner: side → the internal view with its rows.
    """
    catalyst, leaves, children = cut.catalyst, dict[int, str](), list[Plan]()
    for side, rows in sides.items():
        output = catalyst.trees.items(catalyst.rows.local_relation(inner[side].plan.output()).newInstance().output())[
            :-1
        ]
        leaves[attribute_id(output[0])] = side
        children.append(cut.under_columns(rows, catalyst.rows.local_relation(catalyst.scala.seq(output))))
    is_right = join_type(plan) == "RightOuter"
    kind = catalyst.scala.singleton("catalyst.plans.LeftOuter") if is_right else plan.joinType()
    return catalyst.plans.join_of(kind, children[0], children[1], plan.condition().get()), leaves


def _condition(
    catalyst: Catalyst, condition: Expression, stored: Mapping[int, tuple[str, str]]
) -> tuple[Plan, tuple[tuple[str, str], ...]]:
    """The query that computes a condition over one leaf, and the side and the column of each column of the leaf."""
    used = catalyst.trees.items(condition.references().toSeq())
    leaf = catalyst.rows.local_relation(catalyst.scala.seq(each.withName(f"c{at}") for at, each in enumerate(used)))
    query = catalyst.queries.analyse(
        catalyst.plans.project([catalyst.expressions.alias(condition, "are_partners")], leaf)
    )
    return query, tuple(stored[attribute_id(each)] for each in used)


def _between(
    cut: Cut, condition: Expression, sides: Mapping[str, Plan], stored: Mapping[int, tuple[str, str]]
) -> Between | None:
    """The bounds of a condition for the event times of both sides; None unless it has two."""
    times = {
        number: EventTime(origin[0], column)
        for number, (side, column) in stored.items()
        if (origin := column_origin(cut.catalyst.trees, sides[side], number, cut.leaves)) is not None
        and cut.event_times.get(origin[0]) == origin[1]
    }
    most: dict[tuple[int, int], int] = {}
    for each in time_bounds(cut.catalyst.trees, condition):
        pair = each.later, each.earlier
        if times.keys() >= {*pair}:
            most[pair] = min(each.most_us, most.get(pair, each.most_us))
    for (later, earlier), us in most.items():
        if (stored[later][0], stored[earlier][0]) == (RIGHT, LEFT) and (earlier, later) in most:
            return Between(times[earlier], times[later], -most[earlier, later], us)
    return None


def _hash(expressions: Expressions, keys: Sequence[Expression]) -> Expression:
    """The column `__sw_join`; a null among the keys has no partner."""
    hashed = expressions.hash_of(keys)
    if nullable := [expressions.classes.IsNull(key) for key in keys if key.nullable()]:
        hashed = expressions.when(reduce(expressions.classes.Or, nullable), expressions.null(hashed.dataType()), hashed)
    return expressions.alias(hashed, JOIN_FIELD.name)


def _stored(trees: Trees, sides: Mapping[str, Plan], inner: Mapping[str, InnerView]) -> dict[int, tuple[str, str]]:
    """Id of each attribute of the sides of a join → the side, and the column of its internal view."""
    items = trees.items
    return {
        attribute_id(column): (side, str(stored.name()))
        for side, rows in sides.items()
        for column, stored in zip(items(rows.output()), items(inner[side].plan.output()), strict=False)
    }


def _without_keys(view: str, plan: Plan) -> Exception:
    kind = _KINDS[join_type(plan)][1]
    if plan.condition().isEmpty():
        return refuse(view, f"a join ({kind}) without a condition", "join by equal columns, as in ON a.id = b.id")
    if "isnull" in str(plan.condition().get()).lower() and kind in ("anti", "existence"):
        return refuse(view, "NOT IN over values that may be null", "write NOT EXISTS, which ignores nulls")
    return refuse(
        view,
        f"a join ({kind}) on {plan.condition().get().sql()}, without equal columns",
        "add an equality to its condition, as in ON a.id = b.id AND a.at < b.until",
    )

"""The cut of window functions out of a query.

Window                         Project            the columns under the names that the query uses
  rows             ──→           a leaf           the rows of the window, which nobody stores: see `WindowPlan`
                   and         Project            the columns of the rows, and the hash of their PARTITION BY
                                 rows
"""

from __future__ import annotations

from spark_bridge.engine.catalyst.trees import Plan, attribute_id, is_attribute, simple_name
from spark_bridge.operators.cut import Cut, InnerRows, leaf_with, unique_names
from spark_bridge.operators.global_window.all_rows_cut import cut_all_rows
from spark_bridge.operators.window.window_form import WindowForm, is_by_key
from spark_bridge.operators.window.window_plan import WindowPlan
from spark_bridge.plans.operator_plan import ROWS
from spark_bridge.plans.operators import refuse
from spark_bridge.plans.plan_text import identity_text
from state.tables.stored_rows import JOIN_FIELD, WEIGHT_FIELD

KEYS = InnerRows("the rows of each key", "a window whose rows")


def cut_window(cut: Cut, plan: Plan) -> Plan | None:
    """Windows over the rows of the same keys, or over all rows, as one leaf."""
    if simple_name(plan) != "Window":
        return None
    catalyst, form = cut.catalyst, WindowForm(cut.catalyst, cut.view, plan)
    for each in form.operators:
        cut.check.check(each)
    if form.has_python:
        raise refuse(cut.view, "a Python function over a window", "take one of Spark's functions")
    if not is_by_key(catalyst.trees, plan):
        return cut_all_rows(cut, plan, form.below, form.whole, "a window", f"{form.text} over all rows")
    columns = catalyst.trees.items(plan.output())
    cut.require_values(columns, "a window")
    below = cut.below(form.below)
    inner = cut.inner(
        below, [catalyst.expressions.alias(catalyst.expressions.hash_of(form.keys), JOIN_FIELD.name)], KEYS
    )
    kept = catalyst.trees.items(inner.plan.output())[:-1]
    stored = {
        attribute_id(column): str(each.name())
        for column, each in zip(catalyst.trees.items(below.output()), kept, strict=True)
    }
    names = unique_names(str(each.name()) for each in columns)
    leaf, apart = (
        leaf_with(catalyst, kept, WEIGHT_FIELD),
        catalyst.rows.local_relation(catalyst.scala.seq(kept)).newInstance(),
    )
    touched = form.touched(leaf, cut.renamed(below, leaf), names)
    whole = form.whole(apart, cut.renamed(below, apart), names)
    leaves = {attribute_id(each.output().apply(0)): ROWS for each in (leaf, apart)}
    window = WindowPlan(
        name=cut.next_name("window"),
        rows=inner.name,
        columns=tuple((name, stored.get(attribute_id(each))) for name, each in zip(names, columns, strict=True)),
        key=frozenset(stored[attribute_id(each)] for each in form.keys if is_attribute(each)),
        identity=identity_text(catalyst.trees, touched, dict.fromkeys(leaves, inner.name), "", []),
        text=f"{form.text} by {', '.join(str(each.name()) for each in form.keys if is_attribute(each))}",
        query=touched,
        schema=catalyst.schemas.arrow_schema(touched),
        whole=whole,
        leaves=leaves,
    )
    rows = cut.add(window, catalyst.trees.items(whole.output()))
    return cut.under_columns(plan, rows)

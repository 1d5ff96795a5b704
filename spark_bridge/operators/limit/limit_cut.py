"""The cut of a limit out of a query.

GlobalLimit                    Project            the columns under the names that the query uses
  Sort           ──→             a leaf           the first rows, which nobody stores: see `LimitPlan`
    rows         and         Project              the columns of the rows
                               rows
"""

from __future__ import annotations

from spark_bridge.engine.catalyst.trees import Plan, attribute_id
from spark_bridge.operators.cut import Cut, InnerRows, leaf_with
from spark_bridge.operators.global_window.all_rows_cut import cut_all_rows
from spark_bridge.operators.limit.limit_form import LimitForm, is_limit
from spark_bridge.operators.limit.limit_plan import POSITION_FIELD, LimitPlan
from spark_bridge.plans.operator_plan import ROWS
from spark_bridge.plans.operators import has_python, refuse
from spark_bridge.plans.plan_text import identity_text

ORDER = InnerRows("the rows that it takes the first of", "a limit whose rows")


def cut_limit(cut: Cut, plan: Plan) -> Plan | None:
    """The first rows in an order as a leaf, under the projections of the query."""
    if not is_limit(plan):
        return None
    catalyst, form = cut.catalyst, LimitForm(cut.catalyst, cut.view, plan)
    cut.check.check(form.sort)
    if has_python(catalyst.trees, form.order):
        raise refuse(cut.view, "a Python function in the ORDER BY of a limit", "make it a column below the limit")
    if form.end is None or not form.are_few:
        return cut_all_rows(cut, plan, form.below, form.all_at_once, "a limit", _limit_text(form))
    cut.require_values(catalyst.trees.items(form.below.output()), "a limit")
    below = cut.below(form.below)
    inner = cut.inner(below, [], ORDER)
    kept = catalyst.trees.items(inner.plan.output())
    names = [str(each.name()) for each in kept]
    leaf = leaf_with(catalyst, kept, POSITION_FIELD)
    apart = catalyst.rows.local_relation(catalyst.scala.seq(kept)).newInstance()
    positions = form.positions(leaf, cut.renamed(below, leaf))
    leaves = {attribute_id(each.output().apply(0)): ROWS for each in (leaf, apart)}
    limit = LimitPlan(
        name=cut.next_name("limit"),
        rows=inner.name,
        names=names,
        skipped=form.skipped,
        end=form.end,
        identity=identity_text(catalyst.trees, positions, dict.fromkeys(leaves, inner.name), "", []),
        query=positions,
        whole=form.whole(apart, cut.renamed(below, apart), names),
        leaves=leaves,
    )
    rows = cut.add(limit, catalyst.trees.items(limit.whole.output()))
    first = cut.under_columns(below, rows)
    for each in reversed(form.projections):
        first = catalyst.trees.with_children(each, [first])
    return first


def _limit_text(form: LimitForm) -> str:
    """A long limit, for people."""
    if form.end is None:
        return f"all rows in an order but the first {form.skipped:,}"
    return f"a limit to the first {form.end:,} rows"

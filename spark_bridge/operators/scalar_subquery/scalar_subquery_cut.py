"""The cut of rows with single values out of a query.

Filter                         a leaf             rows and values as one operator, see `ScalarSubqueryPlan`
  Join             ──→
    rows           and         Project            the columns of the rows
    one row                    rows
                   and         one row
"""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from spark_bridge.engine.catalyst.trees import Expression, Plan, Trees, attribute_id, is_attribute
from spark_bridge.operators.cut import Cut, InnerRows, unique_names
from spark_bridge.operators.scalar_subquery.scalar_subquery_form import ScalarSubqueryForm
from spark_bridge.operators.scalar_subquery.scalar_subquery_plan import AFTER, ScalarSubqueryPlan, SingleValue
from spark_bridge.operators.scalar_subquery.single_values import SingleRows
from spark_bridge.plans.operator_plan import ROWS
from spark_bridge.plans.operators import has_python, refuse
from spark_bridge.plans.plan_text import identity_text
from state.tables.stored_rows import WEIGHT_FIELD

BESIDE = InnerRows("the rows beside single values", "a subquery beside which rows")
VALUES = InnerRows("the single value", "a subquery whose value")


def cut_scalar_subquery(cut: Cut, plan: Plan) -> Plan | None:
    """Projections and filters over rows with values beside them as one leaf."""
    catalyst, items = cut.catalyst, cut.catalyst.trees.items
    single, ends = SingleRows(catalyst.plans, cut.single_leaves), partial(_has_python, catalyst.trees)
    # A projection without columns, below a count of rows, stays above the leaf.
    if not plan.output().size() or not ScalarSubqueryForm.stands_at(catalyst, single, plan, ends):
        return None
    form = ScalarSubqueryForm(catalyst, single, plan, ends)
    for each in form.operators:
        cut.check.check(each)
    columns = items(plan.output())
    cut.require_values([*columns, *items(form.below.output())], "a single value")
    below = cut.below(form.below)
    if not below.output().size():
        below = catalyst.plans.project(
            [catalyst.expressions.alias(catalyst.expressions.number(1), "one")], below
        )  # rows that are only counted
    inner = cut.inner(below, [], BESIDE)
    kept = items(inner.plan.output())
    values, beside = _single_values(cut, form)
    names = unique_names(str(each.name()) for each in columns)
    ids = [attribute_id(each) for each in (*items(below.output()), *(each for each, _ in beside))]
    apart = [each for _, each in beside]
    weight = catalyst.schemas.attributes(pa.schema([WEIGHT_FIELD]))
    later = [each.withName(f"{AFTER}{each.name()}") for each in apart]
    leaf, of_both = (
        catalyst.rows.local_relation(catalyst.scala.seq([*kept, *apart, *more])).newInstance()
        for more in (weight, later)
    )
    query = form.query(leaf, dict(zip(ids, items(leaf.output()), strict=False)), names)
    before = dict(zip(ids, items(of_both.output()), strict=False))
    after = before | dict(zip(ids[len(kept) :], items(of_both.output())[len(ids) :], strict=True))
    stored = {number: str(each.name()) for number, each in zip(ids, kept, strict=False)}
    leaves = {attribute_id(each.output().apply(0)): ROWS for each in (leaf, of_both)}
    subquery = ScalarSubqueryPlan(
        name=cut.next_name("values"),
        rows=inner.name,
        values=values,
        names=names,
        unchanged={
            column: stored[attribute_id(each)]
            for column, each in zip(names, form.columns, strict=True)
            if is_attribute(each) and attribute_id(each) in stored
        },
        identity=identity_text(catalyst.trees, query, dict.fromkeys(leaves, inner.name), "", []),
        query=query,
        schema=catalyst.schemas.arrow_schema(query),
        pairs=form.pairs(of_both, before, after, names),
        leaves=leaves,
    )
    return cut.under_columns(plan, cut.add(subquery, items(query.output())[:-1]))


def _single_values(
    cut: Cut, form: ScalarSubqueryForm
) -> tuple[tuple[SingleValue, ...], list[tuple[Expression, Expression]]]:
    """The internal views with the single values, and each column of the query with its column beside the rows."""
    items, values, beside = cut.catalyst.trees.items, list[SingleValue](), list[tuple[Expression, Expression]]()
    for each in form.values:
        if not each.plan.output().size():
            raise refuse(cut.view, "a join with one row of which no column is used", "leave it out")
        inner = cut.inner(cut.of(each.plan), [], VALUES)
        columns = list[tuple[str, str]]()
        for stored, column in zip(items(inner.plan.output()), items(each.plan.output()), strict=True):
            name = f"__sw_value_{1 + len(beside)}"
            columns.append((str(stored.name()), name))
            beside.append((column, column.withName(name).withNullability(True)))
        beside.append((each.flag, each.flag))
        values.append(SingleValue(inner.name, tuple(columns), str(each.flag.name())))
    return tuple(values), beside


def _has_python(trees: Trees, plan: Plan) -> bool:
    return has_python(trees, trees.items(plan.expressions()))

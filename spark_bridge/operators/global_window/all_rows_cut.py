"""The cut of an operator over all rows out of a query: of a window without a key, or of a long limit.

Window, without a key          a leaf             the same over all rows, see `GlobalWindowPlan`
  rows             and         Project            the columns of the rows
                                 rows
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spark_bridge.engine.catalyst.trees import Expression, Plan, attribute_id
from spark_bridge.operators.cut import Cut, InnerRows, unique_names
from spark_bridge.operators.global_window.global_window_plan import GlobalWindowPlan
from spark_bridge.plans.operator_plan import ROWS
from spark_bridge.plans.plan_text import identity_text

ALL_ROWS = InnerRows("all rows at once", "a query over all rows whose rows")

_Over = Callable[[Plan, Sequence[Expression], Sequence[str]], Plan]
"""Makes a query over a leaf: (leaf, its columns under the names and ids that the query uses, names) -> the query."""


def cut_all_rows(cut: Cut, plan: Plan, rows: Plan, over: _Over, what: str, text: str) -> Plan:
    """A query over all rows at once as one leaf.

    Args:
        rows: those below it.
        over: makes the same query over a leaf with these rows.
        what: the query, for messages.
        text: the query, for people.
    """
    catalyst, columns = cut.catalyst, cut.catalyst.trees.items(plan.output())
    cut.require_values(columns, what)
    below = cut.below(rows)
    inner = cut.inner(below, [], ALL_ROWS)
    names = unique_names(str(each.name()) for each in columns)
    leaf = catalyst.rows.local_relation(inner.plan.output()).newInstance()
    query = over(leaf, cut.renamed(below, leaf), names)
    leaves = {attribute_id(leaf.output().apply(0)): ROWS}
    window = GlobalWindowPlan(
        name=cut.next_name("all"),
        rows=inner.name,
        names=names,
        text=text,
        identity=identity_text(catalyst.trees, query, dict.fromkeys(leaves, inner.name), "", []),
        query=query,
        schema=catalyst.schemas.arrow_schema(query),
        leaves=leaves,
    )
    result = cut.add(window, catalyst.trees.items(query.output()))
    return cut.under_columns(plan, result)

"""The hidden column of an append view with the origin of each row: its file, or its row of a parent."""

from __future__ import annotations

import pyarrow as pa

from spark_bridge.catalyst.catalyst import Catalyst, Expression, Plan, simple_name


def with_origin_column(catalyst: Catalyst, plan: Plan, origin: pa.Field) -> Plan:
    """A row-by-row plan with the column at the end of its leaves and of its result.

    Args:
        catalyst: of the session.
        plan: the analysed plan without the column.
        origin: the column.
    """
    return catalyst.analyse(_with_origin_last(catalyst, plan, pa.schema([origin])))


def _with_origin_last(catalyst: Catalyst, plan: Plan, origin: pa.Schema) -> Plan:
    carrying, file = _carried(catalyst, plan, origin)
    return catalyst.project([*catalyst.items(plan.output()), file], carrying)


def _carried(catalyst: Catalyst, plan: Plan, origin: pa.Schema) -> tuple[Plan, Expression]:
    """The plan with the column among its output, and the column."""
    children = catalyst.items(plan.children())
    if not children:
        [file] = catalyst.attributes(origin)
        return catalyst.local_relation(catalyst.seq([*catalyst.items(plan.output()), file])), file
    if simple_name(plan) == "Union":
        # A union matches columns by position, and its own columns are those of the first child.
        united = catalyst.with_children(plan, [_with_origin_last(catalyst, child, origin) for child in children])
        return united, catalyst.items(united.output())[-1]
    child, file = _carried(catalyst, children[0], origin)
    if simple_name(plan) == "Project":
        return catalyst.project([*catalyst.items(plan.projectList()), file], child), file
    if simple_name(plan) == "Expand":
        projections = [[*catalyst.items(each), file] for each in catalyst.items(plan.projections())]
        return catalyst.expand(projections, catalyst.seq([*catalyst.items(plan.output()), file]), child), file
    return catalyst.with_children(plan, [child]), file

"""The hidden column of an append view with the file of each row; a correction finds the rows of a file by it."""

from __future__ import annotations

import pyarrow as pa

from spark_bridge.catalyst.catalyst import Catalyst, Expression, Plan, simple_name
from state.tables.stored_rows import FILE_FIELD

_FILE_SCHEMA = pa.schema([FILE_FIELD])


def with_file_column(catalyst: Catalyst, plan: Plan) -> Plan:
    """A row-by-row plan with the column at the end of its leaves and of its result.

    Args:
        catalyst: of the session.
        plan: the analysed plan without the column.
    """
    return catalyst.analyse(_with_file_last(catalyst, plan))


def _with_file_last(catalyst: Catalyst, plan: Plan) -> Plan:
    carrying, file = _carried(catalyst, plan)
    return catalyst.project([*catalyst.items(plan.output()), file], carrying)


def _carried(catalyst: Catalyst, plan: Plan) -> tuple[Plan, Expression]:
    """The plan with the column among its output, and the column."""
    children = catalyst.items(plan.children())
    if not children:
        [file] = catalyst.attributes(_FILE_SCHEMA)
        return catalyst.local_relation(catalyst.seq([*catalyst.items(plan.output()), file])), file
    if simple_name(plan) == "Union":
        # A union matches columns by position, and its own columns are those of the first child.
        united = catalyst.with_children(plan, [_with_file_last(catalyst, child) for child in children])
        return united, catalyst.items(united.output())[-1]
    child, file = _carried(catalyst, children[0])
    if simple_name(plan) == "Project":
        return catalyst.project([*catalyst.items(plan.projectList()), file], child), file
    if simple_name(plan) == "Expand":
        projections = [[*catalyst.items(each), file] for each in catalyst.items(plan.projections())]
        return catalyst.expand(projections, catalyst.seq([*catalyst.items(plan.output()), file]), child), file
    return catalyst.with_children(plan, [child]), file

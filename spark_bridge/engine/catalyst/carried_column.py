"""A hidden column that goes with each row through a projection plan: its origin, its place, or its weight."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from actors.schemas.metadata_columns import metadata_fields
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.column_origin import column_origin
from spark_bridge.engine.catalyst.trees import Expression, Plan, Trees, attribute_id, simple_name

PLACE = tuple(metadata_fields(["path", "row"]))
"""The columns that say where a row stands."""


def with_carried_column(catalyst: Catalyst, plan: Plan, field: pa.Field) -> Plan:
    """A projection plan with the column at the end of its result, and of its leaves unless they have it.

    Args:
        plan: the analysed plan without the column.
    """
    return catalyst.queries.analyse(_with_column_last(catalyst, plan, pa.schema([field])))


def with_places(catalyst: Catalyst, plan: Plan, leaves: Mapping[int, str]) -> Plan:
    """A plan with one Aggregate, over a projection plan, whose rows have their places: `_path` and `_row`.

    Args:
        plan: the analysed plan, of a source with these columns.
        leaves: id of a leaf's first attribute → the source of the leaf.
    """
    if simple_name(plan) != "Aggregate":
        return catalyst.trees.with_children(plan, [with_places(catalyst, plan.child(), leaves)])
    rows = plan.child()
    known = columns_of_leaf(catalyst.trees, rows, leaves)
    for field in PLACE:
        if field.name not in known:
            rows = with_carried_column(catalyst, rows, field)
    return catalyst.trees.with_children(plan, [rows])


def columns_of_leaf(trees: Trees, rows: Plan, leaves: Mapping[int, str]) -> dict[str, Expression]:
    """Column of the leaf of a projection plan → the attribute of the plan that has its values, if there is one.

    Arguments as for `with_places`.
    """
    output = trees.items(rows.output())
    origins = ((column_origin(trees, rows, attribute_id(each), leaves), each) for each in output)
    return {origin[1]: each for origin, each in origins if origin is not None}


def _with_column_last(catalyst: Catalyst, plan: Plan, field: pa.Schema) -> Plan:
    carrying, column = _carried(catalyst, plan, field)
    return catalyst.plans.project([*catalyst.trees.items(plan.output()), column], carrying)


def _carried(catalyst: Catalyst, plan: Plan, field: pa.Schema) -> tuple[Plan, Expression]:
    """The plan with the column among its output, and the column."""
    children = catalyst.trees.items(plan.children())
    if not children:
        output = catalyst.trees.items(plan.output())
        present = next((each for each in output if str(each.name()) == field.names[0]), None)
        if present is not None:
            return plan, present
        [column] = catalyst.schemas.attributes(field)
        return catalyst.rows.local_relation(catalyst.scala.seq([*output, column])), column
    if simple_name(plan) == "Union":
        # A union matches columns by position, and its own columns are those of the first child.
        united = catalyst.trees.with_children(plan, [_with_column_last(catalyst, child, field) for child in children])
        return united, catalyst.trees.items(united.output())[-1]
    child, column = _carried(catalyst, children[0], field)
    if simple_name(plan) == "Project":
        return catalyst.plans.project([*catalyst.trees.items(plan.projectList()), column], child), column
    if simple_name(plan) == "Expand":
        projections = [[*catalyst.trees.items(each), column] for each in catalyst.trees.items(plan.projections())]
        return catalyst.plans.expand(
            projections, catalyst.scala.seq([*catalyst.trees.items(plan.output()), column]), child
        ), column
    return catalyst.trees.with_children(plan, [child]), column

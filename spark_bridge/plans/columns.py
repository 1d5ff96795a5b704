"""The columns of a view: visible to it, used by it, and in its result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import pyarrow as pa

from actors.formats.limits import row_bytes
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Expression, Plan, Trees, attribute_id, is_attribute, simple_name
from state.tables.records import CatalogView
from state.tables.stored_rows import FILE_FIELD

_Schema = TypeVar("_Schema", pa.Schema, "pa.Schema | None")


def visible_schemas(schemas: Mapping[str, _Schema], view: CatalogView | None) -> dict[str, _Schema]:
    """The schemas of the sources as a view sees them, so that the meaning of `SELECT *` never changes.

    Args:
        schemas: source → its schema, with all columns added so far; None while it is not known.
        view: its entry in the catalog; None for a new view, which sees all columns.
    """
    visible: Mapping[str, tuple[str, ...]] = {} if view is None else view.visible
    return {
        source: pa.schema([schema.field(name) for name in visible[source]])
        if schema is not None and source in visible
        else schema
        for source, schema in schemas.items()
    }


def used_columns(catalyst: Catalyst, plan: Plan, leaves: Mapping[int, str]) -> dict[str, frozenset[str]]:
    """Source → the columns that a plan uses, by Spark's own rule for column pruning.

    Args:
        plan: analysed.
        leaves: id of a leaf's first attribute → the source of the leaf.
    """
    pruned = catalyst.queries.prune_columns(plan)
    wanted = {attribute_id(column) for column in catalyst.trees.items(pruned.output())}
    outputs: dict[str, list[tuple[int, str]]] = {}
    plans = [pruned]
    while plans:
        each = plans.pop()
        children = catalyst.trees.items(each.children())
        plans += children
        columns = each.references().toSeq() if children else each.output()
        ids = [attribute_id(column) for column in catalyst.trees.items(columns)]
        if children:
            wanted.update(ids)
        else:
            names = [str(column.name()) for column in catalyst.trees.items(columns)]
            outputs.setdefault(leaves[ids[0]], []).extend(zip(ids, names, strict=True))
    return {
        source: frozenset(name for number, name in columns if number in wanted) for source, columns in outputs.items()
    }


def columns_to_read(schema: pa.Schema, used: Iterable[frozenset[str]]) -> tuple[str, ...]:
    """The columns of a source that its views use together; the cheapest column if they only count rows.

    Args:
        schema: of the source, with or without `__sw_file`.
        used: the used columns of each view.
    """
    wanted = frozenset[str]().union(*used)
    if not wanted:
        schema = pa.schema([field for field in schema if field.name != FILE_FIELD.name])
        return (min(schema, key=lambda field: (row_bytes([field]), schema.names.index(field.name))).name,)
    return tuple(name for name in schema.names if name in wanted)


def look_up_columns(
    catalyst: Catalyst, plan: Plan, leaves: Mapping[int, str], expressions: Sequence[Expression]
) -> dict[str, dict[str, int]]:
    """Source → its columns by whose values rows of a plan are found: name → position of the expression of that value.

    The plan has such a column unchanged.  Floats are left out: -0.0 is 0.0 in a group, and not in a look-up.

    Args:
        plan: analysed, a projection.
        leaves: id of a leaf's first attribute → the source of the leaf.
        expressions: over the output of the plan.
    """
    ids = {
        attribute_id(each): position
        for position, each in enumerate(expressions)
        if is_attribute(each) and _is_exact(catalyst.schemas.arrow_type(each))
    }
    found: dict[str, dict[str, int]] = {}
    for leaf, columns in _unchanged_in_leaves(catalyst.trees, plan, ids):
        source = leaves[attribute_id(leaf.output().apply(0))]
        # Each row of a source that is read twice must have it.
        known = found.get(source, columns)
        found[source] = {name: position for name, position in columns.items() if known.get(name) == position}
    return found


def _is_exact(data_type: pa.DataType) -> bool:
    return not (pa.types.is_floating(data_type) or pa.types.is_nested(data_type))


def _unchanged_in_leaves(trees: Trees, plan: Plan, ids: Mapping[int, int]) -> Iterator[tuple[Plan, dict[str, int]]]:
    """Yields each leaf, and its columns that the output of the plan has unchanged: name → position.

    Args:
        ids: attribute of the output → position.
    """
    children, kind = trees.items(plan.children()), simple_name(plan)
    if not children:
        output = [(attribute_id(each), str(each.name())) for each in trees.items(plan.output())]
        yield plan, {name: ids[number] for number, name in output if number in ids}
    elif kind == "Union":
        # It matches columns by position.
        positions = [ids.get(attribute_id(each)) for each in trees.items(plan.output())]
        for child in children:
            columns = zip(trees.items(child.output()), positions, strict=True)
            below = {attribute_id(each): position for each, position in columns if position is not None}
            yield from _unchanged_in_leaves(trees, child, below)
    else:
        if kind == "Project":
            ids = dict(_unchanged_by(trees, plan, ids))
        yield from _unchanged_in_leaves(trees, children[0], ids)


def _unchanged_by(trees: Trees, project: Plan, ids: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    for named in trees.items(project.projectList()):
        value = named.child() if simple_name(named) == "Alias" else named
        if attribute_id(named) in ids and is_attribute(value):
            yield attribute_id(value), ids[attribute_id(named)]


def aggregate_of(plan: Plan) -> Plan:
    """The one Aggregate under the projections and filters of an aggregate view."""
    while simple_name(plan) != "Aggregate":
        plan = plan.child()
    return plan


def same(left: Expression, right: Expression) -> bool:
    """Whether two expressions of one plan always have the same value."""
    return bool(left.canonicalized().equals(right.canonicalized()))


def unchanged_columns(trees: Trees, plan: Plan) -> Iterator[tuple[str, Expression]]:
    """Yields the columns of the result that are unchanged from the Aggregate: name and expression there."""
    for column in trees.items(plan.output()):
        origin = _origin(trees, plan, column)
        if origin is not None:
            yield str(column.name()), origin


def grouping_columns(trees: Trees, plan: Plan) -> tuple[str, ...]:
    """The result's columns that hold the grouping, in its order; empty unless the result has the whole grouping."""
    unchanged = list(unchanged_columns(trees, plan))
    names: list[str] = []
    for grouping in trees.items(aggregate_of(plan).groupingExpressions()):
        name = next((name for name, origin in unchanged if same(origin, grouping)), None)
        if name is None:
            return ()
        names.append(name)
    return tuple(names)


def _origin(trees: Trees, plan: Plan, column: Expression) -> Expression | None:
    """The expression of the Aggregate that a column of the result equals, or None if the column is computed."""
    kind = simple_name(plan)
    if kind == "Filter":
        return _origin(trees, plan.child(), column)
    named = plan.aggregateExpressions() if kind == "Aggregate" else plan.projectList()
    found = next(each for each in trees.items(named) if attribute_id(each) == attribute_id(column))
    value = found.child() if simple_name(found) == "Alias" else found
    if kind == "Aggregate":
        return value
    return _origin(trees, plan.child(), value) if is_attribute(value) else None

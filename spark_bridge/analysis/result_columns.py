"""Where each column of an aggregate view's result comes from."""

from __future__ import annotations

from collections.abc import Iterator

from spark_bridge.catalyst.catalyst import Catalyst, Expression, Plan, attribute_id, is_attribute, simple_name


def aggregate_of(plan: Plan) -> Plan:
    """The one Aggregate under the projections and filters of an aggregate view."""
    while simple_name(plan) != "Aggregate":
        plan = plan.child()
    return plan


def same(left: Expression, right: Expression) -> bool:
    """Whether two expressions of one plan always have the same value."""
    return bool(left.canonicalized().equals(right.canonicalized()))


def unchanged_columns(catalyst: Catalyst, plan: Plan) -> Iterator[tuple[str, Expression]]:
    """For each column of the result that passes unchanged to the top: its name, and what it is in the Aggregate."""
    for column in catalyst.items(plan.output()):
        origin = _origin(catalyst, plan, column)
        if origin is not None:
            yield str(column.name()), origin


def grouping_columns(catalyst: Catalyst, plan: Plan) -> tuple[str, ...]:
    """The result's columns that hold the grouping, in its order; none at all unless the whole grouping is there."""
    unchanged = list(unchanged_columns(catalyst, plan))
    names: list[str] = []
    for grouping in catalyst.items(aggregate_of(plan).groupingExpressions()):
        name = next((name for name, origin in unchanged if same(origin, grouping)), None)
        if name is None:
            return ()
        names.append(name)
    return tuple(names)


def _origin(catalyst: Catalyst, plan: Plan, column: Expression) -> Expression | None:
    """The expression of the Aggregate that a column of the result is, or None when it is computed from that."""
    kind = simple_name(plan)
    if kind == "Filter":
        return _origin(catalyst, plan.child(), column)
    named = plan.aggregateExpressions() if kind == "Aggregate" else plan.projectList()
    found = next(each for each in catalyst.items(named) if attribute_id(each) == attribute_id(column))
    value = found.child() if simple_name(found) == "Alias" else found
    if kind == "Aggregate":
        return value
    return _origin(catalyst, plan.child(), value) if is_attribute(value) else None

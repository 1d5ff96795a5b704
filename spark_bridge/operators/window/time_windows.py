"""Windows of time among the groups of a query, as in `GROUP BY window(at, '10 minutes')`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from spark_bridge.engine.catalyst.column_origin import column_origin
from spark_bridge.engine.catalyst.trees import Expression, Plan, Trees, attribute_id, is_attribute, simple_name

_MARK, _SESSION_MARK = "spark.timeWindow", "spark.sessionWindow"
"""Spark's marks of the columns that `window` and `session_window` make."""

_COUNTED = "PreciseTimestampConversion"

_GROUPING_ID = "spark_grouping_id"
"""Spark's column that tells the grouping sets of `ROLLUP` apart."""


def window_positions(trees: Trees, aggregate: Plan) -> list[int]:
    """The positions of the windows of time in the grouping of an Aggregate."""
    return _marked(trees, aggregate, _MARK)


def session_positions(trees: Trees, aggregate: Plan) -> list[int]:
    """The positions of the columns in the grouping of an Aggregate that have the session of each row alone."""
    return _marked(trees, aggregate, _SESSION_MARK)


def _marked(trees: Trees, aggregate: Plan, mark: str) -> list[int]:
    grouping = trees.items(aggregate.groupingExpressions())
    return [at for at, each in enumerate(grouping) if is_attribute(each) and each.metadata().contains(mark)]


def has_grouping_sets(trees: Trees, aggregate: Plan) -> bool:
    """Whether an Aggregate groups by `ROLLUP`, `CUBE` or `GROUPING SETS`, so that keys of a row are left out."""
    grouping = trees.items(aggregate.groupingExpressions())
    return any(is_attribute(each) and str(each.name()) == _GROUPING_ID for each in grouping)


def window_time(trees: Trees, aggregate: Plan, position: int, leaves: Mapping[int, str]) -> tuple[str, str] | None:
    """The source and its column that a window, or a session, is of; None if it is of a computed value.

    Args:
        aggregate: analysed, over rows of sources.
        position: of the window in the grouping.
        leaves: id of a leaf's first attribute → the source of the leaf.
    """
    window = aggregate.groupingExpressions().apply(position)
    made = _made(trees, aggregate.child(), attribute_id(window))
    if made is None:
        return None
    plan, value = made
    if simple_name(value) == "CreateNamedStruct" and window.metadata().contains(_SESSION_MARK):
        # Its end is that time and the gap, which a column may tell.
        value = trees.items(value.children())[1]
    times = {attribute_id(each) if is_attribute(each) else None for each in _times(trees, value)}
    [time] = times if len(times) == 1 else {None}
    return None if time is None else column_origin(trees, plan, time, leaves)


def _times(trees: Trees, expression: Expression) -> Iterator[Expression]:
    """The values that an expression counts in microseconds: the time that a window is of."""
    for child in trees.items(expression.children()):
        if simple_name(expression) == _COUNTED and str(expression.toType().typeName()) == "long":
            is_date = simple_name(child) == "Cast" and str(child.child().dataType().typeName()) == "date"
            yield child.child() if is_date else child
        else:
            yield from _times(trees, child)


def _made(trees: Trees, plan: Plan, number: int) -> tuple[Plan, Expression] | None:
    """The operator below the one that computes an attribute, and the expression that computes it."""
    children = trees.items(plan.children())
    if len(children) != 1:
        return None
    kind = simple_name(plan)
    if kind == "Expand":
        ids = [attribute_id(each) for each in trees.items(plan.output())]
        values = trees.items(trees.items(plan.projections())[0])
        found = values[ids.index(number)] if number in ids else None
    elif kind == "Project":
        named = next((each for each in trees.items(plan.projectList()) if attribute_id(each) == number), None)
        found = None if named is None else named.child() if simple_name(named) == "Alias" else named
    else:
        return _made(trees, children[0], number)
    if found is None:
        return None
    return _made(trees, children[0], attribute_id(found)) if is_attribute(found) else (children[0], found)

"""The windows of a view with `emit="on_close"`."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from actors.schemas.metadata_columns import PATH, ROW
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Plan
from spark_bridge.operators.group.aggregate_calls import aggregate_calls
from spark_bridge.operators.window.time_windows import (
    has_grouping_sets,
    session_positions,
    window_positions,
    window_time,
)
from spark_bridge.plans.columns import aggregate_of
from spark_bridge.plans.view_plan import Closing
from spark_bridge.query.declared_view import DeclaredView
from spark_bridge.query.plain_plan import leaves_used
from state.errors import ViewError
from state.tables.records import ViewClass


def closing_of(
    catalyst: Catalyst,
    declared: DeclaredView,
    plan: Plan,
    view_class: ViewClass,
    parents: Collection[str],
    leaves: Mapping[int, str],
) -> Closing:
    """The windows of a view that shows a group when its window closes.

    Args:
        plan: with total orders.
        parents: the views and internal views whose stored rows it may read.
        leaves: id of a leaf's first attribute → the name of the leaf.

    Raises:
        ViewError: the view has no windows, or they cannot be closed; with what to write instead.
    """
    used, trees = leaves_used(catalyst.trees, plan, leaves), catalyst.trees
    if view_class != "aggregate" or parents or len(used) != 1:
        raise _cannot_close(
            declared,
            "it does not group the rows of one source",
            "write SELECT ... FROM source GROUP BY window(...), and let another view read this one",
        )
    [source] = used
    if source not in declared.event_times:
        raise _cannot_close(declared, f"source {source} has no event time", 'declare it with event_time="at"')
    if source in declared.materialized:
        advice = "declare it without materialize=True and on_change"
        raise _cannot_close(declared, f"rows of source {source} can be replaced or forgotten", advice)
    if not {PATH, ROW} <= {*declared.columns_of(source).names}:
        advice = 'declare the source with metadata=("path", "row"), by which late rows are kept'
        raise _cannot_close(declared, f"source {source} has no {PATH} and {ROW}", advice)
    aggregate, column = aggregate_of(plan), declared.event_times[source]
    sessions = session_positions(trees, aggregate)
    windows = [*window_positions(trees, aggregate), *sessions]
    times = {window_time(trees, aggregate, each, leaves) for each in windows}
    if len(windows) != 1 or times != {(source, column)}:
        advice = f"group by window({column}, '10 minutes') or session_window, with the column as it is"
        raise _cannot_close(declared, f"it does not group by one window of the event time {column}", advice)
    if has_grouping_sets(trees, aggregate):
        advice = "group by all keys, and let another view group the rows of this one"
        raise _cannot_close(declared, "a group of ROLLUP, CUBE or GROUPING SETS may have no window", advice)
    if sessions and any(call.is_distinct for call in aggregate_calls(catalyst, declared.name, aggregate)):
        advice = "take approx_count_distinct, or leave emit out"
        raise _cannot_close(declared, "it has DISTINCT over sessions, which may become one", advice)
    return Closing(source, windows[0], column if sessions else None)


def _cannot_close(declared: DeclaredView, what: str, advice: str) -> ViewError:
    return ViewError(f'view {declared.name!r} cannot have emit="on_close", as {what}: {advice}')

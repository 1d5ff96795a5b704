"""The text for people that says how rows leave a view: with a replaced or forgotten file, or a row of a parent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Plan
from spark_bridge.operators.group.aggregate_calls import AggregateCall, Removal, aggregate_calls
from spark_bridge.plans.columns import aggregate_of, look_up_columns
from spark_bridge.plans.view_plan import ViewPlan


def removal_text(catalyst: Catalyst, view: ViewPlan) -> str:
    """How rows leave the view.

    Args:
        catalyst: of the session in which it was planned.
        view: the plan of the view.
    """
    if view.expiry is not None and view.expiry.ages:
        return "one epoch after the watermark has taken them out of the view"
    if view.expiry is not None:
        return "when the watermarks show that no partner comes; the rows computed from them stay"
    if not view.is_changing:
        return "never: files are replaced or forgotten if their sources are declared with materialize=True"
    match view.view_class:
        case "append" if view.computed:
            return "with the rows that they are computed of, found by their values"
        case "append" if view.parents:
            return f"with the row of {' and '.join(view.parents)} that they are made of"
        case "append":
            return "with their file"
        case "aggregate":
            return _of_groups(catalyst, view)
        case "full":
            return "with the next recomputation"


def _of_groups(catalyst: Catalyst, view: ViewPlan) -> str:
    aggregate = aggregate_of(view.plan)
    calls = aggregate_calls(catalyst, view.name, aggregate)
    if not calls:
        return "they are counted, and a group ends with its last one"
    subtracted, retracted, kept, lost = (_names(calls, kind) for kind in ("subtracted", "retracted", "kept", "lost"))
    again = f"from {_rows_read(catalyst, aggregate, view.leaves)}"
    if not view.parents and any(call.is_distinct for call in calls):
        return f"the groups that they touch are computed again, {again}"
    how = [f"{subtracted}: they are subtracted"] if subtracted else []
    if retracted:
        how.append(f"{retracted}: they are retracted; a group whose error may exceed the bound is computed again")
    if kept:
        how.append(f"{kept}: a group whose least or greatest value leaves, and no new one passes, is computed again")
    if lost:
        how.append(f"{lost}: the groups that lose one are computed again")
    return f"{'; '.join(how)}, {again}" if retracted or kept or lost else "; ".join(how)


def _names(calls: Iterable[AggregateCall], kind: Removal) -> str:
    return ", ".join(dict.fromkeys(call.name for call in calls if call.removal == kind))


def _rows_read(catalyst: Catalyst, aggregate: Plan, leaves: Mapping[int, str]) -> str:
    """The rows from which groups are computed again."""
    grouping = catalyst.trees.items(aggregate.groupingExpressions())
    columns = look_up_columns(catalyst, aggregate.child(), leaves, grouping)
    return " and ".join(
        f"those with their {' and '.join(columns[leaf])} of {leaf}" if columns[leaf] else f"all rows of {leaf}"
        for leaf in dict.fromkeys(leaves.values())
    )

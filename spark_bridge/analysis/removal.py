"""How the rows of a view leave, for people: when a file is replaced or forgotten, or a row of a parent changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from spark_bridge.analysis.aggregate_calls import AggregateCall, Removal, aggregate_calls
from spark_bridge.analysis.columns import aggregate_of, columns_in_leaves, has_exact_values
from spark_bridge.catalyst.catalyst import Catalyst, Plan

NEVER = "never: files are replaced or forgotten if their sources are declared with materialize=True"
RECOMPUTED = "with the next recomputation"


def removal_of_rows(parents: Sequence[str]) -> str:
    """For a row-by-row view."""
    return f"with the row of {' and '.join(parents)} that they are made of" if parents else "with their file"


def removal_of_groups(catalyst: Catalyst, view: str, plan: Plan, leaves: Mapping[int, str]) -> str:
    """For a view that groups.

    Args:
        catalyst: of the session.
        view: its name.
        plan: its analysed plan.
        leaves: id of a leaf's first attribute → the source or the parent of the leaf.
    """
    aggregate = aggregate_of(plan)
    calls = aggregate_calls(catalyst, view, aggregate)
    named = {kind: _names(calls, kind) for kind in ("subtracted", "kept", "lost")}
    if named["lost"] and any(call.is_distinct for call in calls):
        how = ["the groups that they touch are computed again"]
    elif not calls:
        how = ["they are counted, and a group ends with its last one"]
    else:
        how = [f"{named['subtracted']}: they are subtracted"] if named["subtracted"] else []
        if named["kept"]:
            how.append(f"{named['kept']}: a group whose least or greatest value leaves is computed again")
        if named["lost"]:
            how.append(f"{named['lost']}: the groups that lose one are computed again")
    if named["kept"] or named["lost"]:
        how.append(f"from {_found(catalyst, aggregate, leaves)}")
    return "; ".join(how).replace("; from", ", from")


def _names(calls: Iterable[AggregateCall], kind: Removal) -> str:
    return ", ".join(dict.fromkeys(call.name for call in calls if call.removal == kind))


def _found(catalyst: Catalyst, aggregate: Plan, leaves: Mapping[int, str]) -> str:
    """The rows that are read to compute groups again."""
    grouping = catalyst.items(aggregate.groupingExpressions())
    columns = columns_in_leaves(catalyst, aggregate.child(), leaves, grouping)
    found = []
    for leaf in dict.fromkeys(leaves.values()):
        values = {name: catalyst.arrow_type(grouping[position]) for name, position in columns[leaf].items()}
        names = [name for name, value in values.items() if has_exact_values(value)]
        by = f"those with their {' and '.join(names)}" if names else "all rows"
        found.append(f"{by} of {leaf}")
    return " and ".join(found)

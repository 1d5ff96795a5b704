"""The leaves of an analysed plan: replaces the empty ones by an epoch's rows."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from spark_bridge.catalyst.catalyst import Catalyst, Plan, attribute_id

Leaves = Mapping[str, DataFrame | None]
"""Source → its new rows; a source that is missing or None has no new rows."""


def graft(catalyst: Catalyst, plan: Plan, sources: Mapping[int, str], rows: Leaves) -> Plan:
    """The plan over an epoch's rows.

    The new leaves have the attributes of the old ones, so the plan is not analysed again.

    Args:
        catalyst: of the session.
        plan: the analysed plan.
        sources: id of a leaf's first attribute → the source of the leaf.
        rows: the new rows.
    """
    children = catalyst.items(plan.children())
    if children:
        return catalyst.with_children(plan, [graft(catalyst, child, sources, rows) for child in children])
    output = plan.output()
    frame = rows.get(sources[attribute_id(output.apply(0))])
    return plan if frame is None else catalyst.leaf(output, frame)

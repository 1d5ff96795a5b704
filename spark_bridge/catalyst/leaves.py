"""An epoch's rows in place of the empty leaves of an analysed plan."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from spark_bridge.catalyst.catalyst import Catalyst, Plan, attribute_id

Leaves = Mapping[str, DataFrame | None]
"""The new rows of each source, by its name; a source that is missing or None has none."""


def graft(catalyst: Catalyst, plan: Plan, sources: Mapping[int, str], rows: Leaves) -> Plan:
    """The plan over an epoch's rows.

    The new leaves have the attributes of the old ones, so nothing above them has to be analysed again.

    Args:
        catalyst: of the session.
        plan: analysed.
        sources: what each leaf stands for, by the id of its first attribute.
        rows: the new rows.
    """
    children = catalyst.items(plan.children())
    if children:
        return catalyst.with_children(plan, [graft(catalyst, child, sources, rows) for child in children])
    output = plan.output()
    frame = rows.get(sources[attribute_id(output.apply(0))])
    return plan if frame is None else catalyst.leaf(output, frame)

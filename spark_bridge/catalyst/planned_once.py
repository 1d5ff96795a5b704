"""A query over one leaf whose physical plan is made once: planning takes longer than the job over a few rows."""

from __future__ import annotations

import pyarrow as pa

from spark_bridge.catalyst.arrow_frames import table_of_rows
from spark_bridge.catalyst.catalyst import Catalyst, PhysicalPlan, Plan
from spark_bridge.catalyst.compiled_rows import CompiledRows, over_unknown_rows
from spark_bridge.catalyst.leaves import LeafRows


class PlannedOnce:
    """Runs the query over the rows of its leaf, in one task.

    Args:
        catalyst: of the session.
        plan: analysed, with one empty leaf.
    """

    def __init__(self, catalyst: Catalyst, plan: Plan) -> None:
        self._catalyst = catalyst
        [self._leaf] = catalyst.leaves(plan)
        self._plan = catalyst.physical_plan(over_unknown_rows(catalyst, plan))
        self._struct, self._schema = plan.schema(), catalyst.arrow_schema(plan)
        self._as_it_is = CompiledRows(catalyst, [], self._leaf, self._leaf.schema())

    def table(self, rows: pa.Table) -> pa.Table:
        """The result over rows, which have the columns of the leaf by name."""
        plan = self._over(self._plan, self._read(rows))
        return table_of_rows(self._catalyst.spark, self._catalyst.rows_of_physical(plan), self._struct, self._schema)

    def _read(self, rows: pa.Table) -> PhysicalPlan:
        catalyst, output = self._catalyst, self._leaf.output()
        leaf = LeafRows.of_table(catalyst.spark, rows.select([each.name() for each in catalyst.items(output)]))
        if leaf.few is not None:
            return self._as_it_is.scan(leaf.few, output)
        return catalyst.physical_plan(catalyst.one_partition(catalyst.leaf(output, leaf.frame)))

    def _over(self, node: PhysicalPlan, leaf: PhysicalPlan) -> PhysicalPlan:
        children = self._catalyst.items(node.children())
        if not children:
            return leaf
        return self._catalyst.with_children(node, [self._over(each, leaf) for each in children])

"""A query over one leaf whose physical plan is made once: planning takes longer than the job over a few rows."""

from __future__ import annotations

import pyarrow as pa

from spark_bridge.catalyst.arrow_frames import table_of_rows
from spark_bridge.catalyst.catalyst import Catalyst, PhysicalPlan, Plan
from spark_bridge.catalyst.compiled_rows import CompiledRows
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
        self._plan = catalyst.physical_plan(catalyst.over_unseen_rows(plan))
        self._struct = plan.schema()
        self._as_it_is = CompiledRows(catalyst, [], self._leaf, self._leaf.schema())

    def table(self, rows: pa.Table, schema: pa.Schema) -> pa.Table:
        """The result over rows, see `CompiledRows.table`."""
        plan = self._catalyst.over_leaf(self._plan, self._read(rows))
        return table_of_rows(self._catalyst.spark, self._catalyst.rows_of_physical(plan), self._struct, schema)

    def _read(self, rows: pa.Table) -> PhysicalPlan:
        catalyst, output = self._catalyst, self._leaf.output()
        leaf = LeafRows.of_table(catalyst.spark, rows.select([each.name() for each in catalyst.items(output)]))
        if leaf.few is not None:
            return self._as_it_is.scan(leaf.few, output)
        return catalyst.physical_plan(catalyst.one_partition(catalyst.leaf(output, leaf.frame)))


def planned_once(catalyst: Catalyst, plan: Plan) -> CompiledRows | PlannedOnce:
    """A query over one leaf as compiled code, or with its physical plan if it has further operators.

    Args:
        catalyst: of the session.
        plan: analysed, with one empty leaf.
    """
    return CompiledRows.of(catalyst, plan) or PlannedOnce(catalyst, plan)

"""A query over one leaf whose physical plan is made once: planning takes longer than the job over a few rows."""

from __future__ import annotations

from functools import cached_property

import pyarrow as pa

from spark_bridge.engine.catalyst.arrow_frames import table_of_rows
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Plan, simple_name
from spark_bridge.engine.execution.compiled_rows import compiled_rows
from spark_bridge.engine.execution.driver_plan import driver_plan
from spark_bridge.engine.execution.leaves import LeafRows
from spark_bridge.engine.execution.row_chain import RowChain


class PlannedOnce:
    """Runs the query over the rows of its leaf: few in the driver's thread, and many in one task.

    Args:
        plan: analysed, with one empty leaf.
    """

    def __init__(self, catalyst: Catalyst, plan: Plan) -> None:
        self._catalyst = catalyst
        [leaf] = catalyst.trees.leaves(plan)
        self._plan = catalyst.physical.plan_of(catalyst.rows.over_unseen_rows(plan))
        # Where no row can pass a filter, Spark has put a leaf without rows in the place of the one below.
        self._reads_leaf = [simple_name(each) for each in catalyst.trees.leaves(self._plan)] == ["RDDScanExec"]
        self._output, self._struct = leaf.output(), plan.schema()
        self._names = [each.name() for each in catalyst.trees.items(self._output)]
        self._leaf_rows = RowChain(catalyst, leaf, [], leaf.schema())

    @cached_property
    def _in_driver(self) -> RowChain | None:
        over_rows = self._catalyst.trees.over_leaf(self._plan, self._catalyst.physical.rows_to_come(self._output))
        return driver_plan(self._catalyst, self._leaf_rows, over_rows, self._struct)

    def table(self, rows: pa.Table, schema: pa.Schema) -> pa.Table:
        """The result over rows, see `RowChain.table`."""
        catalyst = self._catalyst
        if not self._reads_leaf:
            return table_of_rows(catalyst.spark, catalyst.physical.rows_of(self._plan), self._struct, schema)
        leaf = LeafRows.of_table(catalyst.spark, rows.select(self._names))
        if leaf.few is not None and self._in_driver is not None:
            return self._in_driver.table(leaf.few, schema)
        read = catalyst.physical.plan_of(catalyst.plans.one_partition(catalyst.rows.leaf(self._output, leaf.frame)))
        found = catalyst.physical.rows_of(catalyst.trees.over_leaf(self._plan, read))
        return table_of_rows(catalyst.spark, found, self._struct, schema)


def planned_once(catalyst: Catalyst, plan: Plan) -> RowChain | PlannedOnce:
    """A query over one leaf as compiled code, or with its physical plan if it has further operators.

    Args:
        plan: analysed, with one empty leaf.
    """
    return compiled_rows(catalyst, plan) or PlannedOnce(catalyst, plan)

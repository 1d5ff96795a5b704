"""A query over a few rows of this process, whose operators are compiled where they are projections and filters."""

from __future__ import annotations

import pyarrow as pa

from spark_bridge.catalyst.arrow_frames import frame_of_table, table_of_frame
from spark_bridge.catalyst.catalyst import Catalyst, Expression, Plan
from spark_bridge.catalyst.compiled_rows import CompiledRows
from state.tables.lance_layout import with_schema


class DriverProjection:
    """Applies a query to rows.  A plan with other operators (a Python function) is planned at each run.

    Args:
        catalyst: of the session.
        plan: the analysed query over one empty leaf.
        output: the leaf's attributes.
        relation: Arrow schema of the leaf.
        schema: Arrow schema of the result.
    """

    def __init__(
        self, catalyst: Catalyst, plan: Plan, output: list[Expression], relation: pa.Schema, schema: pa.Schema
    ) -> None:
        self._catalyst, self._plan, self._relation, self._schema = catalyst, plan, relation, schema
        self._output = catalyst.seq(output)
        self._compiled = CompiledRows.of(catalyst, plan)

    def run(self, rows: pa.Table) -> pa.Table:
        """The result of the plan over these rows, which have the leaf's columns in its order."""
        if self._compiled is not None:
            return self._compiled.table(rows, self._schema)
        table = with_schema(rows, self._relation)
        leaf = self._catalyst.leaf(self._output, frame_of_table(self._catalyst.spark, table))
        return table_of_frame(self._catalyst.frame(self._with_leaf(self._plan, leaf)), self._schema)

    def _with_leaf(self, plan: Plan, leaf: Plan) -> Plan:
        children = self._catalyst.items(plan.children())
        if not children:
            return leaf
        return self._catalyst.with_children(plan, [self._with_leaf(children[0], leaf)])

"""A compiled projection over rows in the driver: no planning and no job at each run."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from spark_bridge.catalyst.arrow_frames import frame_of_table, internal_rows, table_of_frame, table_of_rows
from spark_bridge.catalyst.catalyst import Catalyst, Expression, Plan, simple_name
from state.tables.lance_layout import with_schema


class DriverProjection:
    """Applies a query's projections and filters to a few rows.

    Projections are compiled to Spark's own UnsafeProjection, a function of a row: planning the same query takes 30 ms
    each time.  A plan with other operators (a filter, a Python function) runs as a query.

    It is not thread-safe: the compiled code writes every row into the same memory.

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
        self._catalyst = catalyst
        self._plan = plan
        self._output = catalyst.seq(output)
        self._relation = relation
        self._schema = schema
        self._struct = plan.schema()
        self._relation_struct = catalyst.local_relation(self._output).schema()
        self._steps = self._compiled()

    def run(self, rows: pa.Table) -> pa.Table:
        """The result of the plan over these rows."""
        spark = self._catalyst.spark
        if self._steps is None:
            leaf = self._catalyst.leaf(self._output, frame_of_table(spark, with_schema(rows, self._relation)))
            return table_of_frame(self._catalyst.frame(self._with_leaf(self._plan, leaf)), self._schema)
        internal = internal_rows(spark, with_schema(rows, self._relation), self._relation_struct)
        for step in self._steps:
            internal = internal.map(step)
        return table_of_rows(spark, internal, self._struct, self._schema)

    def _compiled(self) -> list[Any] | None:
        """The projections from the leaf upwards; None if the plan has other operators."""
        # The optimizer would replace a plan over known empty rows by an empty result.
        empty = self._catalyst.unknown_rows(
            self._output, frame_of_table(self._catalyst.spark, self._relation.empty_table())
        )
        node = self._catalyst.physical_plan(self._with_leaf(self._plan, empty))
        steps: list[Any] = []
        while simple_name(node) == "ProjectExec":
            steps.append(self._catalyst.compiled(node.projectList(), node.child().output()))
            node = node.child()
        return steps[::-1] if simple_name(node) == "RDDScanExec" else None

    def _with_leaf(self, plan: Plan, leaf: Plan) -> Plan:
        children = self._catalyst.items(plan.children())
        if not children:
            return leaf
        return self._catalyst.with_children(plan, [self._with_leaf(children[0], leaf)])

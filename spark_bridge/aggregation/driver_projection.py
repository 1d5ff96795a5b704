"""A projection that is compiled once and computes over rows in the driver, without a plan or a job for each time."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from spark_bridge.catalyst.arrow_frames import frame_of_table, internal_rows, table_of_frame, table_of_rows
from spark_bridge.catalyst.catalyst import Catalyst, Expression, Plan, simple_name


class DriverProjection:
    """What a query's projections, and filters, make of a few rows.

    Projections are compiled to Spark's own UnsafeProjection, which is a function of a row: planning a query of the same
    expressions takes 30 ms each time.  A plan with anything else (a filter, a Python function) is run as a query.

    One thread at a time may run it: the compiled code writes every row into the same memory.

    Args:
        catalyst: of the session.
        plan: analysed; it gives the rows, over an empty leaf.
        output: the leaf's attributes.
        relation: what the leaf is, as Arrow has it.
        schema: of what the plan gives.
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
        """The rows that the plan makes of these."""
        spark = self._catalyst.spark
        if self._steps is None:
            leaf = self._catalyst.leaf(self._output, frame_of_table(spark, rows.cast(self._relation)))
            return table_of_frame(self._catalyst.frame(self._with_leaf(self._plan, leaf)), self._schema)
        internal = internal_rows(spark, rows.cast(self._relation), self._relation_struct)
        for step in self._steps:
            internal = internal.map(step)
        return table_of_rows(spark, internal, self._struct, self._schema)

    def _compiled(self) -> list[Any] | None:
        """The projections from the leaf upwards; None when there is something else among them."""
        # Of rows that it knows the optimizer would make a result of no rows.
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

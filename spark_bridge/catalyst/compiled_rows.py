"""The rows of a plan over a few rows in the driver: projections and filters, compiled once, without planning or a job.

Planning and running the same plan as a query takes 15 to 40 ms each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any

import pyarrow as pa

from spark_bridge.catalyst.arrow_frames import internal_rows, table_of_rows
from spark_bridge.catalyst.catalyst import Catalyst, Plan, simple_name
from state.tables.lance_layout import with_schema


class CompiledRows:
    """Applies the projections and filters of a plan to the rows of its only leaf, by Spark's own compiled code.

    Args:
        catalyst: of the session.
        steps: functions of Spark's internal rows, from the leaf upwards, each with whether it is a filter.
        leaf: the leaf of the plan.
        struct: the StructType of the result, a Java object.
    """

    def __init__(self, catalyst: Catalyst, steps: list[tuple[Any, bool]], leaf: Plan, struct: Any) -> None:
        self._catalyst, self._steps, self._struct = catalyst, steps, struct
        self._schema, self._leaf_struct = catalyst.arrow_schema(leaf), leaf.schema()
        # The compiled code writes every row into the same memory.
        self._lock = Lock()

    @classmethod
    def of(cls, catalyst: Catalyst, plan: Plan) -> CompiledRows | None:
        """Compiles a plan; None if it has other operators, or several leaves.

        Args:
            catalyst: of the session.
            plan: analysed, with empty leaves; its values are the same at any time.
        """
        leaves = catalyst.leaves(plan)
        if len(leaves) != 1:
            return None
        node = catalyst.physical_plan(catalyst.over_unseen_rows(plan))
        steps = list[tuple[Any, bool]]()
        while (kind := simple_name(node)) in ("ProjectExec", "FilterExec"):
            rows = node.child().output()
            if kind == "ProjectExec":
                steps.append((catalyst.compiled(node.projectList(), rows), False))
            else:
                steps.append((catalyst.compiled_condition(node.condition(), rows), True))
            node = node.child()
        return cls(catalyst, steps[::-1], leaves[0], plan.schema()) if kind == "RDDScanExec" else None

    def table(self, rows: pa.Table, schema: pa.Schema) -> pa.Table:
        """The result over rows of the leaf; a column that they lack is null.

        Args:
            rows: those of the leaf, with its columns by name.
            schema: of the result; only Arrow's names of the types may differ.
        """
        with self._lock:
            return table_of_rows(self._catalyst.spark, self._applied(rows), self._struct, schema)

    def copied(self, rows: pa.Table) -> Any:
        """The result over rows of the leaf, as a Scala Seq of internal rows."""
        with self._lock:
            return self._catalyst.row_copies(self._applied(rows))

    def _applied(self, rows: pa.Table) -> Any:
        present: Mapping[str, Any] = dict(zip(rows.column_names, rows.columns, strict=True))
        arrays = [
            present[each.name] if each.name in present else pa.nulls(rows.num_rows, each.type) for each in self._schema
        ]
        table = with_schema(pa.table(arrays, names=self._schema.names), self._schema)
        internal = internal_rows(self._catalyst.spark, table, self._leaf_struct)
        for step, is_filter in self._steps:
            internal = internal.filter(step) if is_filter else internal.map(step)
        return internal

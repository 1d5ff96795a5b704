"""A query whose physical plan is made once: planning takes longer than the work on a few rows.

    few rows     the plan runs in the driver's thread, over rows that the driver holds
    many rows    the plan runs as a job, over the rows as Spark's tasks read them

No step of Spark's between the analysed plan and the physical plan is repeated for new rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import pyarrow as pa

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Expression, PhysicalPlan, Plan, attribute_id, parts_of, simple_name
from spark_bridge.engine.execution.driver_plan import DriverPlan, java_plans, run_job
from spark_bridge.engine.execution.leaves import LeafRows, Leaves, is_few
from spark_bridge.engine.execution.task_rows import TaskRows

OverPlan = Callable[[PhysicalPlan, int], PhysicalPlan]
"""(physical plan, number of tasks) -> the plan with further operators: with 1 task the plan has one partition."""

_ROWS = "rows"
_STREAMED = frozenset({"ProjectExec", "FilterExec", "RDDScanExec"})


class PlannedOnce:
    """Runs a query over rows of its leaves, of which there may be any number.

    Args:
        plan: analysed, with empty leaves.
        leaves: id of a leaf's first attribute → the name of the leaf; as `ViewPlan.leaves`.
        over: puts further operators over the physical plan; None for none.
        struct: StructType of the result, a Java object, if `over` changes it.
    """

    def __init__(
        self,
        catalyst: Catalyst,
        plan: Plan,
        leaves: Mapping[int, str],
        over: OverPlan | None = None,
        struct: Any = None,
    ) -> None:
        self._catalyst, self._over = catalyst, over
        self._struct = plan.schema() if struct is None else struct
        self._plan = catalyst.physical.plan_of(catalyst.rows.over_unseen_rows(plan))
        logical = {attribute_id(each.output().apply(0)): each for each in catalyst.trees.leaves(plan)}
        # Where no row can pass a filter, Spark has put a leaf without rows in the place of the one below.
        scans = [each for each in catalyst.trees.leaves(self._plan) if simple_name(each) == "RDDScanExec"]
        ids = [attribute_id(each.output().apply(0)) for each in scans]
        self._scans = scans
        self._names = [leaves[each] for each in ids]
        self._leaves = [logical[each] for each in ids]
        self._columns: dict[tuple[object, ...], tuple[Any, list[Expression] | None]] = {}

    @cached_property
    def _in_driver(self) -> DriverPlan | None:
        made = DriverPlan(
            self._catalyst, self._with_over(self._one_partition, 1), self._leaves, self._scans, self._struct
        )
        return None if made.needs_job else made

    @cached_property
    def _streams(self) -> bool:
        """True if no operator holds rows, so that any number of rows of the only leaf can pass through the driver."""
        kinds = {simple_name(each) for each in parts_of(self._catalyst.trees, self._plan)}
        return self._over is None and len(self._leaves) == 1 and kinds <= _STREAMED

    @cached_property
    def _one_partition(self) -> PhysicalPlan:
        """The plan, with one partition if each leaf has one: it needs no shuffle."""
        return self._catalyst.physical.unions_in_one_partition(self._plan)

    def _with_over(self, plan: PhysicalPlan, tasks: int) -> PhysicalPlan:
        return plan if self._over is None else self._over(plan, tasks)

    def table(self, rows: Leaves, schema: pa.Schema, tasks: int = 1) -> pa.Table:
        """The result over an epoch's rows.

        Args:
            rows: name of a leaf → its rows; a leaf that is missing or None has no rows.
            schema: of the result; only Arrow's names of the types may differ.
            tasks: the number of tasks that share the work after a shuffle; 1 for one task without a shuffle.
        """
        given = self._given(rows)
        if is_few(given) and self._in_driver is not None:
            return self._in_driver.table([each.held(self._catalyst.spark) for each in given], schema)
        return run_job(self._catalyst, self._over_rows(given, tasks), self._struct, schema)

    def rows(self, rows: Leaves, tasks: int = 1) -> LeafRows:
        """The result over an epoch's rows as rows of another plan.  Arguments as for `table`."""
        given = self._given(rows)
        if is_few(given) and self._in_driver is not None:
            return LeafRows.of_table(self._catalyst.spark, self.table(rows, self._schema))

        def parts() -> list[TaskRows]:
            plan = self._catalyst.physical.prepared(self._over_rows(given, tasks))
            return [TaskRows(plan.execute(), self._schema)]

        return LeafRows.of_parts(self._catalyst.spark, parts)

    @cached_property
    def _schema(self) -> pa.Schema:
        return self._catalyst.schemas.arrow_schema_of(self._struct)

    def stream(self, rows: pa.Table, schema: pa.Schema) -> pa.Table | None:
        """The result over rows of the only leaf, of any number; None if an operator may hold rows, or needs a job."""
        return self._in_driver.stream(rows, schema) if self._streams and self._in_driver is not None else None

    def _given(self, rows: Leaves) -> list[LeafRows]:
        return [rows.get(name) or none for name, none in zip(self._names, self._no_rows, strict=True)]

    @cached_property
    def _no_rows(self) -> list[LeafRows]:
        schemas = map(self._catalyst.schemas.arrow_schema, self._leaves)
        return [LeafRows.of_table(self._catalyst.spark, each.empty_table()) for each in schemas]

    def _over_rows(self, given: list[LeafRows], tasks: int) -> PhysicalPlan:
        physical = self._catalyst.physical
        scans = [self._scan(number, each) for number, each in enumerate(given)]
        if tasks == 1:
            scans = [physical.one_partition(each) for each in scans]
        plan = self._one_partition if tasks == 1 else self._plan
        return self._with_over(java_plans(self._catalyst.spark).over(plan, self._scans, scans), tasks)

    def _scan(self, number: int, rows: LeafRows) -> PhysicalPlan:
        scans = [self._scan_part(number, each) for each in rows.parts(self._catalyst)]
        return scans[0] if len(scans) == 1 else self._catalyst.physical.union(scans)

    def _scan_part(self, number: int, rows: TaskRows) -> PhysicalPlan:
        catalyst, key = self._catalyst, (number, rows.schema, *rows.constants.items())
        if key not in self._columns:
            output = self._leaves[number].output()
            self._columns[key] = catalyst.rows.scan_columns(rows.schema, output, rows.constants)
        scanned, columns = self._columns[key]
        scan = catalyst.physical.scan(scanned, rows.rdd)
        return scan if columns is None else catalyst.physical.project(columns, scan)


class TableQuery:
    """A query over one leaf, whose rows are in this process.

    Args:
        plan: analysed, with one empty leaf.
    """

    def __init__(self, catalyst: Catalyst, plan: Plan) -> None:
        [leaf] = catalyst.trees.leaves(plan)
        self._spark = catalyst.spark
        self._query = PlannedOnce(catalyst, plan, {attribute_id(leaf.output().apply(0)): _ROWS})

    def table(self, rows: pa.Table, schema: pa.Schema) -> pa.Table:
        """The result over rows of the leaf; a column that they lack is null.

        Args:
            schema: of the result; only Arrow's names of the types may differ.
        """
        streamed = self._query.stream(rows, schema)
        if streamed is not None:
            return streamed
        return self._query.table({_ROWS: LeafRows.of_table(self._spark, rows)}, schema)

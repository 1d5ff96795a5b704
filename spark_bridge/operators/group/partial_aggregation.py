"""The partial aggregation of new rows by Spark's physical operators, planned once: in the driver, or as a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from spark_bridge.engine.catalyst.arrow_frames import table_of_rows
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Expression, PhysicalPlan, Plan
from spark_bridge.engine.execution.compiled_rows import compiled_rows
from spark_bridge.engine.execution.driver_plan import driver_plan
from spark_bridge.engine.execution.leaves import RowsOver
from spark_bridge.engine.execution.row_chain import RowChain
from spark_bridge.operators.group.aggregate_calls import AggregateCall


class PhysicalAggregation:
    """The physical nodes of an aggregation, made once and put over each epoch's rows.

        partial    rows -> buffers, in every task
        together   buffers of a group -> one buffer, after a shuffle

    Spark chooses the kind of the nodes (by hash, by object hash, by sort) from the functions' buffers alone.

    Args:
        grouping: attributes of the rows.
        functions: AggregateExpressions over attributes of the rows.
        rows: an analysed plan.
    """

    def __init__(
        self, catalyst: Catalyst, grouping: Sequence[Expression], functions: Sequence[Expression], rows: Plan
    ) -> None:
        self._catalyst = catalyst
        planner = catalyst.physical.classes.aggregate.AggUtils
        groups = catalyst.scala.seq(grouping)
        final = catalyst.trees.items(
            planner.planAggregateWithoutDistinct(
                groups, catalyst.scala.seq(functions), groups, catalyst.physical.plan_of(rows)
            )
        )[-1]
        self._partial = final.child()
        merging = catalyst.scala.singleton("catalyst.expressions.aggregate.PartialMerge")
        merged = [
            each.copy(each.aggregateFunction(), merging, each.isDistinct(), each.filter(), each.resultId())
            for each in catalyst.trees.items(final.aggregateExpressions())
        ]
        self._together = final.copy(
            final.requiredChildDistributionExpressions(),
            final.isStreaming(),
            final.numShufflePartitions(),
            final.groupingExpressions(),
            catalyst.scala.seq(merged),
            final.aggregateAttributes(),
            final.initialInputBufferOffset(),
            self._partial.output(),
            self._partial,
        )

    @property
    def output(self) -> list[Expression]:
        """The grouping, then the attributes of the functions' buffers."""
        return self._catalyst.trees.items(self._partial.output())

    def over(self, rows: PhysicalPlan) -> PhysicalPlan:
        """The first step over a plan with the attributes of the first one."""
        return self._catalyst.trees.with_children(self._partial, [rows])

    def run(self, rows: PhysicalPlan, tasks: int) -> Any:
        """Runs the job.  Returns a Scala iterator of groups and buffers, in the driver.

        Args:
            rows: a plan with the attributes of the first one.
            tasks: the number of tasks of the second step; 1 if one step is enough, as the rows are in one partition.
        """
        plan = self.over(rows)
        if tasks > 1:
            grouping = self._together.groupingExpressions()
            if grouping.size():
                # Spark itself would shuffle into one partition, as the session's settings have it.
                plan = self._catalyst.physical.shuffled(grouping, tasks, plan)
            plan = self._catalyst.trees.with_children(self._together, [plan])
        return self._catalyst.physical.rows_of(plan)


@dataclass(frozen=True)
class CallOverRows:
    """A call of an aggregate function over certain rows.

    Args:
        inputs: one expression over the rows for each of `call.inputs`.
        condition: of FILTER over the rows, if any.
        names: the names of the buffer's columns.
    """

    call: AggregateCall
    inputs: Sequence[Expression]
    condition: Expression | None
    names: Sequence[str]


class PartialAggregation:
    """Rows -> one row per group, with the grouping and the functions' buffers.

    The aggregation, over the plain columns of a projection, is planned once.  That projection, and the filters below
    it, are compiled once for few rows, and all runs in the driver; for many, Spark plans them in every epoch, and runs
    a job.

    Args:
        rows: a plan of the rows with empty leaves.
        grouping: expressions over the rows.
        calls: the calls over the rows.
    """

    def __init__(
        self, catalyst: Catalyst, rows: Plan, grouping: Sequence[Expression], calls: Sequence[CallOverRows]
    ) -> None:
        self._catalyst = catalyst
        names = [f"__sw_group_{index}" for index in range(len(grouping))]
        # Spark's own planning of an aggregation would normalise -0.0 and NaN; it is not used here.
        groups = [
            catalyst.expressions.alias(catalyst.expressions.normalised(each), name)
            for each, name in zip(grouping, names, strict=True)
        ]
        columns, functions = list(groups), []
        for each in calls:
            inputs = [catalyst.expressions.alias(expression, "__sw_input") for expression in each.inputs]
            condition = None if each.condition is None else catalyst.expressions.alias(each.condition, "__sw_filter")
            columns += inputs if condition is None else [*inputs, condition]
            functions.append(
                each.call.over(
                    [column.toAttribute() for column in inputs], None if condition is None else condition.toAttribute()
                )
            )
            names += each.names
        self._projection = catalyst.queries.analyse(catalyst.plans.project(columns, rows))
        # By the mark of a session Spark would put sessions together, in further nodes.
        attributes = [catalyst.expressions.without_metadata(group.toAttribute()) for group in groups]
        self._aggregation = PhysicalAggregation(catalyst, attributes, functions, self._projection)
        output = [
            attribute.withName(name).withNullability(True)
            for attribute, name in zip(self._aggregation.output, names, strict=True)
        ]
        relation = catalyst.rows.local_relation(catalyst.scala.seq(output))
        self._struct = relation.schema()
        self.schema: pa.Schema = catalyst.schemas.arrow_schema(relation)

    @cached_property
    def _in_driver(self) -> RowChain | None:
        catalyst = self._catalyst
        below = compiled_rows(catalyst, self._projection)
        if below is None:
            return None
        leaf = catalyst.physical.rows_to_come(self._projection.output())
        return driver_plan(catalyst, below, self._aggregation.over(leaf), self._struct)

    def run(self, rows: RowsOver, tasks: int) -> pa.Table:
        """Runs the job over new rows.

        Args:
            rows: the new rows, over a plan with the output of the first one.
            tasks: the number of tasks that share the groups, after a shuffle; 1 for one task without a shuffle.
        """
        if rows.few is not None and self._in_driver is not None:
            return self._in_driver.table(rows.few, self.schema)
        plan = self._catalyst.trees.with_children(self._projection, [rows.plan])
        if tasks == 1:
            plan = self._catalyst.plans.one_partition(plan)
        groups = self._aggregation.run(self._catalyst.physical.plan_of(plan), tasks)
        return table_of_rows(self._catalyst.spark, groups, self._struct, self.schema)

"""The partial aggregation of new rows by Spark's physical operators, planned once: in the driver, or as a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Expression, PhysicalPlan, Plan
from spark_bridge.engine.execution.leaves import Leaves
from spark_bridge.engine.execution.planned_once import PlannedOnce
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

    def over(self, rows: PhysicalPlan, tasks: int) -> PhysicalPlan:
        """The aggregation over a plan with the attributes of the first one.

        Args:
            tasks: the number of tasks of the second step; 1 if one step is enough, as the rows are in one partition.
        """
        plan = self._catalyst.trees.with_children(self._partial, [rows])
        if tasks > 1:
            grouping = self._together.groupingExpressions()
            if grouping.size():
                # Spark itself would shuffle into one partition, as the session's settings have it.
                plan = self._catalyst.physical.shuffled(grouping, tasks, plan)
            plan = self._catalyst.trees.with_children(self._together, [plan])
        return plan


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

    Both the projection below the aggregation and the aggregation are planned once, see `PlannedOnce`.

    Args:
        rows: a plan of the rows with empty leaves.
        leaves: id of a leaf's first attribute → the name of the leaf.
        grouping: expressions over the rows.
        calls: the calls over the rows.
    """

    def __init__(
        self,
        catalyst: Catalyst,
        rows: Plan,
        leaves: Mapping[int, str],
        grouping: Sequence[Expression],
        calls: Sequence[CallOverRows],
    ) -> None:
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
        projection = catalyst.queries.analyse(catalyst.plans.project(columns, rows))
        # By the mark of a session Spark would put sessions together, in further nodes.
        attributes = [catalyst.expressions.without_metadata(group.toAttribute()) for group in groups]
        aggregation = PhysicalAggregation(catalyst, attributes, functions, projection)
        output = [
            attribute.withName(name).withNullability(True)
            for attribute, name in zip(aggregation.output, names, strict=True)
        ]
        relation = catalyst.rows.local_relation(catalyst.scala.seq(output))
        self.schema: pa.Schema = catalyst.schemas.arrow_schema(relation)
        self._query = PlannedOnce(catalyst, projection, leaves, aggregation.over, relation.schema())

    def run(self, rows: Leaves, tasks: int) -> pa.Table:
        """Computes the groups of new rows.

        Args:
            rows: name of a leaf → its rows.
            tasks: the number of tasks that share the groups of many rows, after a shuffle; 1 for one task without a
                shuffle.
        """
        return self._query.table(rows, self.schema, tasks)

"""Spark's physical plan of an aggregation that stops before its functions are evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spark_bridge.catalyst.catalyst import Catalyst, Expression, Plan


class PhysicalAggregation:
    """The nodes of an aggregation, which are put over each epoch's rows.

        partial    rows to buffers, in every task
        together   buffers of one group to one buffer, behind a shuffle

    Spark chooses the kind of the nodes (by hashing, with objects, by sorting) from the functions' buffers alone, so
    they are made once.

    Args:
        catalyst: of the session.
        grouping: attributes of the rows.
        functions: AggregateExpressions over attributes of the rows.
        rows: an analysed plan.
    """

    def __init__(
        self, catalyst: Catalyst, grouping: Sequence[Expression], functions: Sequence[Expression], rows: Plan
    ) -> None:
        self._catalyst = catalyst
        planner = catalyst.execution.aggregate.AggUtils
        groups = catalyst.seq(grouping)
        final = catalyst.items(
            planner.planAggregateWithoutDistinct(groups, catalyst.seq(functions), groups, catalyst.physical_plan(rows))
        )[-1]
        self._partial = final.child()
        merging = catalyst.singleton("catalyst.expressions.aggregate.PartialMerge")
        merged = [
            each.copy(each.aggregateFunction(), merging, each.isDistinct(), each.filter(), each.resultId())
            for each in catalyst.items(final.aggregateExpressions())
        ]
        self._together = final.copy(
            final.requiredChildDistributionExpressions(),
            final.isStreaming(),
            final.numShufflePartitions(),
            final.groupingExpressions(),
            catalyst.seq(merged),
            final.aggregateAttributes(),
            final.initialInputBufferOffset(),
            self._partial.output(),
            self._partial,
        )

    @property
    def output(self) -> list[Expression]:
        """The grouping, then the attributes of the functions' buffers."""
        return self._catalyst.items(self._partial.output())

    def run(self, rows: Plan, one_partition: bool) -> Any:
        """A Scala iterator of an epoch's groups and buffers, in the driver.

        Args:
            rows: an analysed plan with the attributes of the one given at first.
            one_partition: whether the rows are in one partition, so that one step is enough.
        """
        plan = self._catalyst.with_children(self._partial, [self._catalyst.physical_plan(rows)])
        if not one_partition:
            plan = self._catalyst.with_children(self._together, [plan])
        return self._catalyst.rows_of_physical(plan)

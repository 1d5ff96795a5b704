"""Logical plans: builds Spark's operators over other plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

from spark_bridge.engine.catalyst.expressions import Expressions
from spark_bridge.engine.catalyst.scala import Scala
from spark_bridge.engine.catalyst.trees import Expression, Plan, Trees, simple_name


class LogicalPlans:
    """Builds operators; one that is built of analysed parts is not analysed again."""

    def __init__(self, scala: Scala, trees: Trees, expressions: Expressions) -> None:
        self._scala, self._trees, self._classes = scala, trees, expressions.classes
        self._plans = scala.jvm.org.apache.spark.sql.catalyst.plans.logical
        self._repartition = self._plans.Repartition

    def with_expressions(self, plan: Plan, rewrite: Callable[[Expression], Expression]) -> Plan | None:
        """The operator with its expressions rewritten; None for one that cannot be made again."""

        def all_rewritten(expressions: Any) -> list[Expression]:
            return [rewrite(each) for each in self._trees.items(expressions)]

        match simple_name(plan):
            case "Project":
                return self.project(all_rewritten(plan.projectList()), plan.child())
            case "Filter":
                return self.filter(rewrite(plan.condition()), plan.child())
            case "Aggregate":
                grouping = all_rewritten(plan.groupingExpressions())
                return self.aggregate(grouping, all_rewritten(plan.aggregateExpressions()), plan.child())
            case "Join":
                return self.join(plan, rewrite(plan.condition().get()))
            case "Generate":
                return self.generate(plan, rewrite(plan.generator()), plan.child())
            case "Window":
                return self.window(plan, all_rewritten(plan.windowExpressions()), plan.child())
            case _:
                return None

    def project(self, expressions: Iterable[Expression], child: Plan) -> Plan:
        return self._plans.Project(self._scala.seq(expressions), child)

    def filter(self, condition: Expression, child: Plan) -> Plan:
        return self._plans.Filter(condition, child)

    def semi_join(self, rows: Plan, others: Plan, pairs: Iterable[tuple[Expression, Expression]]) -> Plan:
        """The rows that have a partner in others: in each pair, both expressions are equal or null."""
        equal = [self._classes.EqualNullSafe(one, other) for one, other in pairs]
        condition = reduce(self._classes.And, equal)
        return self.join_of(self._scala.singleton("catalyst.plans.LeftSemi"), rows, others, condition)

    def broadcast(self, plan: Plan) -> Plan:
        """The plan with the hint that a join sends all of its rows to each task."""
        strategy = self._scala.singleton("catalyst.plans.logical.BROADCAST")
        return self._plans.ResolvedHint(plan, self._plans.HintInfo(self._scala.option(strategy)))

    def join_of(self, kind: Any, left: Plan, right: Plan, condition: Expression | None) -> Plan:
        """A Join of a type of Spark's."""
        no_hint = self._scala.singleton("catalyst.plans.logical.JoinHint").NONE()
        return self._plans.Join(left, right, kind, self._scala.option(condition), no_hint)

    def without_duplicates(self, plan: Plan) -> Plan:
        """The aggregation that equals a Distinct, or a Deduplicate over all columns."""
        output = plan.child().output()
        return self._plans.Aggregate(output, output, plan.child())

    def generate(self, like: Plan, generator: Expression, child: Plan) -> Plan:
        """A Generate over another child, otherwise as `like`."""
        return self._plans.Generate(
            generator, like.unrequiredChildIndex(), like.outer(), like.qualifier(), like.generatorOutput(), child
        )

    def inline(self, rows: Expression, output: Any, child: Plan, *, outer: bool) -> Plan:
        """A Generate that appends each struct of an array to its row; with `outer`, nulls for an empty array.

        Args:
            rows: the array, over the rows of the child.
            output: the attributes of the structs' fields (a Seq).
        """
        generator = self._classes.Inline(rows)
        return self._plans.Generate(generator, self._scala.seq([]), outer, self._scala.option(None), output, child)

    def expand(self, projections: Iterable[Iterable[Expression]], output: Any, child: Plan) -> Plan:
        """Each row of a child once for each projection, under the given attributes (a Seq)."""
        return self._plans.Expand(self._scala.seq([self._scala.seq(each) for each in projections]), output, child)

    def join(self, like: Plan, condition: Expression) -> Plan:
        """A Join on another condition, otherwise as `like`."""
        return self._plans.Join(like.left(), like.right(), like.joinType(), self._scala.option(condition), like.hint())

    def sort(self, order: Iterable[Expression], child: Plan, *, of_partitions: bool = False) -> Plan:
        """All rows in an order; with `of_partitions`, the rows of each partition in that order."""
        return self._plans.Sort(self._scala.seq(order), not of_partitions, child)

    def partitioned(self, keys: Iterable[Expression], child: Plan) -> Plan:
        """The child's rows; rows with equal keys are in one partition."""
        by_default = self._scala.none()
        return self._plans.RepartitionByExpression(self._scala.seq(keys), child, by_default, by_default)

    def window(
        self,
        like: Plan,
        expressions: Iterable[Expression],
        child: Plan,
        order: Iterable[Expression] | None = None,
        partitions: Iterable[Expression] | None = None,
    ) -> Plan:
        """A Window of these expressions over the partitions of `like`, in its order, or over others, or in another."""
        ordered = like.orderSpec() if order is None else self._scala.seq(order)
        keys = like.partitionSpec() if partitions is None else self._scala.seq(partitions)
        return self._plans.Window(self._scala.seq(expressions), keys, ordered, child)

    def aggregate(self, grouping: Iterable[Expression], expressions: Iterable[Expression], child: Plan) -> Plan:
        return self._plans.Aggregate(self._scala.seq(grouping), self._scala.seq(expressions), child)

    def one_partition(self, child: Plan) -> Plan:
        """The child's rows in one partition, without a shuffle."""
        return self._repartition(1, False, child)

    def equal_keys(self, join: Plan) -> tuple[list[Expression], list[Expression]] | None:
        """The expressions of the left and of the right side whose equality a join asks for; None without them.

        A null has no partner.  An equality that holds for nulls too comes as expressions that are never null.
        """
        found = self._scala.singleton("catalyst.planning.ExtractEquiJoinKeys").unapply(join)
        return (self._trees.items(found.get()._2()), self._trees.items(found.get()._3())) if found.isDefined() else None

"""Physical plans: makes, prepares and runs them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.sql import SparkSession

from spark_bridge.engine.catalyst.queries import Queries
from spark_bridge.engine.catalyst.scala import Scala
from spark_bridge.engine.catalyst.trees import Expression, PhysicalPlan, Plan, Trees, simple_name


class PhysicalPlans:
    """Makes and runs physical plans.

    Attributes:
        classes: Spark's classes of physical plans, whose constructors depend on the version of Spark.
    """

    def __init__(self, spark: SparkSession, scala: Scala, trees: Trees, queries: Queries) -> None:
        self._session: Any = spark._jsparkSession
        self._scala, self._trees, self._queries, self._jvm = scala, trees, queries, scala.jvm
        self.classes: Any = self._jvm.org.apache.spark.sql.execution
        self._prepare = self.classes.QueryExecution.prepareExecutedPlan

    def plan_of(self, plan: Plan) -> PhysicalPlan:
        """The physical plan of an analysed plan, before Spark prepares it for execution."""
        self._queries.set_active()
        return self._queries.execution(plan).sparkPlan()

    def prepared(self, plan: PhysicalPlan) -> PhysicalPlan:
        """A physical plan, prepared by Spark for execution."""
        self._queries.set_active()
        return self._prepare(self._session, plan)

    def shuffled(self, keys: Any, partitions: int, rows: PhysicalPlan) -> PhysicalPlan:
        """The rows, partitioned by the hash of their keys (a Seq)."""
        partitioning = self._jvm.org.apache.spark.sql.catalyst.plans.physical.HashPartitioning(keys, partitions)
        origin = self._scala.singleton("execution.exchange.ENSURE_REQUIREMENTS")
        return self.classes.exchange.ShuffleExchangeExec(partitioning, rows, origin, self._scala.none())

    def scan(self, output: Any, rdd: Any) -> PhysicalPlan:
        """A leaf with the given attributes (a Seq) over the rows of an RDD, a Java object."""
        return self._scan(output, rdd, self._jvm.org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning(0))

    def scan_of_one(self, output: Any, rdd: Any) -> PhysicalPlan:
        """As `scan`, of an RDD of one partition."""
        return self._scan(output, rdd, self._scala.singleton("catalyst.plans.physical.SinglePartition"))

    def _scan(self, output: Any, rdd: Any, partitioning: Any) -> PhysicalPlan:
        return self.classes.RDDScanExec(output, rdd, "rows of a leaf", partitioning, self._scala.no_elements)

    def project(self, expressions: Iterable[Expression], rows: PhysicalPlan) -> PhysicalPlan:
        return self.classes.ProjectExec(self._scala.seq(expressions), rows)

    def union(self, plans: Iterable[PhysicalPlan]) -> PhysicalPlan:
        """The rows of several plans with the same attributes."""
        return self.classes.UnionExec(self._scala.seq(plans))

    def one_partition(self, rows: PhysicalPlan) -> PhysicalPlan:
        """The rows in one partition, without a shuffle."""
        return self.classes.CoalesceExec(1, rows)

    def unions_in_one_partition(self, plan: PhysicalPlan) -> PhysicalPlan:
        """The plan with the rows of each union in one partition, without a shuffle."""
        children = self._trees.items(plan.children())
        if not children:
            return plan
        made = self._trees.with_children(plan, map(self.unions_in_one_partition, children))
        return self.one_partition(made) if simple_name(plan) == "UnionExec" else made

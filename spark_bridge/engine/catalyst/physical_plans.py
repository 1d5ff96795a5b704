"""Physical plans: makes, prepares and runs them, and compiles expressions for single rows."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from spark_bridge.engine.catalyst.expressions import Expressions
from spark_bridge.engine.catalyst.queries import Queries
from spark_bridge.engine.catalyst.scala import Scala
from spark_bridge.engine.catalyst.trees import Expression, PhysicalPlan, Plan


class PhysicalPlans:
    """Makes and runs physical plans.

    Attributes:
        classes: Spark's classes of physical plans, whose constructors depend on the version of Spark.
    """

    def __init__(self, spark: SparkSession, scala: Scala, queries: Queries, expressions: Expressions) -> None:
        self._session: Any = spark._jsparkSession
        self._scala, self._queries, self._jvm = scala, queries, scala.jvm
        self._expression_classes = expressions.classes
        self.classes: Any = self._jvm.org.apache.spark.sql.execution
        self._prepare = self.classes.QueryExecution.prepareExecutedPlan

    def plan_of(self, plan: Plan) -> PhysicalPlan:
        """The physical plan of an analysed plan, before Spark prepares it for execution."""
        self._queries.set_active()
        return self._queries.execution(plan).sparkPlan()

    def prepared(self, plan: PhysicalPlan) -> PhysicalPlan:
        """A physical plan, prepared by Spark for execution."""
        return self._prepare(self._session, plan)

    def rows_of(self, plan: PhysicalPlan) -> Any:
        """Runs a physical plan as a job.  Returns an iterator of its rows, in the driver."""
        return self.prepared(plan).executeCollectIterator()._2()

    def shuffled(self, keys: Any, partitions: int, rows: PhysicalPlan) -> PhysicalPlan:
        """The rows, partitioned by the hash of their keys (a Seq)."""
        partitioning = self._jvm.org.apache.spark.sql.catalyst.plans.physical.HashPartitioning(keys, partitions)
        origin = self._scala.singleton("execution.exchange.ENSURE_REQUIREMENTS")
        return self.classes.exchange.ShuffleExchangeExec(partitioning, rows, origin, self._scala.none())

    def rows_to_come(self, output: Any) -> PhysicalPlan:
        """A physical leaf with the given attributes (a Seq): one partition without rows, in place of which others come.

        Its RDD reads the partition that it is asked for.
        """
        context = self._jvm.org.apache.spark.api.java.JavaSparkContext(self._session.sparkContext())
        rdd = context.parallelize(self._jvm.java.util.ArrayList(), 1).rdd()
        single = self._scala.singleton("catalyst.plans.physical.SinglePartition")
        return self.classes.RDDScanExec(output, rdd, "rows to come", single, self._scala.no_elements)

    def compiled(self, expressions: Any, rows: Any) -> Any:
        """A Scala function from an internal row to an internal row, whose memory the next call uses again.

        Args:
            expressions: a Seq of expressions over the rows.
            rows: the attributes of the rows (a Seq).
        """
        return self._expression_classes.UnsafeProjection.create(expressions, rows)

    def compiled_condition(self, condition: Expression, rows: Any) -> Any:
        """Spark's predicate of an internal row.  Arguments as for `compiled`."""
        return self._scala.singleton("catalyst.expressions.Predicate").create(condition, rows)

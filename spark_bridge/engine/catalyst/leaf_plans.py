"""Leaves of logical plans: rows of the driver, of DataFrames and of nothing, under given attributes."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_bridge.engine.catalyst.arrow_frames import frame_of_table
from spark_bridge.engine.catalyst.expressions import Expressions
from spark_bridge.engine.catalyst.logical_plans import LogicalPlans
from spark_bridge.engine.catalyst.queries import analysed
from spark_bridge.engine.catalyst.scala import Scala
from spark_bridge.engine.catalyst.schemas import Schemas
from spark_bridge.engine.catalyst.trees import Plan, Trees, simple_name

UNREADABLE = "Can't zip RDDs with unequal numbers of partitions: List(0, 1)"
"""Part of the message of the error of a query that reads `LeafPlans.unreadable_rows`."""


class LeafPlans:
    """Builds leaves."""

    def __init__(
        self,
        spark: SparkSession,
        scala: Scala,
        trees: Trees,
        schemas: Schemas,
        expressions: Expressions,
        plans: LogicalPlans,
    ) -> None:
        self._spark, self._scala, self._trees, self._schemas = spark, scala, trees, schemas
        self._expressions, self._plans = expressions, plans
        self._session: Any = spark._jsparkSession
        self._jvm = scala.jvm
        self._local_relation = self._jvm.org.apache.spark.sql.catalyst.plans.logical.LocalRelation
        self._execution_classes: Any = self._jvm.org.apache.spark.sql.execution

    def local_relation(self, output: Any, data: Any = None) -> Plan:
        """Rows of the driver, under the given attributes (a Seq); no rows without `data`."""
        return self._local_relation(output, self._scala.seq([]) if data is None else data, False)

    def leaf(self, output: Any, frame: DataFrame) -> Plan:
        """The frame's rows as a leaf under other attributes (a Seq) of the same names and types.

        An attribute that the frame lacks is null; the columns of the frame are in the order of the attributes.
        """
        attributes, names = self._trees.items(output), set(frame.columns)
        present = [each for each in attributes if each.name() in names]
        rows = self._leaf(self._scala.seq(present), frame)
        if len(present) == len(attributes):
            return rows
        values = [
            each if each.name() in names else self._expressions.alias_as(self._expressions.null(each.dataType()), each)
            for each in attributes
        ]
        return self._plans.project(values, rows)

    def unreadable_rows(self, output: Any) -> Plan:
        """A leaf with the given attributes (a Seq) that can be analysed; a query that reads it fails in the driver.

        The message of its error holds `UNREADABLE`.
        """
        context = self._jvm.org.apache.spark.api.java.JavaSparkContext(self._session.sparkContext())
        # Spark finds the mistake when it asks for the partitions, before any job.
        mismatched = context.emptyRDD().zip(context.parallelize(self._jvm.java.util.ArrayList(), 1)).rdd()
        unknown = self._jvm.org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning(0)
        return self._logical_rdd(output, mismatched, unknown)

    def unknown_rows(self, output: Any, frame: DataFrame) -> Plan:
        """The frame's rows under other attributes (a Seq), as a leaf whose rows the optimizer does not see."""
        execution = frame._jdf.queryExecution()
        return self._logical_rdd(output, execution.toRdd(), execution.executedPlan().outputPartitioning())

    def over_unseen_rows(self, plan: Plan) -> Plan:
        """The plan over a leaf whose rows the optimizer does not see: one without rows would make the result empty."""
        [leaf] = self._trees.leaves(plan)
        empty = frame_of_table(self._spark, self._schemas.arrow_schema(leaf).empty_table())
        return self._trees.over_leaf(plan, self.unknown_rows(leaf.output(), empty))

    def _leaf(self, output: Any, frame: DataFrame) -> Plan:
        rows = analysed(frame)
        if simple_name(rows) == "LocalRelation":
            return self.local_relation(output, rows.data())
        if simple_name(rows) == "LogicalRDD":
            return self._logical_rdd(output, rows.rdd(), rows.outputPartitioning())
        return self.unknown_rows(output, frame)

    def _logical_rdd(self, output: Any, rdd: Any, partitioning: Any) -> Plan:
        return self._execution_classes.LogicalRDD(
            output, rdd, partitioning, self._scala.seq([]), False, self._session, self._scala.none(), self._scala.none()
        )

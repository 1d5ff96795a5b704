"""Leaves of logical plans: rows of the driver, of DataFrames and of nothing, under given attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spark_bridge.engine.catalyst.arrow_frames import arrow_schema
from spark_bridge.engine.catalyst.expressions import Expressions
from spark_bridge.engine.catalyst.logical_plans import LogicalPlans
from spark_bridge.engine.catalyst.queries import analysed
from spark_bridge.engine.catalyst.scala import Scala
from spark_bridge.engine.catalyst.schemas import Schemas
from spark_bridge.engine.catalyst.trees import Expression, Plan, Trees, simple_name

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

    def local_relation(self, output: Any) -> Plan:
        """A leaf without rows, under the given attributes (a Seq)."""
        return self._local_relation(output, self._scala.no_elements, False)

    def unreadable_rows(self, output: Any) -> Plan:
        """A leaf with the given attributes (a Seq) that can be analysed; a query that reads it fails in the driver.

        The message of its error holds `UNREADABLE`.
        """
        context = self._jvm.org.apache.spark.api.java.JavaSparkContext(self._session.sparkContext())
        # Spark finds the mistake when it asks for the partitions, before any job.
        mismatched = context.emptyRDD().zip(context.parallelize(self._jvm.java.util.ArrayList(), 1)).rdd()
        unknown = self._jvm.org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning(0)
        return self._logical_rdd(output, mismatched, unknown)

    def over_unseen_rows(self, plan: Plan) -> Plan:
        """The plan over leaves whose rows the optimizer does not see: one without rows would make a result empty."""
        children = self._trees.items(plan.children())
        if children:
            return self._trees.with_children(plan, map(self.over_unseen_rows, children))
        unknown = self._jvm.org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning(0)
        context = self._jvm.org.apache.spark.api.java.JavaSparkContext(self._session.sparkContext())
        return self._logical_rdd(plan.output(), context.emptyRDD().rdd(), unknown)

    def rdd_of(self, frame: DataFrame) -> Any:
        """The rows of a frame as an RDD of Spark's internal rows; their types may be nested."""
        rows = analysed(frame)
        if simple_name(rows) != "LogicalRDD":
            return frame._jdf.queryExecution().toRdd()
        if not any(map(pa.types.is_nested, arrow_schema(frame.schema).types)):
            return rows.rdd()
        # An array over Arrow's columns fails on a null element, so the rows become rows of Spark's own format.
        unknown = self._jvm.org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning(0)
        scan = self._execution_classes.RDDScanExec(rows.output(), rows.rdd(), "rows", unknown, self._scala.no_elements)
        return scan.execute()

    def scan_columns(
        self, schema: pa.Schema, output: Any, constants: Mapping[str, int]
    ) -> tuple[Any, list[Expression] | None]:
        """The attributes of a scan of rows for a leaf, and the leaf's columns over them; None if these are the same.

        Args:
            schema: the columns of the rows.
            output: the attributes of the leaf (a Seq); one whose column the rows lack is null.
            constants: columns that have the same value in all rows.
        """
        leaf = {each.name(): each for each in self._trees.items(output)}
        names = schema.names
        if names == [*leaf]:
            return output, None
        fresh = self._schemas.attributes(schema)
        scanned = [leaf.get(name, each) for name, each in zip(names, fresh, strict=True)]
        columns = [
            each if name in names else self._expressions.alias_as(self._constant(constants.get(name), each), each)
            for name, each in leaf.items()
        ]
        return self._scala.seq(scanned), columns

    def _constant(self, value: int | None, attribute: Expression) -> Expression:
        kind = attribute.dataType()
        if value is None:
            return self._expressions.null(kind)
        return self._expressions.cast(self._expressions.number(value), kind)

    def _logical_rdd(self, output: Any, rdd: Any, partitioning: Any) -> Plan:
        return self._execution_classes.LogicalRDD(
            output, rdd, partitioning, self._scala.seq([]), False, self._session, self._scala.none(), self._scala.none()
        )

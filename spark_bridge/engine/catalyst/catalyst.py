"""Catalyst from Python: one interface to the parts that build and inspect Spark's plans and expressions over py4j.

A call costs about 0.05 ms, so a plan is inspected and rebuilt once, by the analysis of a view; an epoch only replaces
its leaves.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from spark_bridge.engine.catalyst.expressions import Expressions
from spark_bridge.engine.catalyst.functions import Functions
from spark_bridge.engine.catalyst.leaf_plans import LeafPlans
from spark_bridge.engine.catalyst.logical_plans import LogicalPlans
from spark_bridge.engine.catalyst.physical_plans import PhysicalPlans
from spark_bridge.engine.catalyst.queries import Queries
from spark_bridge.engine.catalyst.query_count import QueryCount
from spark_bridge.engine.catalyst.scala import Scala
from spark_bridge.engine.catalyst.schemas import Schemas
from spark_bridge.engine.catalyst.trees import Trees


class Catalyst:
    """The part of Catalyst that view maintenance needs, for one session.

    A user of one part takes this part, not the whole.  For another version of Spark, the parts whose constructors of
    Spark differ get another class.

    Attributes:
        spark: the session.
        scala: Scala's collections and objects.
        trees: reads and rebuilds plans and expressions of any kind.
        schemas: types and schemas.
        expressions: builds expressions over the columns of a row.
        functions: builds calls over several rows, aggregates and windows.
        plans: builds logical operators over other plans.
        rows: builds leaves.
        queries: parses and analyses queries, and turns plans into DataFrames.
        physical: makes and runs physical plans.
        query_count: counts the queries that Spark plans.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.scala = Scala(spark)
        self.trees = Trees(spark, self.scala)
        self.schemas = Schemas(spark, self.scala, self.trees)
        self.expressions = Expressions(self.scala, self.trees)
        self.functions = Functions(self.scala, self.expressions)
        self.plans = LogicalPlans(self.scala, self.trees, self.expressions)
        self.rows = LeafPlans(spark, self.scala, self.trees, self.schemas, self.expressions, self.plans)
        self.queries = Queries(spark, self.scala)
        self.physical = PhysicalPlans(spark, self.scala, self.trees, self.queries)
        self.query_count = QueryCount(self.scala)
        self._others: dict[int, Catalyst] = {}

    def of_session_with(self, shuffle_partitions: int) -> Catalyst:
        """That of another session, whose shuffles have so many partitions; the same one each time."""
        if shuffle_partitions not in self._others:
            session = self.spark.newSession()
            session.conf.set("spark.sql.shuffle.partitions", str(shuffle_partitions))
            self._others[shuffle_partitions] = Catalyst(session)
        return self._others[shuffle_partitions]

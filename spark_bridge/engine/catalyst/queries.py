"""Queries: parses, analyses and optimizes them, and turns plans into DataFrames."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession

from spark_bridge.engine.catalyst.scala import Scala
from spark_bridge.engine.catalyst.trees import Expression, Plan


class Queries:
    """The steps of Spark between a text and a plan, and between a plan and a DataFrame."""

    def __init__(self, spark: SparkSession, scala: Scala) -> None:
        self._spark, self._scala, self._jvm = spark, scala, scala.jvm
        self._session: Any = spark._jsparkSession
        self._set_active = self._jvm.org.apache.spark.sql.SparkSession.setActiveSession
        self._state: Any = self._session.sessionState()
        self._without_commands: Any = self._jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()

    def parse(self, query: str) -> Plan:
        """The plan of a query, with the ANSI mode and the time zone of the session."""
        self.set_active()
        return self._session.sessionState().sqlParser().parsePlan(query)

    def analyse(self, plan: Plan) -> Plan:
        """The analysed plan.  Commands are not executed."""
        execution = self.execution(plan)
        execution.assertAnalyzed()
        return execution.analyzed()

    def execution(self, plan: Plan) -> Any:
        return self._state.executePlan(plan, self._without_commands)

    def optimized(self, rule: str, plan: Plan) -> Plan:
        """The plan after one rule of Spark's optimizer."""
        return self._scala.singleton(f"catalyst.optimizer.{rule}").apply(plan)

    def prune_columns(self, plan: Plan) -> Plan:
        """The plan with unused columns projected away as early as possible."""
        return self._jvm.org.apache.spark.sql.catalyst.optimizer.ColumnPruning.apply(plan)

    def inline_common_tables(self, plan: Plan) -> Plan:
        """The plan with every WITH expanded at its uses."""
        return self._jvm.org.apache.spark.sql.catalyst.optimizer.InlineCTE(True).apply(plan)

    def frame(self, plan: Plan) -> DataFrame:
        """A DataFrame that runs an analysed plan."""
        return DataFrame(self._jvm.org.apache.spark.sql.Dataset.ofRows(self._session, plan), self._spark)

    def column(self, expression: Expression) -> Column:
        """The expression as a Column, for pyspark's functions."""
        return Column(self._jvm.org.apache.spark.sql.Column(expression))

    @staticmethod
    def expression(column: Column) -> Expression:
        return column._jc.expr()

    def set_active(self) -> None:
        """Makes the session the active one of this thread, whose settings Spark's planner reads."""
        self._set_active(self._session)


def analysed(frame: DataFrame) -> Plan:
    """The analysed plan of a DataFrame."""
    return frame._jdf.queryExecution().analyzed()

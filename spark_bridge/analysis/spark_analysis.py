"""Spark's analysis of a declared view: its query, or the result of its function, over empty sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark_bridge.analysis.view_definition import ViewDefinition
from spark_bridge.catalyst.arrow_frames import spark_schema
from spark_bridge.catalyst.catalyst import UNREADABLE, Catalyst, Plan, analysed
from spark_bridge.session.spark_errors import one_line
from state.errors import ViewError

LEAVES = frozenset({"LocalRelation", "LogicalRDD"})
"""The operators that stand for a source in an analysed plan, below the temporary view with its name."""


class SourceWithoutSchemaError(ViewError):
    """The view reads a source whose schema is not known yet: analyse it again later."""


class SparkAnalysis:
    """Makes the analysed plan of one view.  Nothing is executed.

    Args:
        spark: the session.
        catalyst: of the session.
        definition: of the view.
        schemas: source → its schema, None while it is not known; all declared sources.
    """

    def __init__(
        self,
        spark: SparkSession,
        catalyst: Catalyst,
        definition: ViewDefinition,
        schemas: Mapping[str, pa.Schema | None],
    ) -> None:
        self._spark, self._catalyst = spark, catalyst
        self._definition, self._schemas = definition, schemas
        self._name = definition.name

    def analysed_plan(self) -> Plan:
        """The analysed plan of the view, with every WITH expanded.

        Raises:
            ViewError: the query or the function is invalid, or reads an unknown source.
            SourceWithoutSchemaError: it reads a source whose schema is not known yet.
        """
        with self._source_views():
            plan = self._of_query() if self._definition.function is None else self._of_function()
        plan = self._catalyst.inline_common_tables(plan)
        if self._catalyst.is_instance(plan, "catalyst.plans.logical.Command"):
            raise ViewError(f"view {self._name!r}: {plan.nodeName()} is not a query; write a SELECT over a source")
        return plan

    @property
    def declared_sources(self) -> str:
        """The names of the declared sources, for messages."""
        return ", ".join(sorted(self._schemas)) or "none"

    @contextmanager
    def _source_views(self) -> Iterator[None]:
        """Temporary views for the sources whose schema is known: without rows, and unreadable for a function."""
        known = {name: schema for name, schema in self._schemas.items() if schema is not None}
        for name, schema in known.items():
            struct = spark_schema(pa.schema([field.with_nullable(True) for field in schema]))
            empty = self._spark._jvm.java.util.ArrayList()
            session = self._spark._jsparkSession
            frame = session.createDataFrame(empty, session.parseDataType(struct.json()))
            if self._definition.function is not None:
                output = frame.queryExecution().analyzed().output()
                frame = self._catalyst.frame(self._catalyst.unreadable_rows(output))._jdf
            frame.createOrReplaceTempView(name)
        try:
            yield
        finally:
            for name in known:
                self._spark.catalog.dropTempView(name)

    def _of_query(self) -> Plan:
        try:
            return self._catalyst.analyse(self._catalyst.parse(self._definition.query or ""))
        except PySparkException as error:
            raise self._spark_error(error) from None

    def _of_function(self) -> Plan:
        function = self._definition.function
        assert function is not None
        for name in self._definition.parameters:
            if name not in self._schemas:
                raise self._unknown_source(name)
            if self._schemas[name] is None:
                raise self._without_schema(name)
        try:
            frame = function(**{name: self._spark.table(name) for name in self._definition.parameters})
        except ViewError:
            raise
        except Exception as error:
            if UNREADABLE in str(error):
                raise ViewError(
                    f"view {self._name!r}: its function reads rows while it is declared, when there are none (collect, "
                    "count, toPandas, pivot without values, ...); it must only build a DataFrame: write the value as a "
                    'subquery or a join, with on_full="allow"'
                ) from None
            if isinstance(error, PySparkException):
                raise self._spark_error(error) from None
            # The user's code: each error that it raises is an error of the view.
            raise ViewError(f"view {self._name!r}: its function raised {type(error).__name__}: {error}") from error
        if not isinstance(frame, DataFrame):
            raise ViewError(
                f"view {self._name!r}: its function returned {type(frame).__name__}; it must return a Spark DataFrame"
            )
        return analysed(frame)

    def _spark_error(self, error: PySparkException) -> ViewError:
        if error.getErrorClass() == "TABLE_OR_VIEW_NOT_FOUND":
            name = (error.getMessageParameters() or {}).get("relationName", "").replace("`", "")
            if name in self._schemas:
                return self._without_schema(name)
            return self._unknown_source(name)
        return ViewError(f"view {self._name!r}: {one_line(error)}")

    def _unknown_source(self, name: str) -> ViewError:
        return ViewError(
            f"view {self._name!r} reads {name!r}, which is not a source; declared are {self.declared_sources}"
        )

    def _without_schema(self, name: str) -> ViewError:
        return SourceWithoutSchemaError(f"view {self._name!r} waits for the schema of source {name!r}")

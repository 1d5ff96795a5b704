"""Spark's analysis of a declared view: its query, or the result of its function, over empty sources and parents.

A view that another one expands is analysed in the plan of that one, as Spark does with temporary views.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark_bridge.engine.catalyst.arrow_frames import spark_schema
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.current_rows import RowKeys, current_rows
from spark_bridge.engine.catalyst.leaf_plans import UNREADABLE
from spark_bridge.engine.catalyst.queries import analysed
from spark_bridge.engine.catalyst.trees import Plan, parts_of, simple_name
from spark_bridge.engine.session.spark_errors import one_line
from spark_bridge.plans.planned_view import PlannedView
from spark_bridge.plans.view_definition import ViewDefinition
from state.errors import ViewError

LEAVES = frozenset({"LocalRelation", "LogicalRDD"})
"""The operators that stand for a source in an analysed plan, below the temporary view with its name."""


def names_read(catalyst: Catalyst, definition: ViewDefinition, names: Collection[str]) -> frozenset[str]:
    """The sources or views among `names` that a view reads, by its text alone.

    A name that the query gives to a WITH is among them, if a source or a view has it too.

    Args:
        names: the names to look for; upper and lower case are the same.
    """
    if definition.query is None:
        return definition.mentions(names)
    try:
        plans = [catalyst.queries.parse(definition.query)]
    except PySparkException:
        return definition.mentions(names)  # the analysis says what is wrong
    read = set()
    while plans:
        for part in parts_of(catalyst.trees, plans.pop()):
            match simple_name(part):
                case "UnresolvedRelation":
                    read.add(str(part.multipartIdentifier().mkString(".")).lower())
                case "UnresolvedWith":
                    plans += [each._2() for each in catalyst.trees.items(part.cteRelations())]
    return frozenset(name for name in names if name.lower() in read)


class SourceWithoutSchemaError(ViewError):
    """The view reads a source whose schema is not known yet: analyse it again later."""


class AnalysisFailedError(ViewError):
    """The analysis of a view failed, although its text may be right: its function raised, or Spark or Slackwater did.

    Args:
        reason: the class and message of the error.
        message: the whole message; None: it is made of the view and the reason.
    """

    def __init__(self, view: str, reason: str, message: str | None = None) -> None:
        super().__init__(message or f"view {view!r} cannot be analysed: {reason}")
        self.reason = reason


class SparkAnalysis:
    """Makes the analysed plan of one view.  Nothing is executed.

    Args:
        schemas: source → its schema, None while it is not known; all declared sources.
        views: name → view, of those that it may read.
        absent: name → error of each declared view that it cannot read; raised if it does.
        unreadable: whether the rows of the sources raise when they are read, as a function of the user must not.
        keys: the sources of which views see the last row of each key.
    """

    def __init__(
        self,
        spark: SparkSession,
        catalyst: Catalyst,
        definition: ViewDefinition,
        schemas: Mapping[str, pa.Schema | None],
        views: Mapping[str, PlannedView] = MappingProxyType({}),
        absent: Mapping[str, ViewError] = MappingProxyType({}),
        *,
        unreadable: bool = False,
        keys: RowKeys = MappingProxyType({}),
    ) -> None:
        self._spark, self._catalyst, self._absent = spark, catalyst, absent
        self._definition, self._schemas, self._views = definition, schemas, views
        self._name, self._keys = definition.name, keys
        self._unreadable = unreadable or definition.function is not None

    def analysed_plan(self) -> Plan:
        """The analysed plan of the view, with every WITH expanded.

        Raises:
            ViewError: the query or the function is invalid, or reads an unknown source.
            SourceWithoutSchemaError: it reads a source whose schema is not known yet.
        """
        with self._tables(self._view_frames()):
            plan = self._of_query() if self._definition.function is None else self._of_function()
        plan = self._catalyst.queries.inline_common_tables(plan)
        if self._catalyst.trees.is_instance(plan, "catalyst.plans.logical.Command"):
            raise ViewError(f"view {self._name!r}: {plan.nodeName()} is not a query; write a SELECT over a source")
        return plan

    @property
    def declared_sources(self) -> str:
        """The names of the declared sources, for messages."""
        return ", ".join(sorted(self._schemas)) or "none"

    def _view_frames(self) -> dict[str, DataFrame]:
        """Name → frame of each view that it may read.

        They are made before its own tables: a view may know fewer columns of the same source.
        """
        return {name: self._view_frame(each) for name, each in self._views.items()}

    def _view_frame(self, view: PlannedView) -> DataFrame:
        if view.plan.is_read_as_stored:
            return self._empty(view.plan.schema)
        analysis = SparkAnalysis(
            self._spark,
            self._catalyst,
            view.definition,
            view.schemas,
            view.views,
            unreadable=self._unreadable,
            keys=self._keys,
        )
        return self._catalyst.queries.frame(analysis.analysed_plan())

    @contextmanager
    def _tables(self, views: Mapping[str, DataFrame]) -> Iterator[None]:
        """Temporary views for the sources whose schema is known, without rows, and for the views."""
        known = {name: schema for name, schema in self._schemas.items() if schema is not None}
        frames = {**{name: self._empty(_nullable(schema)) for name, schema in known.items()}, **views}
        try:
            for name, frame in frames.items():
                frame.createOrReplaceTempView(name)
                if name in self._keys:
                    self._current(name).createOrReplaceTempView(name)
            yield
        finally:
            for name in frames:
                self._spark.catalog.dropTempView(name)

    def _current(self, source: str) -> DataFrame:
        """The rows that views see of a source with a key, over the temporary view of all of its rows."""
        rows, key = self._spark.table(source), self._keys[source]
        self._spark.catalog.dropTempView(source)
        try:
            return current_rows(rows, key)
        except PySparkException as error:
            raise ViewError(
                f"source {source!r}: Key(deleted={key.deleted!r}) must be a condition over its columns: "
                f"{one_line(error)}"
            ) from None

    def _empty(self, schema: pa.Schema) -> DataFrame:
        struct = spark_schema(schema)
        session, empty = self._spark._jsparkSession, self._spark._jvm.java.util.ArrayList()
        frame = DataFrame(session.createDataFrame(empty, session.parseDataType(struct.json())), self._spark)
        if not self._unreadable:
            return frame
        return self._catalyst.queries.frame(self._catalyst.rows.unreadable_rows(analysed(frame).output()))

    def _of_query(self) -> Plan:
        try:
            return self._catalyst.queries.analyse(self._catalyst.queries.parse(self._definition.query or ""))
        except PySparkException as error:
            raise self._spark_error(error) from None

    def _of_function(self) -> Plan:
        function = self._definition.function
        assert function is not None
        for name in self._definition.parameters:
            if name in self._views:
                continue
            if name not in self._schemas:
                raise self._unreadable_name(name)
            if self._schemas[name] is None:
                raise self._without_schema(name)
        try:
            frame = function(**{name: self._spark.table(name) for name in self._definition.parameters})
        except ViewError:
            raise
        except BaseException as error:  # also `SystemExit`: it is the user's code, in a thread that gets no signals
            if UNREADABLE in str(error):
                raise ViewError(
                    f"view {self._name!r}: its function reads rows while it is declared, when there are none (collect, "
                    "count, toPandas, pivot without values, ...); it must only build a DataFrame: write the value as a "
                    'subquery or a join, with on_full="allow"'
                ) from None
            if isinstance(error, PySparkException):
                raise self._spark_error(error) from None
            # The user's code: each error that it raises is an error of the view.
            raised = f"its function raised {type(error).__name__}: {error}"
            raise AnalysisFailedError(self._name, raised, f"view {self._name!r}: {raised}") from error
        if not isinstance(frame, DataFrame):
            raise ViewError(
                f"view {self._name!r}: its function returned {type(frame).__name__}; it must return a Spark DataFrame"
            )
        try:
            return analysed(self._definition.own_rows(frame))
        except PySparkException as error:
            raise self._spark_error(error) from None

    def _spark_error(self, error: PySparkException) -> ViewError:
        if error.getErrorClass() == "TABLE_OR_VIEW_NOT_FOUND":
            name = (error.getMessageParameters() or {}).get("relationName", "").replace("`", "")
            if name in self._schemas:
                return self._without_schema(name)
            return self._unreadable_name(name)
        return ViewError(f"view {self._name!r}: {one_line(error)}")

    def _unreadable_name(self, name: str) -> ViewError:
        absent = next((error for each, error in self._absent.items() if each.casefold() == name.casefold()), None)
        return absent or ViewError(
            f"view {self._name!r} reads {name!r}, which is neither a source nor a view; "
            f"declared are {', '.join(sorted({*self._schemas, *self._views, *self._absent}))}"
        )

    def _without_schema(self, name: str) -> ViewError:
        return SourceWithoutSchemaError(f"view {self._name!r} waits for the schema of source {name!r}")


def _nullable(schema: pa.Schema) -> pa.Schema:
    """The schema of a source, whose columns may all be null."""
    return pa.schema([field.with_nullable(True) for field in schema])

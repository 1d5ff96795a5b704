"""Conditions of Spark's SQL over the rows of a view, one row at a time."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType

from spark_bridge.engine.catalyst.arrow_frames import frame_of_table
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.queries import analysed
from spark_bridge.engine.catalyst.trees import Plan, simple_name
from spark_bridge.engine.execution.planned_once import TableQuery
from spark_bridge.engine.session.spark_errors import ends_run, one_line
from spark_bridge.engine.session.spark_jobs import SparkJobs
from state.errors import ViewError
from state.tables.lance_layout import for_lance, with_schema

_ANALYSED, _COMPUTED = "while its expectations were analysed", "over rows that expectations are about"
_OF_TIME = "CURRENT_LIKE"
_OF_QUERIES = "PLAN_EXPRESSION"


class RowConditions:
    """Computes whether rows fulfil conditions; a condition that is null for a row is not fulfilled.

    Few rows are computed in the driver, by code that Spark compiles once.

    Args:
        view: the name of the view, for messages.
        schema: the columns of its rows.
        conditions: name → condition.

    Raises:
        ViewError: a condition is no SQL, names another column, or is not a condition over one row.
        SparkLostError: the Spark application is gone.
    """

    def __init__(
        self, spark: SparkSession, jobs: SparkJobs, view: str, schema: pa.Schema, conditions: Mapping[str, str]
    ) -> None:
        self._spark, self._jobs, self._view = spark, jobs, view
        self._schema = pa.schema([field.with_nullable(True) for field in schema])
        self._conditions = dict(conditions)
        self._queries: dict[tuple[str, ...], TableQuery] = {}
        if self._conditions:
            jobs.run("view", _ANALYSED, {view: self._check_all})

    def unfulfilled(self, rows: pa.Table) -> tuple[dict[str, pa.Array], dict[str, str]]:
        """Name → True for each row that does not fulfil the condition; and name → the error of those that fail.

        Args:
            rows: with the columns of the view.

        Raises:
            SparkLostError, StorageFullError, RunFailedError: as `SparkJobs.run`.
        """
        return self._jobs.run("view", _COMPUTED, {self._view: partial(self._unfulfilled, rows)})[self._view]

    @cached_property
    def _catalyst(self) -> Catalyst:
        return Catalyst(self._spark)

    @cached_property
    def _empty(self) -> DataFrame:
        return frame_of_table(self._spark, self._schema.empty_table())

    def _check_all(self) -> None:
        for name, condition in self._conditions.items():
            self._check(f"view {self._view!r}: expectation {name!r}", condition)

    def _unfulfilled(self, rows: pa.Table) -> tuple[dict[str, pa.Array], dict[str, str]]:
        rows = with_schema(for_lance(rows.select(self._schema.names)), self._schema)
        try:
            return self._computed(list(self._conditions), rows), {}
        except (PySparkException, Py4JError) as error:
            if isinstance(error, Py4JNetworkError) or ends_run(error):
                raise
        found, errors = dict[str, pa.Array](), dict[str, str]()
        for name in self._conditions:
            try:
                found |= self._computed([name], rows)
            except (PySparkException, Py4JError) as error:
                if isinstance(error, Py4JNetworkError) or ends_run(error):
                    raise
                errors[name] = one_line(error)
        return found, errors

    def _computed(self, names: list[str], rows: pa.Table) -> dict[str, pa.Array]:
        schema = pa.schema([(f"c{number}", pa.bool_()) for number in range(len(names))])
        table = self._query(tuple(names)).table(rows, schema)
        return {name: table.column(number).combine_chunks() for number, name in enumerate(names)}

    def _query(self, names: tuple[str, ...]) -> TableQuery:
        """The conditions over rows of the view, planned once."""
        if names not in self._queries:
            conditions = (F.coalesce(F.expr(self._conditions[name]), F.lit(False)) for name in names)
            frame = self._empty.select(*((~each).alias(f"c{at}") for at, each in enumerate(conditions)))
            self._queries[names] = TableQuery(self._catalyst, analysed(frame))
        return self._queries[names]

    def _check(self, where: str, condition: str) -> None:
        try:
            frame = self._empty.select(F.expr(condition))
            kind = frame.schema[0].dataType if len(frame.schema) == 1 else None
        except PySparkException as error:
            columns = ", ".join(self._schema.names)
            raise ViewError(
                f"{where}: {one_line(error)}; write a condition of Spark's SQL over the columns {columns}"
            ) from None
        if not isinstance(kind, BooleanType):
            shown = "several columns" if kind is None else f"a value of type {kind.simpleString()}"
            raise ViewError(f"{where}: {condition!r} is {shown}; write a condition, such as 'amount > 0'")
        if not self._is_of_one_row(analysed(frame)):
            raise ViewError(
                f"{where}: {condition!r} has no one value for a row: it uses an aggregate, a window, a query, the time "
                "or chance; compute that in the view, and compare its column"
            )

    def _is_of_one_row(self, plan: Plan) -> bool:
        if simple_name(plan) != "Project" or self._catalyst.trees.items(plan.child().children()):
            return False
        varies = self._catalyst.trees.may_have(plan, _OF_TIME) or self._catalyst.trees.may_have(plan, _OF_QUERIES)
        return not varies and all(each.deterministic() for each in self._catalyst.trees.items(plan.projectList()))

"""The plans of all declared views, each over the columns that it knows; only changed views are analysed again."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from spark_bridge.analysis.analysis import analyse
from spark_bridge.analysis.columns import visible_schemas
from spark_bridge.analysis.planned_view import PlannedView
from spark_bridge.analysis.spark_analysis import SourceWithoutSchemaError
from spark_bridge.analysis.view_definition import ViewDefinition
from spark_bridge.session.spark_jobs import SparkJobs
from state.errors import ViewError
from state.tables.records import CatalogView
from state.tables.stored_rows import next_name

_Schemas = Mapping[str, "pa.Schema | None"]


class ViewPlanner:
    """Analyses views, and keeps the plans: an analysis takes 0.1 s.

    Args:
        spark: the session.
        jobs: run the analysis.
        materialized: the sources whose rows are stored.
    """

    def __init__(self, spark: SparkSession, jobs: SparkJobs, materialized: Collection[str]) -> None:
        self._spark, self._jobs, self._materialized = spark, jobs, materialized
        self._last: dict[str, PlannedView] = {}

    def planned(
        self, definitions: Mapping[str, ViewDefinition], schemas: _Schemas, known: Mapping[str, CatalogView]
    ) -> dict[str, PlannedView]:
        """Name → view, for all views whose sources have schemas.  Errors as `analyse`.

        Args:
            definitions: name → definition of each declared view.
            schemas: source → schema, None while it is not known; all sources.
            known: the views of the catalog.
        """
        found = {}
        for name, definition in definitions.items():
            try:
                found[name] = self._planned(definition, schemas, known)
            except SourceWithoutSchemaError:
                continue
        self._last = found
        return found

    def _planned(self, definition: ViewDefinition, schemas: _Schemas, known: Mapping[str, CatalogView]) -> PlannedView:
        """Plans a view.  A stored view or a backfill keeps the columns of its first plan; a new definition sees all."""
        for stored in (known.get(definition.name), known.get(next_name(definition.name))):
            if stored is None:
                continue
            try:
                planned = self._plan(definition, visible_schemas(schemas, stored))
            except SourceWithoutSchemaError:
                raise
            except ViewError:
                continue
            if planned.plan.identity == stored.identity:
                return planned
        return self._plan(definition, schemas)

    def _plan(self, definition: ViewDefinition, schemas: _Schemas) -> PlannedView:
        """The last plan, if the definition and the schemas have not changed; else a new analysis."""
        name = definition.name
        last = self._last.get(name)
        if (
            last is not None
            and last.definition == definition
            and all(last.schemas.get(each) == schemas.get(each) for each in last.plan.sources)
        ):
            return PlannedView(definition, last.plan, schemas)
        work = {name: partial(analyse, self._spark, definition, schemas, self._materialized)}
        return PlannedView(definition, self._jobs.run("view", "while it was analysed", work)[name], schemas)

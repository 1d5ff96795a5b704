"""A declared view with its plan."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa

from spark_bridge.analysis.view_definition import ViewDefinition
from spark_bridge.analysis.view_plan import ViewPlan
from state.tables.records import CatalogView


@dataclass(frozen=True)
class PlannedView:
    """A declared view with its plan.

    Args:
        definition: of the view.
        plan: of the view.
        schemas: source → schema with the columns that the view knows; all sources.
    """

    definition: ViewDefinition
    plan: ViewPlan
    schemas: Mapping[str, pa.Schema | None]

    @property
    def known_schemas(self) -> dict[str, pa.Schema]:
        """The schemas of the sources that it reads."""
        found = {source: self.schemas[source] for source in self.plan.sources}
        return {source: schema for source, schema in found.items() if schema is not None}

    def catalog_view(self, name: str, epoch: int, missing: Collection[str] = ()) -> CatalogView:
        """The view's entry in the catalog.

        Args:
            name: its recorded name.
            epoch: the epoch that creates it.
            missing: URLs of the files whose rows it lacks.
        """
        plan = self.plan
        return CatalogView(
            name=name,
            view_class=plan.view_class,
            definition=plan.definition,
            identity=plan.identity,
            sources=plan.sources,
            key=plan.key,
            created_epoch=epoch,
            visible={source: tuple(schema.names) for source, schema in self.known_schemas.items()},
            missing=tuple(missing),
        )

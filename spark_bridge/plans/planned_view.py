"""A declared view with its plan, and with the views that it reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from state.tables.records import CatalogView


@dataclass(frozen=True)
class StoredGroups:
    """The groups of the stored view of a name, of which the declared one of this name is made.

    Args:
        has_all: whether that has all measures of the declared one; else a backfill begins with its groups.
        lacks: the measures that its groups lack, as SQL; the ingested rows are read for these alone.
    """

    plan: ViewPlan
    has_all: bool
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlannedView:
    """A declared view with its plan.

    Args:
        definition: of the view; for an internal view, the definition of its declared view.
        schemas: source → schema with the columns that the view knows; all sources.
        views: name → view, of those that its definition reads.
        before: the groups of the stored view of its name, if that is another one, and it is made of them; else None.
    """

    definition: ViewDefinition
    plan: ViewPlan
    schemas: Mapping[str, pa.Schema | None]
    views: Mapping[str, PlannedView] = field(default_factory=dict)
    before: StoredGroups | None = field(default=None, compare=False)

    @property
    def inner(self) -> Iterator[PlannedView]:
        """Its internal views; each follows the internal views that it reads."""
        return (PlannedView(self.definition, plan, self.schemas) for plan in self.plan.inner)

    @property
    def known_schemas(self) -> dict[str, pa.Schema]:
        """The schemas of the sources that it reads."""
        found = {source: self.schemas[source] for source in self.plan.sources}
        return {source: schema for source, schema in found.items() if schema is not None}

    @property
    def leaf_schemas(self) -> dict[str, pa.Schema]:
        """The schemas of the sources and of the parents whose rows it reads."""
        parents = parents_of(self.views)
        return {
            name: parents[name].plan.schema if name in parents else self.known_schemas[name]
            for name in self.plan.columns
        }

    def catalog_view(self, name: str, epoch: int, missing: Collection[str] = ()) -> CatalogView:
        """The view's entry in the catalog.

        Args:
            name: its recorded name.
            epoch: the epoch that creates it.
            missing: URLs of the files whose rows it lacks.
        """
        plan = self.plan
        visible = {read: tuple(schema.names) for read, schema in self.known_schemas.items()}
        visible |= {view: tuple(each.plan.schema.names) for view, each in self.views.items()}
        visible |= {parent: () for parent in plan.parents if parent not in visible}
        return CatalogView(
            name=name,
            view_class=plan.view_class,
            definition=plan.definition,
            identity=plan.identity,
            sources=plan.sources,
            key=plan.key,
            created_epoch=epoch,
            visible=visible,
            missing=tuple(missing),
        )


def stored_groups(views: Mapping[str, PlannedView]) -> dict[str, StoredGroups]:
    """Name → groups of the stored views, of those that are made of such groups."""
    return {name: each.before for name, each in views.items() if each.before is not None}


def names_within(views: Mapping[str, PlannedView]) -> Iterator[str]:
    """Yields the names of these views, and of those that their definitions expand to."""
    for name, view in views.items():
        yield name
        if not view.plan.is_read_as_stored:
            yield from names_within(view.views)


def parents_of(views: Mapping[str, PlannedView]) -> dict[str, PlannedView]:
    """Name → view, of those whose stored rows are read by a view that reads these views.

    The definition of any other of them is expanded, down to the views whose stored rows that one reads.
    """
    found: dict[str, PlannedView] = {}
    for name, view in views.items():
        found |= {name: view} if view.plan.is_read_as_stored else parents_of(view.views)
    return found

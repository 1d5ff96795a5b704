"""Publications that a pipeline declares: what can be said about them without a look at the world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from slackwater.extensions.entry import load
from slackwater.extensions.table_target import Follower, PublicationPlan
from slackwater.places.declared_place import DeclaredPlace, PlaceKind
from slackwater.places.iceberg_location import iceberg_location
from slackwater.plugins.publish.targets import Delta, Iceberg, ParquetFiles, Target, missing_library, with_access_of
from state.clock import Clock
from state.errors import SettingsError
from state.location import Location


@dataclass(frozen=True)
class DeclaredPublication:
    """A view, and a table that follows it during the run.

    Args:
        view: the name of the view.
    """

    view: str
    target: Target

    @property
    def table(self) -> str:
        """The format and place of the table."""
        return str(self.target)

    def places(self) -> list[DeclaredPlace]:
        """The place of the table, as far as it is declared: its directory, or the warehouse of its catalog."""
        location, target = self.target.location, self.target
        if location is not None:
            return [DeclaredPlace(PlaceKind.TABLE, self.view, location)]
        if isinstance(target, Iceberg) and (warehouse := _warehouse(target)):
            return [DeclaredPlace(PlaceKind.WAREHOUSE, self.view, warehouse)]
        return []

    @classmethod
    def require_own_names(cls, publications: Sequence[DeclaredPublication]) -> None:
        """Checks that no two publications have one name in one Iceberg catalog.

        Raises:
            SettingsError: two have.
        """
        views: dict[object, str] = {}
        for each in publications:
            target = each.target
            if not isinstance(target, Iceberg):
                continue
            catalog = tuple(sorted((target.catalog or {}).items()))
            # Without a catalog, the catalog of a local table is in the parent directory.
            beside = target.location.url.rpartition("/")[0] if target.location and not catalog else ""
            name = (target.identifier, catalog, beside)
            if name in views:
                raise SettingsError(
                    f"view {each.view}: publish={target} is {'.'.join(target.identifier)!r} in its catalog, which is "
                    f"also the table of view {views[name]}: give each publication a name of its own"
                )
            views[name] = each.view

    @classmethod
    def check(
        cls, publications: Sequence[DeclaredPublication], root: Location, clock: Clock, places: Sequence[DeclaredPlace]
    ) -> None:
        """Checks that each table can be reached and written; see `check_publications`."""
        load("slackwater.plugins.publish.start_check:check_publications")(root, publications, clock, places)

    @classmethod
    def plan(
        cls, publications: Sequence[DeclaredPublication], root: Location, clock: Clock
    ) -> tuple[PublicationPlan, ...]:
        """The plan of the first publication of a run to each table; see `plan_publications`."""
        plan = load("slackwater.plugins.publish.start_check:plan_publications")
        plans: tuple[PublicationPlan, ...] = plan(root, publications, clock)
        return plans

    @classmethod
    def follow(
        cls, publications: Sequence[DeclaredPublication], root: Location, clock: Clock, places: Sequence[DeclaredPlace]
    ) -> Follower:
        """Begins to publish the epochs of a run, in a process of its own."""
        make = load("slackwater.plugins.publish.publications:Publications")
        follower: Follower = make(root, publications, clock, places)
        return follower


def declared(view: str, target: Target, root: Location) -> DeclaredPublication:
    """The publication of a view to a table.

    Args:
        view: the name of the view.
        root: the root of the pipeline, whose access tables on the same kind of store get.

    Raises:
        UsageError: the library of the format is not installed.
    """
    library = _library(target)
    if library is not None and find_spec(library) is None:
        raise missing_library(target, library)
    return DeclaredPublication(view, with_access_of(target, root))


def _warehouse(target: Iceberg) -> Location | None:
    return iceberg_location((target.catalog or {}).get("warehouse"), target.catalog)


def _library(target: Target) -> str | None:
    if isinstance(target, ParquetFiles):
        return None
    return "deltalake" if isinstance(target, Delta) else "pyiceberg"

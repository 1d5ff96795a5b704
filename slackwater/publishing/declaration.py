"""Publications that a pipeline declares: what can be said about them without a look at the world."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, TypeAlias

from slackwater.places.declared_place import DeclaredPlace, PlaceKind
from slackwater.places.iceberg_location import iceberg_location
from slackwater.publishing.targets import Delta, Iceberg, ParquetFiles, Target, missing_library, with_access_of
from state.errors import SettingsError
from state.location import Location

Targets: TypeAlias = Target | Sequence[Target]

_FORMS = 'sw.Delta("..."), sw.Iceberg("..."), sw.ParquetFiles("..."), or a list of them'


@dataclass(frozen=True)
class DeclaredPublication:
    """A view, and a table that follows it beside the run.

    Args:
        view: the name of the view.
        target: the table.
    """

    view: str
    target: Target


def declared(view: str, publish: Any, root: Location) -> tuple[DeclaredPublication, ...]:
    """The publications in the option `publish` of a view.

    Args:
        view: the name of the view.
        publish: a target or several.
        root: the root of the pipeline, whose access tables on the same kind of store get.

    Raises:
        SettingsError: the option has another value.
        UsageError: the library of a format is not installed.
    """
    targets = publish if isinstance(publish, Collection) and not isinstance(publish, (str, bytes, dict)) else [publish]
    for target in targets:
        if not isinstance(target, Target):
            raise SettingsError(f"view {view}: publish={target!r} is not a table: give {_FORMS}")
        library = _library(target)
        if library is not None and find_spec(library) is None:
            raise missing_library(target, library)
    return tuple(DeclaredPublication(view, with_access_of(target, root)) for target in targets)


def places_of(publications: Iterable[DeclaredPublication]) -> list[DeclaredPlace]:
    """The places of tables, as far as the declaration names them: the directory, or the warehouse of the catalog."""
    places = []
    for each in publications:
        location, target = each.target.location, each.target
        if location is not None:
            places.append(DeclaredPlace(PlaceKind.TABLE, each.view, location))
        elif isinstance(target, Iceberg) and (warehouse := _warehouse(target)):
            places.append(DeclaredPlace(PlaceKind.WAREHOUSE, each.view, warehouse))
    return places


def _warehouse(target: Iceberg) -> Location | None:
    return iceberg_location((target.catalog or {}).get("warehouse"), target.catalog)


def require_own_names(publications: Iterable[DeclaredPublication]) -> None:
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
                f"view {each.view}: publish={target} is {'.'.join(target.identifier)!r} in its catalog, which is also "
                f"the table of view {views[name]}: give each publication a name of its own"
            )
        views[name] = each.view


def _library(target: Target) -> str | None:
    if isinstance(target, ParquetFiles):
        return None
    return "deltalake" if isinstance(target, Delta) else "pyiceberg"

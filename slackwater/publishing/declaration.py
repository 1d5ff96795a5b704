"""Publications that a pipeline declares: what can be said about them without a look at the world."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, TypeAlias

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


def require_apart(publications: Iterable[DeclaredPublication], sources: Iterable[tuple[str, Location]]) -> None:
    """Checks that no two publications share a table, and that no source reads one.

    Args:
        publications: all of a pipeline.
        sources: name and place of each source.

    Raises:
        SettingsError: they do.
    """
    places: dict[str, str] = {}
    for each in publications:
        place = _place(each.target)
        if place in places:
            raise SettingsError(
                f"view {each.view}: publish={each.target} is also a table of view {places[place]}: give each "
                "publication a table of its own"
            )
        places[place] = each.view
        for name, location in sources:
            if f"{place}/".startswith(f"{location.url}/"):
                raise SettingsError(
                    f"view {each.view}: publish={each.target} is below source {name}, which would read its files: "
                    "choose another place"
                )


def _place(target: Target) -> str:
    if isinstance(target, Iceberg):
        return ".".join(target.identifier) if target.location is None else target.location.url
    return target.location.url


def _library(target: Target) -> str | None:
    if isinstance(target, ParquetFiles):
        return None
    return "deltalake" if isinstance(target, Delta) else "pyiceberg"

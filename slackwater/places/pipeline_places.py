"""The places of a root and of its sources."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from actors.sources.source import SourceDefinition
from slackwater.places.declared_place import DeclaredPlace, PlaceKind
from state.location import Location
from state.upkeep.branches import root_above


def pipeline_places(
    root: Location, sources: Iterable[SourceDefinition], *, changing: Collection[str] = ()
) -> list[DeclaredPlace]:
    """The places of a root, of the root that it is a branch of, and of sources.

    Args:
        root: the root of the pipeline.
        changing: the names of the sources whose files are deleted, moved or tagged.
    """
    places = [DeclaredPlace(PlaceKind.ROOT, "", root)]
    if (above := root_above(root)) is not None:
        places.append(DeclaredPlace(PlaceKind.PARENT_ROOT, "", above))
    for source in sources:
        kind = PlaceKind.STATIC_TABLE if source.table == "frame" else PlaceKind.SOURCE
        changes = source.name in changing
        places.append(DeclaredPlace(kind, source.name, source.location, source.pattern, changes))
    return places

"""Declarations of actions on the files of sources, checked without a look at the world."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from actors.sources.source import SourceDefinition
from slackwater.after_commit.actions import After, Delete, Move, Tag
from slackwater.places.declared_place import DeclaredPlace, PlaceKind
from state.errors import SettingsError

_FORMS = 'sw.Delete(keep_s=86_400), sw.Move("s3://archive/in"), sw.Tag({"slackwater": "done"})'


@dataclass(frozen=True)
class DeclaredAfter:
    """A source with an action on its files.

    Args:
        source: the source.
        action: the action.
    """

    source: SourceDefinition
    action: After

    @property
    def takes_away(self) -> bool:
        """True if the action deletes or moves files."""
        return not isinstance(self.action, Tag)


def declared(source: SourceDefinition, after: Any) -> DeclaredAfter:
    """The option `after` of a source.

    Raises:
        SettingsError: the option has another value, or the source does not allow it.
    """
    name, location = source.name, source.location
    if not isinstance(after, Delete | Move | Tag):
        raise SettingsError(f"source {name}: after={after!r} is not an action: give {_FORMS}")
    if location.is_web:
        raise SettingsError(f"source {name}: files of a web server cannot be changed: leave the option after out")
    if isinstance(after, Tag):
        if location.scheme != "s3":
            raise SettingsError(f"source {name}: after=sw.Tag(...) is for s3://, and {location} has no tags")
    elif source.policy.removes:
        raise SettingsError(
            f'source {name}: with on_change="replace" the rows of a file leave the views when it is deleted or moved: '
            "leave the option after out, or declare the source with another on_change"
        )
    if isinstance(after, Move) and not after.storage_options and after.location.scheme == location.scheme:
        after = replace(after, storage_options=location.storage_options)
    return DeclaredAfter(source, after)


def places_of(after: Iterable[DeclaredAfter]) -> list[DeclaredPlace]:
    """The places that files are moved to."""
    return [
        DeclaredPlace(PlaceKind.ARCHIVE, each.source.name, each.action.location)
        for each in after
        if isinstance(each.action, Move)
    ]

"""Declarations of actions on the files of sources, checked without a look at the world."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from actors.sources.path_filter import PathFilter
from actors.sources.source import SourceDefinition
from slackwater.after_commit.actions import After, Delete, Move, Tag
from state.errors import SettingsError
from state.location import Location

_FORMS = 'sw.Delete(keep_s=86_400), sw.Move("s3://archive/in"), sw.Tag({"slackwater": "done"})'


@dataclass(frozen=True)
class DeclaredAfter:
    """A source, and what is done to its files.

    Args:
        source: the source.
        action: what is done.
    """

    source: SourceDefinition
    action: After

    @property
    def takes_away(self) -> bool:
        """Whether files are not where they were afterwards."""
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


def require_harmless(after: Iterable[DeclaredAfter], sources: Iterable[SourceDefinition], root: Location) -> None:
    """Checks that no source loses files that it has to read, and that none reads files that were moved.

    Args:
        after: all of a pipeline.
        sources: all of a pipeline.
        root: its root.

    Raises:
        SettingsError: one does.
    """
    present = list(sources)
    for each in after:
        if not each.takes_away:
            continue
        name, place = each.source.name, each.source.location
        for other in present:
            if other.name != name and _overlap(other.location, place):
                raise SettingsError(
                    f"source {name}: after={_name(each.action)} would take files away that source {other.name} reads "
                    f"below {other.location}: give each source a place of its own"
                )
        if isinstance(each.action, Move):
            _require_apart(name, each.action, present, root)


def _require_apart(name: str, move: Move, sources: Iterable[SourceDefinition], root: Location) -> None:
    place = move.location
    if _overlap(place, root):
        raise SettingsError(f"source {name}: {place} is no place for files: the root {root} is there; choose another")
    for source in sources:
        inside = f"{place.url}/".removeprefix(f"{source.location.url}/")
        is_inside = place.is_within(source.location)
        if is_inside and inside and not PathFilter(source.pattern).may_accept_below(inside.rstrip("/")):
            continue  # its pattern leaves the place out
        if is_inside or source.location.is_within(place):
            raise SettingsError(
                f"source {name}: files that are moved to {place} would be read again by source {source.name} "
                f"({source.location}, {source.pattern}): choose a place beside it, or a pattern that leaves it out"
            )


def _overlap(one: Location, other: Location) -> bool:
    return one.is_within(other) or other.is_within(one)


def _name(action: After) -> str:
    return f"sw.{type(action).__name__}(...)"

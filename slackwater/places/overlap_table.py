"""The table of places that may overlap, and the one check of all places of a pipeline against it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

from actors.sources.path_filter import PathFilter
from slackwater.places.declared_place import DeclaredPlace, PlaceKind
from state.errors import SettingsError
from state.places.place import Place, Relation

_K = PlaceKind
_Placed: TypeAlias = tuple[DeclaredPlace, Place]
_Pair: TypeAlias = tuple[PlaceKind, PlaceKind]


@dataclass(frozen=True)
class OverlapRule:
    """When two places of certain kinds may overlap.

    Args:
        condition: the condition in words, for the documentation.
        fault: the reason against two places, in the order of their kinds; empty if they may overlap.
        belongs_inside: whether the second place must be below the first one.
    """

    condition: str
    fault: Callable[[_Placed, _Placed], str]
    belongs_inside: bool = False


def _inside(first: _Placed, second: _Placed) -> str:
    is_inside = first[1].relation(second[1]) is Relation.ABOVE
    return "" if is_inside else "it belongs below the root, and a link or a mount leads elsewhere"


def _below_warehouse(first: _Placed, second: _Placed) -> str:
    is_below = first[1].relation(second[1]) is Relation.ABOVE
    return "" if is_below else "the catalog makes its tables below the warehouse"


def _always(first: _Placed, second: _Placed) -> str:
    return ""


def _two_sources(first: _Placed, second: _Placed) -> str:
    (one, _), (other, _) = first, second
    if one.changes_files or other.changes_files:
        changing, reading = (one, other) if one.changes_files else (other, one)
        return f"after=... of source {changing.owner} would change files that source {reading.owner} reads"
    if one.pattern == other.pattern and _may_share_files(first, second):
        return f"both have the pattern {one.pattern!r}, and would read the same files"
    return ""


def _may_share_files(first: _Placed, second: _Placed) -> bool:
    """False if the pattern of the outer source accepts nothing in the inner one."""
    outer, inner = (first, second) if first[1].contains(second[1]) else (second, first)
    path = outer[1].path_to(inner[1])
    # An older source reads hidden directories too.
    return not path or PathFilter(outer[0].pattern, hides_directories=False).may_accept_below(path)


EXCEPTIONS: Mapping[_Pair, OverlapRule] = {
    (_K.ROOT, _K.STATIC_TABLE): OverlapRule("always: the rows are stored in the root, below `tables/`", _inside, True),
    (_K.ROOT, _K.BRANCH): OverlapRule("always: a branch is stored in its root, below `branches/`", _inside, True),
    (_K.PARENT_ROOT, _K.ROOT): OverlapRule("always: a branch is stored in its root, below `branches/`", _inside, True),
    (_K.PARENT_ROOT, _K.STATIC_TABLE): OverlapRule("always: the rows are stored in the branch", _inside, True),
    (_K.SOURCE, _K.SOURCE): OverlapRule(
        "if neither has `after=`, and their patterns differ or accept no common file", _two_sources
    ),
    (_K.WAREHOUSE, _K.WAREHOUSE): OverlapRule("always: the catalog gives each table a directory", _always),
    **{
        (_K.WAREHOUSE, kind): OverlapRule(f"if the {kind.value} is below the warehouse", _below_warehouse)
        for kind in PlaceKind
        if kind is not _K.WAREHOUSE
    },
}
"""The pairs that may overlap.  All others never may."""

_REASONS: Mapping[_Pair, str] = {
    (_K.ROOT, _K.SOURCE): "the source would read the files of the root as data",
    (_K.ROOT, _K.TABLE): "readers and upkeep of the table would meet files of the root",
    (_K.ROOT, _K.ARCHIVE): "moved files would lie among the files of the root",
    (_K.PARENT_ROOT, _K.SOURCE): "the source would read the files of that root as data",
    (_K.PARENT_ROOT, _K.TABLE): "readers and upkeep of the table would meet files of that root",
    (_K.PARENT_ROOT, _K.ARCHIVE): "moved files would lie among the files of that root",
    (_K.BRANCH, _K.SOURCE): "the source would read the files of the branch as data",
    (_K.STATIC_TABLE, _K.SOURCE): "the source would read the stored rows as data",
    (_K.SOURCE, _K.TABLE): "the source would read the files of the table as data",
    (_K.SOURCE, _K.ARCHIVE): "moved files would be read again",
    (_K.TABLE, _K.TABLE): "readers and upkeep of one table would meet files of the other",
    (_K.TABLE, _K.ARCHIVE): "moved files would lie among the files of the table",
    (_K.ARCHIVE, _K.ARCHIVE): "two files of one name could not both be moved",
}


def require_apart(places: Iterable[DeclaredPlace], *, new: Sequence[DeclaredPlace] | None = None) -> None:
    """Checks pairs of places against `EXCEPTIONS`, with the present links and mounts.

    Args:
        places: all places of a pipeline.
        new: the places whose pairs are checked; None for all pairs.

    Raises:
        SettingsError: two places overlap.  The message names both, the reason and the next step.
    """
    placed = [(place, place.resolved()) for place in places]
    for one, other in combinations(placed, 2):
        if (new is None or one[0] in new or other[0] in new) and (fault := overlap_fault(one, other)):
            raise SettingsError(fault)


def overlap_fault(one: _Placed, other: _Placed) -> str:
    """The message about two places with their resolved addresses; empty if they may be used together."""
    first, second = sorted((one, other), key=lambda placed: _ORDER.index(placed[0].kind))
    kinds = first[0].kind, second[0].kind
    relation, rule = first[1].relation(second[1]), EXCEPTIONS.get(kinds)
    if relation is Relation.APART and not (rule and rule.belongs_inside):
        return ""
    reason = rule.fault(first, second) if rule else _REASONS.get(kinds, "the files of both would mix")
    if not reason:
        return ""
    step = (
        "give each source a place of its own, or a pattern that differs"
        if kinds == (_K.SOURCE, _K.SOURCE)
        else f"choose another place for {first[0].words} or for {second[0].words}"
    )
    return f"{first[0].words} ({first[1]}) is {relation.value} {second[0].words} ({second[1]}): {reason}; {step}"


_ORDER = (_K.WAREHOUSE, _K.PARENT_ROOT, _K.ROOT, _K.BRANCH, _K.STATIC_TABLE, _K.SOURCE, _K.TABLE, _K.ARCHIVE)
"""The order of the kinds in a pair."""


def documented_rows() -> list[tuple[str, str, str]]:
    """The table for the documentation: two kinds of places, and when they may overlap."""
    rows = [(first.value, second.value, rule.condition) for (first, second), rule in EXCEPTIONS.items()]
    return [*rows, ("any other pair", "", "never")]

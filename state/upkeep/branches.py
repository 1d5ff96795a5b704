"""Branches of a root: their names, their places, and the tags that keep the epochs that they refer to.

A branch is a root of its own below `<root>/branches/<name>`.  Its datasets begin as manifests that name the files of
one epoch of the root above it.  A tag of the root keeps that epoch from expiring; it also is the record of the branch.

    branch/<name>     from before the first file is referred to until the files of the branch are deleted
    dropping/<name>   from before the first file of the branch is deleted

Users' tags have no `/`.  A version of Slackwater without branches keeps these epochs too: it takes them for tags.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from state.errors import UsageError
from state.location import Location

FOLDER = "branches"
_TAG = re.compile(r"(branch|dropping)/([A-Za-z][A-Za-z0-9._-]{0,63})")


@dataclass(frozen=True)
class Branch:
    """A branch, as the root above it records it.

    Args:
        epoch: the epoch of the root that it refers to.
        is_dropping: whether its files are being deleted.
    """

    name: str
    epoch: int
    is_dropping: bool


def branch_tag(name: str) -> str:
    """The tag that keeps the epoch of a branch."""
    return f"branch/{name}"


def dropping_tag(name: str) -> str:
    """The tag of a branch that is being dropped."""
    return f"dropping/{name}"


def check_branch_name(name: str) -> None:
    """Refuses names that are hard to type, or more than one part of a path.

    Raises:
        UsageError: the name is not a valid name of a branch.
    """
    if not _TAG.fullmatch(branch_tag(name)):
        raise UsageError(
            f"{name!r} is not a valid name of a branch: it begins with a letter, and has at most 64 letters, digits, "
            "'.', '_' and '-'"
        )


def is_branch_tag(tag: str) -> bool:
    """True for a tag that records a branch, false for one of users."""
    return _TAG.fullmatch(tag) is not None


def user_tags(tags: Mapping[str, int]) -> dict[str, int]:
    """The tags that users gave, by name."""
    return {tag: epoch for tag, epoch in sorted(tags.items()) if not is_branch_tag(tag)}


def branches_of(tags: Mapping[str, int]) -> dict[str, Branch]:
    """The branches that the tags of a head record, by name."""
    found = {}
    for tag, epoch in sorted(tags.items()):  # `branch/` comes before `dropping/`
        if match := _TAG.fullmatch(tag):
            kind, name = match.groups()
            found[name] = Branch(name, epoch, kind == "dropping")
    return found


def require_free(tags: Mapping[str, int], tag: str) -> None:
    """Refuses a tag of a branch that another branch has: it never moves.

    Raises:
        UsageError: the branch exists, at any epoch, or is being dropped.
    """
    match = _TAG.fullmatch(tag)
    known = branches_of(tags).get(match[2]) if match else None
    if known is None or tag == dropping_tag(known.name):
        return
    if known.is_dropping:
        raise UsageError(f"branch {known.name!r} is being dropped: finish that with `drop-branch`, then make it again")
    raise UsageError(f"branch {known.name!r} exists, at epoch {known.epoch}: choose another name, or drop it")


def branch_location(root: Location, name: str) -> Location:
    """The place of a branch: below its root, so that access to the root is access to the branch."""
    return root.child(f"{FOLDER}/{name}")


def root_above(location: Location) -> Location | None:
    """The root of a branch; None for a place of something else."""
    above, folder, name = location.url.rpartition(f"/{FOLDER}/")
    is_branch = bool(folder) and _TAG.fullmatch(branch_tag(name)) is not None
    return Location(above, location.storage_options, location.durability) if is_branch else None

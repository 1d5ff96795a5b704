"""Place: the canonical identity of a location, by which overlaps are found."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from state.location import Location
from state.places.bucket_place import BucketPlace
from state.places.directory_place import DirectoryPlace


class Relation(Enum):
    """The relation of one place to another; the value completes the sentence "the first place is ... the second"."""

    EQUAL = "the same as"
    ABOVE = "above"
    BELOW = "below"
    CROSSING = "partly the same as"
    APART = "apart from"

    @property
    def overlaps(self) -> bool:
        """True if an object can be in both places."""
        return self is not Relation.APART

    @property
    def reversed(self) -> Relation:
        """The relation of the second place to the first."""
        return {Relation.ABOVE: Relation.BELOW, Relation.BELOW: Relation.ABOVE}.get(self, self)


Identity: TypeAlias = BucketPlace | DirectoryPlace


@dataclass(frozen=True)
class Place:
    """The directory or prefix that a location refers to at the moment.

    Args:
        location: the location as it was given, for messages.
        identity: the directory or prefix that it refers to.
    """

    location: Location
    identity: Identity

    @classmethod
    def of(cls, location: Location) -> Place:
        """The place of a location, which need not exist.

        A local path is resolved with its links and mounts.  For an object store, the storage options and the
        environment name the server; no request is made.

        Raises:
            SettingsError: the endpoint is not a valid URL.
        """
        if location.is_local:
            return cls(location, DirectoryPlace.of(os.fspath(location.path)))
        return cls(location, BucketPlace.of(location))

    def relation(self, other: Place) -> Relation:
        """The relation of this place to another place."""
        above, below = self.contains(other), other.contains(self)
        if above or below:
            return Relation.EQUAL if above and below else Relation.ABOVE if above else Relation.BELOW
        mine, others = self.identity, other.identity
        if isinstance(mine, DirectoryPlace) and isinstance(others, DirectoryPlace) and mine.crosses(others):
            return Relation.CROSSING
        return Relation.APART

    def overlaps(self, other: Place) -> bool:
        """True if an object can be in both places."""
        return self.relation(other).overlaps

    def contains(self, other: Place) -> bool:
        """True if the other place is this place, or below it."""
        return self.path_to(other) is not None

    def path_to(self, other: Place) -> str | None:
        """The path from this place down to `other`, empty if they are equal; None if `other` is not below."""
        mine, others = self.identity, other.identity
        names = None
        if isinstance(mine, DirectoryPlace) and isinstance(others, DirectoryPlace):
            names = mine.names_to(others)
        if isinstance(mine, BucketPlace) and isinstance(others, BucketPlace):
            names = mine.names_to(others)
        return None if names is None else "/".join(names)

    @property
    def address(self) -> str:
        """The resolved path or URL; it changes when a link on the way leads elsewhere."""
        return self.identity.address

    def __str__(self) -> str:
        resolved, given = self.identity.address, str(self.location)
        return given if not self.location.is_local or resolved == given else f"{given} ({resolved})"

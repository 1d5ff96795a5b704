"""DeclaredPlace: one place of a pipeline, with its purpose and its name in messages."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from state.location import Location
from state.places.place import Place


class PlaceKind(StrEnum):
    """The purpose of a place in a pipeline."""

    ROOT = "root"
    PARENT_ROOT = "root above a branch"
    BRANCH = "branch"
    STATIC_TABLE = "static table of rows"
    SOURCE = "source"
    TABLE = "published table"
    WAREHOUSE = "warehouse of an Iceberg catalog"
    ARCHIVE = "target of sw.Move"


@dataclass(frozen=True)
class DeclaredPlace:
    """One place of a pipeline.

    Args:
        kind: the purpose of the place.
        owner: the name of its source or view; empty for a root.
        location: the location as it was declared.
        pattern: of a source, the pattern of its names.
        changes_files: of a source, whether its files are deleted, moved or tagged after the commit.
        address: see `Place.address`, when a run has checked the place; empty before.
    """

    kind: PlaceKind
    owner: str
    location: Location = field(repr=False)
    pattern: str = "**"
    changes_files: bool = False
    address: str = ""

    @property
    def words(self) -> str:
        """The place in a message, without its address."""
        match self.kind:
            case PlaceKind.ROOT:
                return "the root"
            case PlaceKind.PARENT_ROOT:
                return "the root of the branch"
            case PlaceKind.BRANCH:
                return f"branch {self.owner}"
            case PlaceKind.STATIC_TABLE:
                return f"the rows of table {self.owner}"
            case PlaceKind.SOURCE:
                return f"source {self.owner}"
            case PlaceKind.TABLE:
                return f"the published table of view {self.owner}"
            case PlaceKind.WAREHOUSE:
                return f"the warehouse of view {self.owner}"
            case PlaceKind.ARCHIVE:
                return f"the target of sw.Move of source {self.owner}"

    def resolved(self) -> Place:
        """The place as it is now.

        Raises:
            SettingsError: the endpoint is not a valid URL.
        """
        return Place.of(self.location)

    def checked(self) -> DeclaredPlace:
        """The place with its present address."""
        return replace(self, address=self.resolved().address)

    def to_json(self) -> dict[str, Any]:
        """With the secrets of the storage options: for a pipe, not for a disk."""
        return {
            "kind": self.kind.value,
            "owner": self.owner,
            "url": self.location.url,
            "storage_options": dict(self.location.storage_options),
            "pattern": self.pattern,
            "changes_files": self.changes_files,
            "address": self.address,
        }

    @classmethod
    def of_json(cls, document: dict[str, Any]) -> DeclaredPlace:
        return cls(
            PlaceKind(document["kind"]),
            document["owner"],
            Location(document["url"], document["storage_options"]),
            document["pattern"],
            document["changes_files"],
            document["address"],
        )

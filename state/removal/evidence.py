"""Evidence: the record that shows that objects may be deleted or replaced, and the names that it covers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from state.errors import RemovalRefusedError
from state.location import Location
from state.removal.local_path import parts_of
from state.removal.names import DATASET, ROOT, VIEW_DATASETS, ReservedForm


class Evidence(Protocol):
    """The common part of all kinds of evidence."""

    @property
    def place(self) -> Location:
        """The location that names are relative to."""
        ...

    @property
    def record(self) -> str:
        """The record in words, for messages."""
        ...

    def covers(self, name: str) -> bool:
        """True if the record shows that the object of this name is ours, or is finished."""
        ...


@dataclass(frozen=True)
class ListedFiles:
    """A committed record of ours lists these files as ours and as no longer used.

    Args:
        place: the location that the names are relative to, for example a published table.
        record: the record, for example `_manifest.json, write 7` or `_delta_log`.
        names: the listed names.
    """

    place: Location
    record: str
    names: frozenset[str]

    def covers(self, name: str) -> bool:
        return name in self.names


@dataclass(frozen=True)
class ReservedNames:
    """A directory of Slackwater's own, in which only Slackwater writes names of one form.

    It is the weakest evidence: use it only for a root's own `pins/` and `commands/`, and for caches.

    Args:
        place: the root, or the directory of the cache.
        form: the form of the names.
    """

    place: Location
    form: ReservedForm

    @property
    def record(self) -> str:
        return self.form.about

    def covers(self, name: str) -> bool:
        return self.form.covers(name)


@dataclass(frozen=True)
class UnnamedDataset:
    """A dataset of a root that no retained epoch record names, and that no later record can name.

    Args:
        path: of the dataset, relative to the root: `views/<name>-<epoch>.lance`.
    """

    root: Location
    path: str

    @property
    def place(self) -> Location:
        if not VIEW_DATASETS.covers("/".join(parts_of(self.path))):
            raise RemovalRefusedError(f"{self.root}/{self.path} is not a dataset of a view; nothing was changed")
        return self.root.child(self.path)

    @property
    def record(self) -> str:
        return f"no epoch record names {self.path}"

    def covers(self, name: str) -> bool:
        return DATASET.covers(name)


@dataclass(frozen=True)
class DroppedBranch:
    """A branch whose root records, by a tag, that it is dropped.

    Args:
        root: the root above the branch.
        name: the name of the branch.
        below: a directory of the branch, for example `state.lance`; empty for the whole branch.
    """

    root: Location
    name: str
    below: str = ""

    @property
    def place(self) -> Location:
        if len(parts_of(self.name)) != 1:
            raise RemovalRefusedError(f"{self.name!r} is not the name of a branch; nothing was changed")
        return self.root.child(f"branches/{self.name}")

    @property
    def record(self) -> str:
        return f"the tag dropping/{self.name}"

    def covers(self, name: str) -> bool:
        return ROOT.covers(name) and f"{name}/".startswith(f"{self.below}/" if self.below else "")


@dataclass(frozen=True)
class FinishedFile:
    """One version of a user's file: the user asked for its deletion or move, and no view needs it any more.

    Args:
        place: the location of its source.
        name: its path, relative to the place.
        etag: of the version whose rows are committed; never empty.
        record: the record, for example `orders.csv is committed in epoch 12, and in every view`.
        modified: the time of the version.  An object with the same bytes that was written at another time is another
            file of the user, which may not have been read.  None if the time is not known.
    """

    place: Location
    name: str
    etag: str
    record: str
    modified: datetime | None = None

    def covers(self, name: str) -> bool:
        return bool(self.etag) and name == self.name


@dataclass(frozen=True)
class CreatedObject:
    """An object that this process created, as `objects.create` returns it.

    Args:
        place: the location that the name is relative to.
        version: as the store names it: `e_tag` and `version`.
    """

    place: Location
    name: str
    version: Mapping[str, str | None]

    @property
    def record(self) -> str:
        return "this process created it"

    def covers(self, name: str) -> bool:
        return name == self.name


def require_covered(evidence: Evidence, name: str) -> list[str]:
    """The parts of a name that the evidence covers.

    Raises:
        RemovalRefusedError: the name is not valid, or the evidence does not cover it.
    """
    parts = parts_of(name)
    if not evidence.covers(name):
        raise RemovalRefusedError(
            f"{evidence.place}/{name} stays as it is: its record ({evidence.record}) does not name it; report this"
        )
    return parts

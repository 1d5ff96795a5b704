"""The disk of a root in memory: it keeps the versions of the store and of the views when every handle is gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from state.errors import CommitRefusedError, EpochNotFoundError, NotFoundError
from state.tables.records import Head

Row = dict[str, Any]
Tables = Mapping[str, Mapping[bytes, Row]]


@dataclass(frozen=True)
class MemoryStaged:
    """Rows that are durable and not visible.

    Args:
        rows: of any shape; None when they are deleted.
        staged_at: the time of their staging.
    """

    rows: Any
    staged_at: datetime


@dataclass(frozen=True)
class MemoryVersion:
    """One version of the store: the name of the swap that made it, its head, and the rows of each table by key."""

    swap_name: str
    head: Head
    tables: Tables


@dataclass
class MemoryDataset:
    """The dataset of a view: its versions, its fence, and the version for plain readers.

    Args:
        versions: version -> rows, of any shape.
        latest: the last version; the next is one more.
        fence_term: the last term that restored it; 0 before the first.
        fence_version: the version made by that restore.
        committed: the version with the tag `committed`.
    """

    versions: dict[int, Any] = field(default_factory=dict)
    latest: int = 0
    fence_term: int = 0
    fence_version: int | None = None
    committed: int | None = None

    def rows(self, path: str, version: int) -> Any:
        """The rows of a version.

        Raises:
            NotFoundError: the version does not exist.
        """
        if version not in self.versions:
            raise NotFoundError(f"{path} has no version {version}: the last is {self.latest}")
        return self.versions[version]

    def add(self, rows: Any) -> int:
        """Adds a version with these rows, and returns its number."""
        self.latest += 1
        self.versions[self.latest] = rows
        return self.latest


@dataclass
class MemoryDisk:
    """The disk of one root.

    Args:
        fault: a function called with "before" and "after" around each swap of the head; the writer gets its exception
            instead of an answer.
        versions: version -> the store at this version.
        latest: the last version; 0 without a store.
        staged: staged deltas by name; a delta without a commit stays until it is old.
        stagings: the number of stagings, which names them.
        swaps: the number of tried commits, which names them.
        datasets: path -> the dataset of a view.
        stored: path of a dataset -> the rows staged for it, by name.
    """

    fault: Callable[[str], None] | None = None
    versions: dict[int, MemoryVersion] = field(default_factory=dict)
    latest: int = 0
    staged: dict[str, MemoryStaged] = field(default_factory=dict)
    stagings: int = 0
    swaps: int = 0
    datasets: dict[str, MemoryDataset] = field(default_factory=dict)
    stored: dict[str, dict[str, MemoryStaged]] = field(default_factory=dict)

    def version(self, number: int) -> MemoryVersion:
        """The store at a version.

        Raises:
            EpochNotFoundError: the version does not exist, or no longer.
        """
        if number not in self.versions:
            raise EpochNotFoundError(f"version {number} of the store is not retained: choose a later epoch")
        return self.versions[number]

    def swap(self, expected: int, version: MemoryVersion) -> None:
        """Adds a version if `expected` is still the last one.

        Raises:
            CommitRefusedError: another version is the last one.
        """
        self._meet("before")
        if self.latest != expected:
            raise CommitRefusedError(f"version {expected} is no longer the last version, {self.latest} is")
        self.add(version)
        self._meet("after")

    def add(self, version: MemoryVersion) -> None:
        """Adds a version, as the last one."""
        self.latest += 1
        self.versions[self.latest] = version

    def _meet(self, when: str) -> None:
        if self.fault is not None:
            self.fault(when)

"""What a root in memory keeps when every handle is gone: the versions of the store, and those of the views."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from state.errors import CommitRefusedError, EpochNotFoundError, NotFoundError
from state.tables.delta import Delta
from state.tables.records import Head

Row = dict[str, Any]
Tables = Mapping[str, Mapping[bytes, Row]]


@dataclass(frozen=True)
class MemoryVersion:
    """One version of the store: who made it, its head, and the rows of each table by key."""

    swap_name: str
    head: Head
    tables: Tables


@dataclass
class MemoryDataset:
    """The dataset of a view: its versions, which of them fence, and which one plain readers open.

    Args:
        versions: version -> rows, of any shape.
        latest: the last version; the next is one more.
        fence_term: the term that restored it last, 0 if none has.
        fence_version: the version that this made.
        committed: the version that is tagged `committed`.
    """

    versions: dict[int, Any] = field(default_factory=dict)
    latest: int = 0
    fence_term: int = 0
    fence_version: int | None = None
    committed: int | None = None

    def rows(self, path: str, version: int) -> Any:
        """The rows of a version.

        Raises:
            NotFoundError: it does not exist.
        """
        if version not in self.versions:
            raise NotFoundError(f"{path} has no version {version}: the last is {self.latest}")
        return self.versions[version]

    def add(self, rows: Any) -> int:
        """The number of the new version that holds these rows."""
        self.latest += 1
        self.versions[self.latest] = rows
        return self.latest


@dataclass
class MemoryDisk:
    """The disk of one root.

    Args:
        fault: called around each swap of the head with "before" or "after"; what it raises, the writer gets instead of
            an answer.
        versions: version -> the store at it.
        latest: the last version, 0 before there is a store.
        staged: what actors have staged, by name; it stays when no commit takes it.
        swaps: how many commits were tried, which names them.
        datasets: path -> the dataset of a view.
        stored: path of a dataset -> rows that were staged for it.
    """

    fault: Callable[[str], None] | None = None
    versions: dict[int, MemoryVersion] = field(default_factory=dict)
    latest: int = 0
    staged: dict[str, Delta] = field(default_factory=dict)
    swaps: int = 0
    datasets: dict[str, MemoryDataset] = field(default_factory=dict)
    stored: dict[str, list[Any]] = field(default_factory=dict)

    def version(self, number: int) -> MemoryVersion:
        """The store at a version.

        Raises:
            EpochNotFoundError: it is not, or no longer, there.
        """
        if number not in self.versions:
            raise EpochNotFoundError(f"version {number} of the store is not retained: choose a later epoch")
        return self.versions[number]

    def swap(self, expected: int, version: MemoryVersion) -> None:
        """Adds a version if `expected` is still the last one.

        Raises:
            CommitRefusedError: it is not.
        """
        self._meet("before")
        if self.latest != expected:
            raise CommitRefusedError(f"version {expected} is no longer the last: it is {self.latest}")
        self.add(version)
        self._meet("after")

    def add(self, version: MemoryVersion) -> None:
        """Makes this the last version."""
        self.latest += 1
        self.versions[self.latest] = version

    def _meet(self, when: str) -> None:
        if self.fault is not None:
            self.fault(when)

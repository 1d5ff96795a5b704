"""A store in memory, for simulation and tests: the same contract, without a disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from state.clock import Clock
from state.errors import CommitRefusedError, EpochNotFoundError, StoreNotFoundError
from state.head_swap import HeadSwapStore, StagedSwap
from state.records import Head
from state.tables import TABLES, row_column, row_type


@dataclass(frozen=True)
class _Version:
    """One version: who made it, its head, and the rows that it added."""

    swap_name: str
    head: Head
    rows: pa.Table | None


@dataclass
class MemoryDisk:
    """What is left when every handle is gone.

    Args:
        fault: called around each swap with "before" or "after"; what it raises, the writer gets instead of an answer.
    """

    fault: Callable[[str], None] | None = None
    versions: list[_Version] = field(default_factory=list)
    staged: int = 0

    def swap(self, expected_version: int, version: _Version) -> None:
        """Adds a version if `expected_version` is still the last one.

        Raises:
            CommitRefusedError: it is not.
        """
        self._meet("before")
        if len(self.versions) != expected_version:
            raise CommitRefusedError(f"version {expected_version} is no longer the last: it is {len(self.versions)}")
        self.versions.append(version)
        self._meet("after")

    def _meet(self, when: str) -> None:
        if self.fault is not None:
            self.fault(when)


class MemoryStateStore(HeadSwapStore):
    """A handle on a `MemoryDisk`; a fresh handle sees exactly what was committed."""

    def __init__(self, disk: MemoryDisk, clock: Clock, version: int, *, read_only: bool = False) -> None:
        super().__init__(clock, disk.versions[version - 1].head, version, read_only=read_only)
        self._disk = disk

    @classmethod
    def create(cls, disk: MemoryDisk, clock: Clock) -> MemoryStateStore:
        """A new store.

        Raises:
            CommitRefusedError: there is one already.
        """
        if disk.versions:
            raise CommitRefusedError("a store exists already: open it")
        disk.versions.append(_Version("create", Head(0, 0), None))
        return cls(disk, clock, 1)

    @classmethod
    def open(cls, disk: MemoryDisk, clock: Clock, *, read_only: bool = False) -> MemoryStateStore:
        """The store as it is now.

        Raises:
            StoreNotFoundError: there is none.
        """
        if not disk.versions:
            raise StoreNotFoundError("there is no store in this memory: create one")
        return cls(disk, clock, len(disk.versions), read_only=read_only)

    @classmethod
    def create_or_open(cls, disk: MemoryDisk, clock: Clock) -> MemoryStateStore:
        """The store, made if there is none."""
        return cls.open(disk, clock) if disk.versions else cls.create(disk, clock)

    def _stage(self, rows: pa.Table | None, head: Head, head_rows: pa.Table) -> StagedSwap:
        self._disk.staged += 1
        name = f"swap-{self._disk.staged}"
        return StagedSwap(name, head, _Version(name, head, rows))

    def _swap(self, staged: StagedSwap) -> None:
        self._disk.swap(self._version, staged.content)
        self._version += 1
        self._head = staged.head

    def reopen(self, version: int | None = None) -> MemoryStateStore:
        latest = len(self._disk.versions)
        return MemoryStateStore(self._disk, self._clock, version or latest, read_only=self._read_only)

    def _adopt(self, fresh: MemoryStateStore) -> None:
        self._version, self._head = fresh._version, fresh._head

    def _swap_name(self, version: int) -> str | None:
        return self._disk.versions[version - 1].swap_name if version <= len(self._disk.versions) else None

    def _stored(self, table: str, state_version: int | None) -> pa.Table:
        version = state_version or self._version
        if version > len(self._disk.versions):
            raise EpochNotFoundError(f"version {version} of the store is not retained")
        column = row_column(table)
        parts = [_EMPTY[table]]
        for each in self._disk.versions[:version]:
            if each.rows is not None and column in each.rows.column_names:
                rows = each.rows.select(["vnode", "epoch", "op", "key", column, "table"])
                rows = rows.filter(pa.compute.equal(rows["table"], table)).drop_columns(["table"])
                parts.append(rows.rename_columns(_NAMES))
        return pa.concat_tables(parts)


_NAMES = ["vnode", "epoch", "op", "key", "row"]
_EMPTY = {
    table: pa.table(
        {
            "vnode": pa.array([], pa.uint8()),
            "epoch": pa.array([], pa.int64()),
            "op": pa.array([], pa.uint8()),
            "key": pa.array([], pa.binary()),
            "row": pa.array([], row_type(table)),
        }
    )
    for table in TABLES
}

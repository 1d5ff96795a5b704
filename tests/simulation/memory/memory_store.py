"""A store in memory, for simulation and tests: the contract of `StateStore`, without a disk."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from state.clock import Clock
from state.errors import CommitRefusedError, StoreNotFoundError
from state.store.head_swap import HeadSwapStore, StagedSwap
from state.store.store import StagedFold
from state.tables.delta import Changes, Delta
from state.tables.ledger_counts import COUNTED, counted
from state.tables.records import Head
from state.tables.row_selection import Clue, RowSelection
from state.tables.staging_age import require_fresh
from state.tables.tables import DELETE, PUT, TABLES
from state.upkeep.fold_plan import FOLD_FACTOR
from tests.simulation.memory.memory_disk import MemoryDisk, MemoryVersion, Row


class MemoryStateStore(HeadSwapStore):
    """A handle on a `MemoryDisk`; a fresh handle sees exactly what was committed.

    A version is a dictionary of rows for each table; versions share unchanged tables.  Only `scan` makes Arrow.
    """

    def __init__(self, disk: MemoryDisk, clock: Clock, version: int, *, read_only: bool = False) -> None:
        self._made = disk.version(version)  # kept: a vacuum may delete it from the disk while this handle is open
        super().__init__(clock, self._made.head, version, read_only=read_only)
        self._disk = disk

    @classmethod
    def create(cls, disk: MemoryDisk, clock: Clock) -> MemoryStateStore:
        """A new store.

        Raises:
            CommitRefusedError: a store exists already.
        """
        if disk.latest:
            raise CommitRefusedError("a store exists already: open it")
        disk.add(MemoryVersion("create", Head(0, 0), {}))
        return cls(disk, clock, 1)

    @classmethod
    def open(cls, disk: MemoryDisk, clock: Clock, *, read_only: bool = False) -> MemoryStateStore:
        """The store as it is now.

        Raises:
            StoreNotFoundError: the disk has no store.
        """
        if not disk.latest:
            raise StoreNotFoundError("this memory has no store: create one")
        return cls(disk, clock, disk.latest, read_only=read_only)

    @classmethod
    def create_or_open(cls, disk: MemoryDisk, clock: Clock) -> MemoryStateStore:
        """The store, created if it does not exist."""
        return cls.open(disk, clock) if disk.latest else cls.create(disk, clock)

    def scan(
        self,
        table: str,
        *,
        start: bytes | None = None,
        end: bytes | None = None,
        vnodes: Collection[int] | None = None,
        keys: Collection[bytes] | None = None,
        prefixes: Collection[bytes] | None = None,
        where: Sequence[Clue] = (),
        fields: Sequence[str] | None = None,
        state_version: int | None = None,
    ) -> pa.Table:
        schema = _SCHEMAS[table] if fields is None else _schema_of(table, fields)
        stored = self._by_key(table, state_version)
        if not stored:
            return schema.empty_table()
        selection = RowSelection(start, end, vnodes, keys, prefixes)
        rows = [row for row in stored.values() if selection.holds(row["key"], row["vnode"])]
        if not where:
            return pa.Table.from_pylist(rows, schema)
        found = pa.Table.from_pylist(rows, _SCHEMAS[table])
        for clue in where:
            found = found.filter(clue.fits(found))
        return found.select(schema.names)

    def slices(
        self,
        table: str,
        *,
        start: bytes | None = None,
        end: bytes | None = None,
        where: Sequence[Clue] = (),
        fields: Sequence[str] | None = None,
        state_version: int | None = None,
    ) -> Iterator[pa.Table]:
        rows = self.scan(table, start=start, end=end, where=where, fields=fields, state_version=state_version)
        if rows.num_rows:
            yield rows.sort_by("key")

    def count_ledger(self, state_version: int | None = None) -> pa.Table:
        return counted(self.scan("ledger", fields=COUNTED, state_version=state_version))

    def rows(self, table: str, state_version: int | None = None) -> list[dict[str, Any]]:
        return [row.copy() for row in self._by_key(table, state_version).values()]

    def get(self, table: str, key: bytes, state_version: int | None = None) -> dict[str, Any] | None:
        row = self._by_key(table, state_version).get(key)
        return None if row is None else row.copy()

    def reopen(self, version: int | None = None) -> MemoryStateStore:
        return MemoryStateStore(self._disk, self._clock, version or self._disk.latest, read_only=self._read_only)

    def _stage(self, delta: Delta | None, head: Head) -> StagedSwap:
        self._disk.swaps += 1
        name = f"swap-{self._disk.swaps}"
        tables = dict(self._made.tables)
        if delta is not None:
            for part in (delta, *self._staged(delta)):
                for table, changes in part.changes.items():
                    tables[table] = _changed(table, tables.get(table, {}), changes, head.epoch)
        return StagedSwap(name, head, MemoryVersion(name, head, tables))

    def _staged(self, delta: Delta) -> Iterator[Delta]:
        """The staged parts of a delta.  A part that was deleted is left out: a commit would not notice."""
        for rows in delta.staged:
            staged = self._disk.staged[rows.content]
            require_fresh(staged.staged_at, self._clock.now())
            if staged.rows is not None:
                yield staged.rows

    @property
    def fold_interval(self) -> int:
        return FOLD_FACTOR

    def stage_fold(self) -> StagedFold | None:
        # Memory has no fragments to fold; but a fold is a version, which must exist here as on a disk.
        is_folded = self._made.swap_name.startswith(_FOLD)
        return None if is_folded else StagedFold(self._head.term)

    def _stage_fold_swap(self, fold: StagedFold, head: Head) -> StagedSwap:
        staged = self._stage(None, head)
        name = _FOLD + staged.name
        return StagedSwap(name, head, replace(staged.content, swap_name=name))

    def _swap(self, staged: StagedSwap) -> None:
        self._disk.swap(self._version, staged.content)
        self._made = staged.content
        self._version += 1
        self._head = staged.head

    def _persist(self) -> None:
        pass  # this disk loses nothing

    def _adopt(self, fresh: MemoryStateStore) -> None:
        self._version, self._head, self._made = fresh._version, fresh._head, fresh._made

    def _swap_name(self, version: int) -> str | None:
        made = self._disk.versions.get(version)
        return None if made is None else made.swap_name

    def _by_key(self, table: str, state_version: int | None) -> Mapping[bytes, Row]:
        return self._disk.version(state_version or self._version).tables.get(table, {})


_FOLD = "fold-"
_NULLS = {table: dict.fromkeys(fields.names) for table, fields in TABLES.items()}
_SCHEMAS = {
    table: pa.schema([("key", pa.binary()), ("vnode", pa.uint8()), ("epoch", pa.int64()), *fields])
    for table, fields in TABLES.items()
}


def _schema_of(table: str, fields: Sequence[str]) -> pa.Schema:
    return pa.schema([_SCHEMAS[table].field(name) for name in ("key", "vnode", "epoch", *fields)])


def _changed(table: str, rows: Mapping[bytes, Row], changes: Changes, epoch: int) -> dict[bytes, Row]:
    """The rows after the changes of an epoch: the result of `resolve`, computed row by row."""
    changed = dict(rows)
    for key, (op, vnode, fields) in changes.items():
        if op == PUT:
            changed[key] = {"key": key, "vnode": vnode, "epoch": epoch, **_NULLS[table], **fields}
        elif op == DELETE:
            changed.pop(key, None)
        elif key in changed:
            given = {name: value for name, value in fields.items() if value is not None}
            changed[key] = {**changed[key], "epoch": epoch, **given}
    return changed

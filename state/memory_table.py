"""One table as those who write it read it: epochs that are not committed yet, over the rows that are.

A memory table over committed rows, as in RisingWave (`src/storage/src/mem_table.rs`) and in every LSM store.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator
from functools import reduce
from itertools import groupby, starmap
from operator import attrgetter
from typing import Any, NamedTuple

import pyarrow as pa

from state.errors import ProtocolError
from state.store.store import StateStore
from state.tables.delta import Change, Changes, Delta, DeltaBuilder
from state.tables.row_selection import RowSelection
from state.tables.tables import PATCH, PUT, TABLES

Row = dict[str, Any]

_BATCH_ROWS = 1024


class MemoryTable:
    """Reads its own writes: those of the open epoch, over the sealed ones, over a handle's committed rows.

    Rows are as `StateStore.rows` has them; `epoch` is None in what the open epoch wrote.  Sealed epochs are committed
    in their order, by whoever commits, and nobody else writes this table meanwhile.  A handle may already show an epoch
    that is still kept in memory: laid over itself it changes nothing.

    After a recovery what was in flight is lost: make a new one.

    Args:
        store: the handle that committed rows are read from.
        table: a name of `TABLES`.
    """

    def __init__(self, store: StateStore, table: str) -> None:
        self._store, self._table = store, table
        self._nulls = dict.fromkeys(TABLES[table].names)
        self._open = DeltaBuilder()
        self._sealed: dict[int, Changes] = {}
        self._last_epoch = store.head.epoch

    def put(self, key: bytes, vnode: int, **fields: Any) -> None:
        """Writes a whole row; fields that are not named are null."""
        self._open.put(self._table, key, vnode, **fields)

    def patch(self, key: bytes, vnode: int, **fields: Any) -> None:
        """Changes the named fields of the row, if there is one; the others, and those given as None, stay."""
        self._open.patch(self._table, key, vnode, **fields)

    def delete(self, key: bytes, vnode: int) -> None:
        """Removes the row; nothing happens if there is none."""
        self._open.delete(self._table, key, vnode)

    def get(self, key: bytes) -> Row | None:
        """The row with this key; None if there is none.  The store is asked only if memory does not decide."""
        writes = [_Write(key, layer.changes[key], layer.epoch) for layer in self._layers() if key in layer.changes]
        if all(write.change.op == PATCH for write in writes):
            committed = self._store.get(self._table, key)
            if committed is None:
                return None
            writes.insert(0, self._committed(committed))
        return self._row(writes)

    def scan(
        self, *, start: bytes | None = None, end: bytes | None = None, vnodes: Collection[int] | None = None
    ) -> Iterator[Row]:
        """The rows at this moment, by key; they are put together one at a time, as they are asked for.

        Args:
            start: only rows whose key is at least this.
            end: only rows whose key is less than this.
            vnodes: only rows of these.
        """
        selection = RowSelection(start, end, vnodes)
        committed = self._store.scan(self._table, start=start, end=end, vnodes=vnodes).sort_by("key")
        return self._merged([self._all_committed(committed), *(layer.writes(selection) for layer in self._layers())])

    def seal(self, epoch: int) -> Delta:
        """Closes the open epoch under this name, and opens the next one.

        Returns:
            What it changes: one change for each key.  It goes on being read from here.

        Raises:
            ProtocolError: the epoch is not greater than the last that was sealed or committed.
        """
        if epoch <= self._last_epoch:
            raise ProtocolError(
                f"the table {self._table!r} is sealed for epoch {epoch}, which is not after {self._last_epoch}"
            )
        self._last_epoch = epoch
        delta = self._open.build()
        if not delta.is_empty:
            self._sealed[epoch] = delta.changes[self._table]
        return delta

    def follow(self, store: StateStore) -> None:
        """Reads committed rows from this handle, and forgets the sealed epochs that it shows.

        Args:
            store: the handle so far, after a commit on it; or one that was opened since.

        Raises:
            ProtocolError: it shows less than the handle so far.
        """
        shown = store.head.epoch
        if shown < self._store.head.epoch:
            raise ProtocolError(
                f"the table {self._table!r} was read at epoch {self._store.head.epoch}, and is to follow a handle that "
                f"shows {shown}"
            )
        self._store = store
        self._sealed = {epoch: changes for epoch, changes in self._sealed.items() if epoch > shown}
        self._last_epoch = max(self._last_epoch, shown)

    def _layers(self) -> list[_Layer]:
        return [*starmap(_Layer, self._sealed.items()), _Layer(None, self._open.changes(self._table))]

    def _merged(self, runs: Iterable[Iterable[_Write]]) -> Iterator[Row]:
        # Of equal keys the merge gives those of the earlier run first: the order in which they were written.
        for _, writes in groupby(heapq.merge(*runs, key=attrgetter("key")), attrgetter("key")):
            row = self._row(writes)
            if row is not None:
                yield row

    def _row(self, writes: Iterable[_Write]) -> Row | None:
        """What one key's writes, the earliest first, come to."""
        key, change, epoch = reduce(_Write.before, writes)
        if change.op != PUT:
            return None
        return {"key": key, "vnode": change.vnode, "epoch": epoch, **self._nulls, **change.fields}

    def _all_committed(self, rows: pa.Table) -> Iterator[_Write]:
        for batch in rows.to_batches(max_chunksize=_BATCH_ROWS):
            yield from map(self._committed, batch.to_pylist())

    def _committed(self, row: Row) -> _Write:
        return _Write(row["key"], Change(PUT, row["vnode"], {name: row[name] for name in self._nulls}), row["epoch"])


class _Write(NamedTuple):
    """What one layer says of one row; `epoch` is None while it is open."""

    key: bytes
    change: Change
    epoch: int | None

    def before(self, later: _Write) -> _Write:
        """Both, as one write."""
        return _Write(self.key, later.change.over(self.change), later.epoch)


class _Layer(NamedTuple):
    """What one epoch changes."""

    epoch: int | None
    changes: Changes

    def writes(self, selection: RowSelection) -> list[_Write]:
        """Those that are asked for, by key."""
        asked = (key for key, change in self.changes.items() if selection.holds(key, change.vnode))
        return [_Write(key, self.changes[key], self.epoch) for key in sorted(asked)]

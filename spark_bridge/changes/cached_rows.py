"""Rows of a view in the memory of this process, found by the hash of their join key in microseconds each.

The rows are runs, each sorted by hash: a large one that was read from the dataset, and those that came since.  Runs of
neighbouring sizes are merged, as in a log-structured merge tree (O'Neil et al., 1996); a row that leaves stays in its
run as a dead one until then.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from state.tables.stored_rows import FILE_FIELD, JOIN_FIELD
from state.upkeep.fold_plan import next_run

_FLOOR = 4_096
_FACTOR = 8
# A merge of more rows would hold up an epoch.
_FULL = 1_000_000
_WORD = 8
_Positions = npt.NDArray[np.int64]
_Numbers = npt.NDArray[np.int64]
"""See `_numbers`."""


class CachedRows:
    """Holds them.

    Args:
        rows: all rows, with their hash in `__sw_join`.
        key_column: the column of the key by which rows leave; None if they never do.
    """

    def __init__(self, rows: pa.Table, key_column: str | None) -> None:
        self._key_column = key_column
        self._schema = rows.schema
        self._runs = [_Run(rows, key_column)]

    @property
    def nbytes(self) -> int:
        """Their size in bytes, with dead rows and the orders by which rows are found."""
        return sum(run.nbytes for run in self._runs)

    @property
    def num_rows(self) -> int:
        """Their number, without dead rows."""
        return self._all_rows - self._dead

    @property
    def row_bytes(self) -> float:
        """The bytes that a row takes, dead or not."""
        return self.nbytes / max(1, self._all_rows)

    @property
    def dead_share(self) -> float:
        """The share of rows that have left and still take memory, from 0 to 1."""
        return self._dead / max(1, self._all_rows)

    @property
    def _all_rows(self) -> int:
        return sum(run.rows.num_rows for run in self._runs)

    @property
    def _dead(self) -> int:
        return sum(run.dead for run in self._runs)

    def with_keys(self, by: str, keys: pa.Array, columns: list[str]) -> pa.Table:
        """The rows with these keys, in any order.

        Args:
            by: `__sw_join`, or `__sw_file` if rows leave with their file.
            keys: those that are wanted.
        """
        wanted = _wanted(keys)
        # Files are looked up by a part of their key, and no key at all by the number 0.
        is_exact = by == JOIN_FIELD.name and 0 not in wanted
        read = columns if is_exact else [*dict.fromkeys([by, *columns])]
        found = pa.concat_tables([run.with_numbers(by, wanted, read) for run in self._runs])
        if is_exact:
            return found
        is_wanted = pc.is_in(found.column(by), value_set=keys.cast(found.schema.field(by).type))
        return found.filter(is_wanted).select(columns)

    def follow(self, keys: pa.Array, gone: pa.Table | None, new: pa.Table) -> None:
        """Takes out all rows with some keys, and adds others, see `ChangeSet`.

        Args:
            keys: of the rows that leave.
            gone: the rows that leave; None if they are known by their file.
            new: the rows that come.
        """
        if len(keys):
            assert self._key_column is not None, "rows that leave have a key"
            by, known = (self._key_column, keys) if gone is None else (JOIN_FIELD.name, gone.column(JOIN_FIELD.name))
            wanted = _wanted(known)
            for run in self._runs:
                run.remove(by, wanted, keys)
        if new.num_rows:
            self._runs.append(_Run(new.select(self._schema.names).cast(self._schema), self._key_column))
        self._merge()

    def expire(self, column: str, before_us: int) -> None:
        """Takes out the rows whose time is before a bound, in microseconds since 1970."""
        for run in self._runs:
            run.expire(column, before_us)
        # Rows leave in about the order in which they came: the old runs become small.
        self._runs = [
            _Run(run.living, self._key_column) if 2 * run.dead > run.rows.num_rows else run for run in self._runs
        ]
        self._merge()

    def _merge(self) -> None:
        sizes = [run.rows.num_rows for run in self._runs]
        while (due := next_run(sizes, floor=_FLOOR, full=_FULL, factor=_FACTOR)) is not None:
            merged = pa.concat_tables(run.living for run in self._runs[due.start : due.stop])
            self._runs[due.start : due.stop] = [_Run(merged, self._key_column)]
            sizes[due.start : due.stop] = [merged.num_rows]


class _Run:
    """Rows in the order of their hash.  Arguments as for `CachedRows`."""

    def __init__(self, rows: pa.Table, key_column: str | None) -> None:
        hashes = _numbers(rows.column(JOIN_FIELD.name))
        order = np.argsort(hashes, kind="stable")
        self.rows = rows.take(pa.array(order)).combine_chunks()
        self._hashes = hashes[order]
        self._key_column = key_column
        self._leaves = np.zeros(rows.num_rows, np.bool_)
        self.dead = 0
        self._by_file: tuple[_Numbers, _Positions] | None = None
        if key_column == FILE_FIELD.name:
            files = _numbers(self.rows.column(key_column))
            by_file = np.argsort(files, kind="stable")
            self._by_file = files[by_file], by_file

    @property
    def nbytes(self) -> int:
        orders = sum(each.nbytes for each in self._by_file or ())
        return int(self.rows.nbytes + self._hashes.nbytes + self._leaves.nbytes + orders)

    @property
    def living(self) -> pa.Table:
        """The rows that have not left."""
        return self.rows.filter(pa.array(~self._leaves)) if self.dead else self.rows

    def with_numbers(self, by: str, wanted: _Numbers, columns: list[str]) -> pa.Table:
        """Columns of the living rows with some numbers of keys."""
        rows, at = self.rows.select(columns), self._at(by, wanted)
        return rows.take(pa.array(at)) if len(at) else rows.slice(0, 0)

    def remove(self, by: str, wanted: _Numbers, keys: pa.Array) -> None:
        """Takes out the rows with some keys, which are among those with some numbers."""
        at = self._at(by, wanted)
        found = self.rows.column(self._key_column).take(pa.array(at))
        leaving = at[pc.is_in(found, value_set=keys.cast(found.type)).to_numpy()]
        self._leaves[leaving] = True
        self.dead += len(leaving)

    def expire(self, column: str, before_us: int) -> None:
        times = self.rows.column(column)
        is_before = pc.less(times, pa.scalar(before_us, pa.timestamp("us")).cast(times.type))
        leaving = pc.fill_null(is_before, False).to_numpy() & ~self._leaves
        self._leaves |= leaving
        self.dead += int(leaving.sum())

    def _at(self, by: str, wanted: _Numbers) -> _Positions:
        """The positions of living rows with some numbers of keys."""
        numbers, order = self._hashes, None
        if by != JOIN_FIELD.name:
            assert self._by_file is not None, "rows are found by their hash, or by their file"
            numbers, order = self._by_file
        first, last = np.searchsorted(numbers, wanted, "left"), np.searchsorted(numbers, wanted, "right")
        counts = last - first
        starts = np.repeat(first - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts) if len(counts) else first
        at = starts + np.arange(counts.sum())
        at = at if order is None else order[at]
        return at[~self._leaves[at]] if self.dead else at


def _wanted(keys: pa.Array | pa.ChunkedArray) -> _Numbers:
    """The numbers of some keys, each once, in their order."""
    return np.unique(_numbers(keys))


def _numbers(keys: pa.Array | pa.ChunkedArray) -> _Numbers:
    """A number for each key: a hash itself, or the first bytes of the fingerprint of a file."""
    if isinstance(keys, pa.ChunkedArray):
        keys = keys.combine_chunks()
    if not pa.types.is_binary(keys.type):
        return np.asarray(pc.fill_null(keys.cast(JOIN_FIELD.type), 0))
    first = pc.binary_slice(pc.fill_null(keys, bytes(_WORD)), 0, _WORD).cast(pa.large_binary())
    data, start = first.buffers()[2], _WORD * first.offset
    return np.frombuffer(data, np.int64, len(first), start) if len(first) else np.empty(0, np.int64)

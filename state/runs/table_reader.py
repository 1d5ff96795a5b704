"""Reads of one table: its runs and the log, merged slice by slice in the order of keys."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from heapq import merge
from itertools import accumulate

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from state.runs.directory import Directory
from state.runs.fragments import in_groups
from state.runs.log_keys import MOST_ROWS
from state.runs.sources import (
    BLOCK_ROWS,
    BlockIndexes,
    MemorySource,
    RunSource,
    Source,
    as_written,
    columns_of,
)
from state.tables.resolve import latest_by_key
from state.tables.row_selection import KeyRange, quoted
from state.tables.tables import PATCH, row_type

SLICE_ROWS = 1 << 17
Positions = npt.NDArray[np.int64]
_LOOKED_UP = 4_096
_THREADS, _FILES_OF_A_THREAD = 2, 4


class TableReader:
    """Reads rows of one table at one version of the store.

    Args:
        log: the fragments of the log, in the order in which they were committed.
        indexes: the indexes of the pieces.
        fields: fields of the table; None for all.
    """

    def __init__(
        self,
        dataset: lance.LanceDataset,
        directory: Directory,
        log: Sequence[lance.LanceFragment],
        indexes: BlockIndexes,
        table: str,
        fields: Sequence[str] | None = None,
    ) -> None:
        self._dataset, self._log, self._indexes = dataset, log, indexes
        self.table, self._fields = table, fields
        self._columns = columns_of(table, fields)
        self._runs = directory.runs(table)
        fragments = indexes.fragments.of(dataset)
        self._fragments, self._first_rows = fragments.by_path, fragments.first_rows

    def slices(self, start: bytes | None = None, end: bytes | None = None) -> Iterator[pa.Table]:
        """The latest row of each key, in the order of keys: columns vnode, epoch, op, key and row.

        Args:
            start: only keys of at least this.
            end: only keys of less than this.
        """
        yield from merged(self.table, self._sources(start, end), start, end)

    def of_ranges(self, ranges: Sequence[KeyRange]) -> pa.Table:
        """The latest rows of the keys in any of these ranges, in no order.

        Args:
            ranges: sorted, without overlaps.
        """
        if not ranges:
            return self.empty()
        # The keys of all blocks that are searched at once are in memory.
        some = (ranges[at : at + _LOOKED_UP] for at in range(0, len(ranges), _LOOKED_UP))
        parts = [*(self._in_runs(each) for each in some), self._in_log(ranges)]
        parts = [part for part in parts if part.num_rows]
        return latest_by_key(self.table, pa.concat_tables(parts)) if parts else self.empty()

    def _in_log(self, ranges: Sequence[KeyRange]) -> pa.Table:
        """The rows that the log has of these ranges."""
        if sum(fragment.count_rows() for fragment in self._log) <= MOST_ROWS:
            wanted = self._indexes.log.found(self._dataset, self._log, self.table, ranges)
            return as_written(self._taken(wanted, self._columns), self.table, self._fields) if wanted else self.empty()
        logged = self._logged(self._log, ranges[0][0], ranges[-1][1])
        starts = [start for start, _ in ranges]
        keys = logged["key"].to_pylist()
        at = [bisect_right(starts, key) - 1 for key in keys]
        is_wanted = [n >= 0 and key < ranges[n][1] for n, key in zip(at, keys, strict=True)]
        return logged.filter(pa.array(is_wanted, pa.bool_()))

    def _in_runs(self, ranges: Sequence[KeyRange]) -> pa.Table:
        """The rows that the runs have of these ranges."""
        blocks = [
            each
            for run in self._runs
            for each in RunSource(self.table, run, self._fragments, self._indexes, self._fields).blocks_of(ranges)
        ]
        if not blocks:
            return self.empty()
        within = [np.concatenate([np.arange(*span) for span in each.spans]) for each in blocks]
        keys = self._taken([(each.path, rows) for each, rows in zip(blocks, within, strict=True)], ["key"])["key"]
        wanted: list[tuple[str, Positions]] = []
        known: list[Positions] = []
        for each, rows, offset in zip(blocks, within, accumulate(map(len, within), initial=0), strict=False):
            found = np.array(each.found(keys.slice(offset, len(rows)).combine_chunks()), np.int64)
            wanted.append((each.path, rows[found]))
            known.append(offset + found)
        read = self._taken(wanted, [column for column in self._columns if column != "key"])
        read = read.add_column(self._columns.index("key"), "key", keys.take(pa.array(np.concatenate(known))))
        return as_written(read, self.table, self._fields)

    def of_keys(self, keys: pa.ChunkedArray) -> pa.Table:
        """The latest rows of these keys, in no order."""
        if len(keys) <= _LOOKED_UP:
            return self.of_ranges([(key, key + b"\x00") for key in sorted(set(keys.to_pylist()))])
        wanted = keys.combine_chunks()
        ends = pc.min_max(wanted).as_py()
        found = []
        for piece in (piece for run in self._runs for piece in run.pieces):
            if piece.overlaps(ends["min"], ends["max"] + b"\x00"):
                stored = self._fragments[piece.path].to_table(columns=["key"], offset=0, limit=piece.rows)["key"]
                positions = pc.indices_nonzero(pc.is_in(stored, value_set=wanted)).to_pylist()
                found.append((piece.path, positions))
        rows = as_written(self._taken(found, self._columns), self.table, self._fields) if found else self.empty()
        logged = self._logged(self._log, ends["min"], ends["max"] + b"\x00")
        logged = logged.filter(pc.is_in(logged["key"], value_set=wanted))
        return latest_by_key(self.table, pa.concat_tables([rows, logged]))

    def _taken(self, wanted: Sequence[tuple[str, Sequence[int] | Positions]], columns: list[str]) -> pa.Table:
        """Single rows of data files, in this order.

        Lance requests all of them side by side, and decodes them in one thread, file by file.

        Args:
            wanted: for data files, at least one, the positions of rows.
        """
        rows = np.concatenate([self._first_rows[path] + np.asarray(positions, np.int64) for path, positions in wanted])
        if len(wanted) < _FILES_OF_A_THREAD * _THREADS:
            return self._dataset.take(rows.tolist(), columns=columns)
        with ThreadPoolExecutor(_THREADS) as threads:
            parts = [part.tolist() for part in np.array_split(rows, _THREADS)]
            return pa.concat_tables(threads.map(partial(self._dataset.take, columns=columns), parts))

    def keys_where(
        self, conditions: Sequence[str], within: str = "true", at_most: int | None = None
    ) -> pa.ChunkedArray:
        """The keys of candidate rows, in no order, some twice: a row has fit each condition at some time.

        Lance filters millions of rows without returning them.

        Args:
            conditions: conditions for Lance on rows of the table.
            within: a condition for Lance on the keys of these rows.
            at_most: ends the search of a single condition behind this number of rows.
        """
        pieces = [self._fragments[piece.path] for run in self._runs for piece in run.pieces]
        fragments = [*pieces, *self._log]
        if not fragments:
            return pa.chunked_array([], pa.binary())

        def keys(condition: str) -> pa.ChunkedArray:
            condition = f"`table` = {quoted(self.table)} AND {within} AND ({condition})"
            limit = at_most if len(conditions) < 2 else None
            scanner = self._dataset.scanner(columns=["key"], filter=condition, fragments=fragments, limit=limit)
            return scanner.to_table()["key"]

        found = keys(" AND ".join(conditions) or "true")
        if len(conditions) < 2:
            return found
        # A row may fit one condition by a patch, and the others by an earlier write.
        patched = keys(f"op = {PATCH} AND ({' OR '.join(conditions)})")
        for condition in conditions if len(patched) else ():
            patched = patched.filter(pc.is_in(patched, value_set=keys(condition)))
        return pa.chunked_array([*found.chunks, *patched.chunks], pa.binary())

    def _sources(self, start: bytes | None, end: bytes | None) -> list[Source]:
        runs = [RunSource(self.table, run, self._fragments, self._indexes, self._fields) for run in self._runs]
        return [*runs, *self.log_sources(start, end)]

    def log_sources(self, start: bytes | None = None, end: bytes | None = None) -> Iterator[MemorySource]:
        """The rows of the log, oldest first."""
        for some in in_groups(self._log, SLICE_ROWS):
            yield from self._memory_source(some, start, end)

    def _memory_source(
        self, log: Sequence[lance.LanceFragment], start: bytes | None, end: bytes | None
    ) -> Iterator[MemorySource]:
        rows = self._logged(log, start, end)
        if rows.num_rows:
            yield MemorySource(rows)

    def _logged(self, log: Sequence[lance.LanceFragment], start: bytes | None, end: bytes | None) -> pa.Table:
        if not log:
            return self.empty()
        condition = f"`table` = {quoted(self.table)}"
        condition += "" if start is None else f" AND key >= X'{start.hex()}'"
        condition += "" if end is None else f" AND key < X'{end.hex()}'"
        scanner = self._dataset.scanner(columns=self._columns, filter=condition, fragments=list(log))
        return as_written(scanner.to_table(), self.table, self._fields)

    def empty(self) -> pa.Table:
        """No rows, with the columns of `slices`."""
        return _empty(self.table, self._fields)


def merged(
    table: str, sources: Sequence[Source], start: bytes | None = None, end: bytes | None = None
) -> Iterator[pa.Table]:
    """The latest row of each key of all sources, in the order of keys, slice by slice.

    Args:
        sources: oldest first.
        start: only keys of at least this.
        end: only keys of less than this.
    """
    for first, last in _cut(sources, start, end):
        # A run has each key once; rows of the log must be resolved in any case.
        parts = [(source, rows) for source in sources if (rows := source.between(first, last)).num_rows]
        if len(parts) == 1 and isinstance(parts[0][0], RunSource):
            yield parts[0][1]
        elif parts:
            rows = latest_by_key(table, pa.concat_tables([rows for _, rows in parts]))
            yield rows.take(pc.sort_indices(rows["key"]))


def _cut(
    sources: Sequence[Source], start: bytes | None, end: bytes | None
) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Ranges of keys with about `SLICE_ROWS` rows each, in their order, which make up one range."""
    blocks = 0
    if sum(source.rows for source in sources) > SLICE_ROWS:
        for border in merge(*(source.borders(start, end) for source in sources)):
            blocks += 1
            if blocks * BLOCK_ROWS >= SLICE_ROWS and (start is None or border > start):
                yield start, border
                start, blocks = border, 0
    yield start, end


def _empty(table: str, fields: Sequence[str] | None) -> pa.Table:
    columns = {
        "vnode": pa.array([], pa.uint8()),
        "epoch": pa.array([], pa.int64()),
        "op": pa.array([], pa.uint8()),
        "key": pa.array([], pa.binary()),
        "row": pa.array([], row_type(table, fields)),
    }
    return pa.table(columns)

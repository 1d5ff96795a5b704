"""Sources of the rows of one table, each sorted by key: a run, or rows of the log in memory."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import lance
import pyarrow as pa
import pyarrow.compute as pc

from state.runs.directory import Piece, Run
from state.runs.fragments import FragmentsOfVersions
from state.runs.log_keys import LogKeys
from state.runs.recent_rows import RecentRows
from state.tables.row_selection import KeyRange
from state.tables.tables import row_column, row_type

BLOCK_ROWS = 64
COMMON = ("vnode", "epoch", "op", "key")
_MOST_INDEXES = 256


class Source(Protocol):
    """Rows of one table, sorted by key: columns vnode, epoch, op, key and row."""

    rows: int

    def between(self, start: bytes | None, end: bytes | None) -> pa.Table:
        """The rows with a key of at least `start` and less than `end`."""
        ...

    def borders(self, start: bytes | None, end: bytes | None) -> Sequence[bytes]:
        """The key of every `BLOCK_ROWS`-th row of this range, roughly."""
        ...


class BlockIndexes:
    """The indexes of pieces, read when they are needed: the first key of each block of `BLOCK_ROWS` rows.

    Attributes:
        fragments: the fragments of the store.
        recent: rows of its log.
        log: the keys of its log.
    """

    def __init__(self) -> None:
        self.fragments = FragmentsOfVersions()
        self.recent = RecentRows()
        self.log = LogKeys(self.recent)
        self._first_keys: dict[str, list[bytes]] = {}

    def of(self, fragment: lance.LanceFragment, piece: Piece) -> list[bytes]:
        """The first key of each block of a piece."""
        if not piece.blocks:
            return [piece.first_key]
        found = self._first_keys.get(piece.path)
        if found is None:
            rows = fragment.to_table(columns=["key"], offset=piece.rows, limit=piece.blocks)
            found = rows["key"].to_pylist()
            while len(self._first_keys) >= _MOST_INDEXES:
                self._first_keys.pop(next(iter(self._first_keys)), None)
            self._first_keys[piece.path] = found
        return found


@dataclass(frozen=True)
class PieceBlocks:
    """Blocks of a piece that may hold keys that are looked up.

    Args:
        path: the data file of the piece.
        spans: positions of rows, without overlaps: the first, and behind the last.
    """

    path: str
    spans: Sequence[tuple[int, int]]
    ranges: Sequence[KeyRange]

    def found(self, keys: pa.Array) -> list[int]:
        """The positions, among all rows of the blocks, of the rows with a key in one of the ranges.

        Args:
            keys: the keys of all rows of the blocks.
        """
        return _found(keys, self.spans, self.ranges)


class RunSource:
    """A run in Lance.

    Args:
        table: the table of the run.
        fragments: data file → fragment.
        indexes: the indexes of the pieces.
        fields: fields of the table; None for all.
    """

    def __init__(
        self,
        table: str,
        run: Run,
        fragments: Mapping[str, lance.LanceFragment],
        indexes: BlockIndexes,
        fields: Sequence[str] | None,
    ) -> None:
        self._pieces, self._fragments, self._indexes = run.pieces, fragments, indexes
        self._table, self._fields = table, fields
        self._columns = columns_of(table, fields)
        self.rows = run.rows

    def between(self, start: bytes | None, end: bytes | None) -> pa.Table:
        parts = []
        for piece in self._overlapping(start, end):
            first, last = self._blocks(piece, start, end)
            read = self._fragments[piece.path].to_table(columns=self._columns, offset=first, limit=last - first)
            parts.append(_within(as_written(read, self._table, self._fields), start, end))
        return pa.concat_tables(parts) if parts else pa.table({name: [] for name in (*COMMON, "row")})

    def borders(self, start: bytes | None, end: bytes | None) -> Sequence[bytes]:
        borders = []
        for piece in self._overlapping(start, end):
            index = self._indexes.of(self._fragments[piece.path], piece)
            first, last = self._blocks(piece, start, end)
            borders += index[first // BLOCK_ROWS : -(-last // BLOCK_ROWS)]
        return borders

    def blocks_of(self, ranges: Sequence[KeyRange]) -> Iterator[PieceBlocks]:
        """The blocks that may hold a key of these ranges, which are sorted and do not overlap."""
        starts, ends = [start for start, _ in ranges], [end for _, end in ranges]
        for piece in self._overlapping(starts[0], ends[-1]):
            own = ranges[bisect_right(ends, piece.first_key) : bisect_right(starts, piece.last_key)]
            if own:
                spans = _united([self._blocks(piece, start, end) for start, end in own])
                yield PieceBlocks(piece.path, spans, own)

    def _overlapping(self, start: bytes | None, end: bytes | None) -> Sequence[Piece]:
        first = 0 if start is None else bisect_left(self._pieces, start, key=lambda piece: piece.last_key)
        last = len(self._pieces) if end is None else bisect_left(self._pieces, end, key=lambda piece: piece.first_key)
        return self._pieces[first:last]

    def _blocks(self, piece: Piece, start: bytes | None, end: bytes | None) -> tuple[int, int]:
        """The positions of the blocks of a piece with all its rows in this range: the first, and behind the last."""
        from_first = start is None or start <= piece.first_key
        to_last = end is None or end > piece.last_key
        if (from_first and to_last) or not piece.blocks:
            return 0, piece.rows
        index = self._indexes.of(self._fragments[piece.path], piece)
        first = 0 if from_first else bisect_right(index, start) - 1  # type: ignore[type-var]
        last = len(index) if to_last else bisect_left(index, end)  # type: ignore[type-var]
        return first * BLOCK_ROWS, min(last * BLOCK_ROWS, piece.rows)


class MemorySource:
    """Rows in memory, as they were written.

    Args:
        rows: columns vnode, epoch, op, key and row, in the order in which they were written.
    """

    def __init__(self, rows: pa.Table) -> None:
        rows = rows.take(pc.sort_indices(rows["key"]))  # stable: of one key the later rows stay the later
        self._rows, self.rows = rows.combine_chunks(), rows.num_rows
        self._keys = self._rows["key"].combine_chunks()

    def between(self, start: bytes | None, end: bytes | None) -> pa.Table:
        first, last = self._positions(start, end)
        return self._rows.slice(first, last - first)

    def borders(self, start: bytes | None, end: bytes | None) -> Sequence[bytes]:
        first, last = self._positions(start, end)
        return [self._keys[at].as_py() for at in range(first, last, BLOCK_ROWS)]

    def _positions(self, start: bytes | None, end: bytes | None) -> tuple[int, int]:
        every = range(self.rows)
        first = 0 if start is None else bisect_left(every, start, key=lambda at: self._keys[at].as_py())
        last = self.rows if end is None else bisect_left(every, end, key=lambda at: self._keys[at].as_py())
        return first, max(first, last)


def columns_of(table: str, fields: Sequence[str] | None) -> list[str]:
    """The columns of the dataset that hold rows of a table, with all fields or with some."""
    row = row_column(table)
    return [*COMMON, *([row] if not fields else (f"{row}.{name}" for name in fields))]


def as_written(read: pa.Table, table: str, fields: Sequence[str] | None) -> pa.Table:
    """The columns of a source, from the result of Lance for `columns_of`: a struct, or its fields."""
    if not fields:
        return read.rename_columns([*COMMON, "row"])
    row = row_type(table, fields)
    if (column := row_column(table)) in read.column_names:
        # A `take` returns a struct, with its fields in the order of the table.
        columns = [*read.columns[: len(COMMON)], *(pc.struct_field(read[column], name) for name in fields)]
        read = pa.table(columns, [*COMMON, *fields])
    batches = []
    for batch in read.to_batches():
        columns = [pa.StructArray.from_arrays(batch.columns[len(COMMON) :], fields=list(row))]
        batches.append(pa.record_batch([*batch.columns[: len(COMMON)], *columns], [*COMMON, "row"]))
    schema = pa.schema([*read.schema][: len(COMMON)]).append(pa.field("row", row))
    return pa.Table.from_batches(batches, schema)


def _within(rows: pa.Table, start: bytes | None, end: bytes | None) -> pa.Table:
    """The rows in a range of keys; `rows` are sorted, and only some at both ends may be outside."""
    if not rows.num_rows:
        return rows
    keys = rows["key"]
    first = 0
    if start is not None and keys[0].as_py() < start:
        first = bisect_left(range(len(keys)), start, key=lambda at: keys[at].as_py())
    last = len(keys)
    if end is not None and keys[-1].as_py() >= end:
        last = bisect_left(range(len(keys)), end, key=lambda at: keys[at].as_py())
    return rows.slice(first, max(0, last - first))


def _united(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same positions without overlaps; the spans are sorted by their begin."""
    united: list[tuple[int, int]] = []
    for first, last in spans:
        if united and first <= united[-1][1]:
            united[-1] = united[-1][0], max(last, united[-1][1])
        else:
            united.append((first, last))
    return united


def _found(keys: pa.Array, spans: Sequence[tuple[int, int]], ranges: Sequence[KeyRange]) -> list[int]:
    """The positions of the keys that are in any of the ranges.

    Args:
        keys: the keys at the positions of `spans`, one span after the other.
        spans: positions in the piece, of whole blocks.
        ranges: ranges of keys; sorted, without overlaps.
    """
    found: list[int] = []
    before = at_range = 0
    for first, last in spans:
        # Block by block: a Python object for each of a million keys would cost more than the read.
        for block in range(first, last, BLOCK_ROWS):
            size = min(BLOCK_ROWS, last - block)
            offset = before + block - first
            lowest, highest = keys[offset].as_py(), keys[offset + size - 1].as_py()
            while at_range < len(ranges) and ranges[at_range][1] <= lowest:
                at_range += 1
            if at_range < len(ranges) and ranges[at_range][0] <= highest:
                some = keys.slice(offset, size).to_pylist()
                for at in range(at_range, len(ranges)):
                    start, end = ranges[at]
                    if start > highest:
                        break
                    found += range(offset + bisect_left(some, start), offset + bisect_left(some, end))
        before += last - first
    return found

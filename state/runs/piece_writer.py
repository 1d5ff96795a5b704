"""Writes runs: fragments of one table, sorted by key, each with an index of its blocks behind its rows."""

from __future__ import annotations

from collections.abc import Iterator

import lance
import pyarrow as pa
import pyarrow.compute as pc
from lance import FragmentMetadata
from lance.fragment import write_fragments

from state.runs.directory import Piece
from state.runs.sources import BLOCK_ROWS, COMMON
from state.tables.lance_layout import for_lance
from state.tables.tables import DELETE, PATCH, row_column

PIECE_ROWS = 1 << 17
_INDEXED_ROWS = 4 * BLOCK_ROWS
_INDEX = "index"


class PieceWriter:
    """Writes pieces of one run.

    The index is at the end of a piece, as in an SSTable
    (https://github.com/facebook/rocksdb/wiki/Rocksdb-BlockBasedTable-Format): rows of no table, with the first key of
    each block of `BLOCK_ROWS` rows.  They repeat the fields of the block's first row, which no reader looks at.

    Args:
        dataset: the dataset that a later commit adds the pieces to.
        table: the table of the rows.
        run: the number of the run.
        piece_rows: the most rows of a piece.
    """

    def __init__(self, dataset: lance.LanceDataset, table: str, run: int, piece_rows: int = PIECE_ROWS) -> None:
        self._dataset, self._table, self.run, self._piece_rows = dataset, table, run, piece_rows
        self.fragments: list[FragmentMetadata] = []
        self.pieces: list[Piece] = []

    def write(self, slices: Iterator[pa.Table], most_rows: int) -> None:
        """Writes rows: columns vnode, epoch, op, key and row, in the order of keys.

        Args:
            most_rows: at least their number: they are cut into pieces of equal size.

        Raises:
            OSError, RuntimeError: an error of Lance.
        """
        size = -(-most_rows // -(-most_rows // self._piece_rows)) if most_rows else 1
        held: list[pa.Table] = []
        count = 0
        for rows in slices:
            held.append(rows)
            count += rows.num_rows
            while count >= size:
                every = pa.concat_tables(held)
                self._write(every.slice(0, size))
                held, count = [every.slice(size)], count - size
        if count:
            self._write(pa.concat_tables(held))

    def _write(self, rows: pa.Table) -> None:
        keys, ops = rows["key"].combine_chunks(), rows["op"]
        blocks = -(-rows.num_rows // BLOCK_ROWS) if rows.num_rows > _INDEXED_ROWS else 0
        written = for_lance(self._as_stored(rows, blocks))
        [fragment] = write_fragments(written, self._dataset, mode="append", max_rows_per_file=written.num_rows)
        self.fragments.append(fragment)
        self.pieces.append(
            Piece(
                path=fragment.files[0].path,
                table=self._table,
                run=self.run,
                rows=rows.num_rows,
                blocks=blocks,
                deletes=_count(ops, DELETE),
                patches=_count(ops, PATCH),
                first_key=keys[0].as_py(),
                last_key=keys[-1].as_py(),
            )
        )

    def _as_stored(self, rows: pa.Table, blocks: int) -> pa.Table:
        table = pa.repeat(pa.scalar(self._table), rows.num_rows)
        columns = {"table": table, **{name: rows[name] for name in COMMON}, row_column(self._table): rows["row"]}
        stored = pa.table(columns)
        if not blocks:
            return stored
        firsts = rows.take(pa.array(range(0, rows.num_rows, BLOCK_ROWS)))
        index = {
            "table": pa.repeat(pa.scalar(_INDEX), blocks),
            "vnode": pa.repeat(pa.scalar(0, pa.uint8()), blocks),
            "epoch": pa.repeat(pa.scalar(0, pa.int64()), blocks),
            "op": pa.repeat(pa.scalar(DELETE, pa.uint8()), blocks),
            "key": firsts["key"],
            # Not null: where a struct is null somewhere, Lance takes twice as long to look up a few rows of its fields.
            row_column(self._table): firsts["row"],
        }
        return pa.concat_tables([stored, pa.table(index)])


def _count(ops: pa.ChunkedArray, op: int) -> int:
    return int(pc.sum(pc.equal(ops, pa.scalar(op, pa.uint8()))).as_py() or 0)

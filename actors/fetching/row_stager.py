"""Stages the rows of a materialized source for its dataset, each with the file and the position that it is from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from actors.fetching.read_buffers import Piece
from actors.protocol.blocks import StoredBlock
from actors.schemas.metadata_columns import row_positions
from state.location import Location
from state.tables.stored_rows import FILE_FIELD, LINEAGE, file_number, version_number

if TYPE_CHECKING:
    from state.lance.fragment_stager import FragmentStager


class RowStager:
    """Writes the stored rows of one source.  Any thread.

    Args:
        root: where the pipeline writes.
        path: of the dataset, relative to the root.
    """

    def __init__(self, root: Location, path: str) -> None:
        self._root, self._path = root, path

    def stage(self, rows: pa.Table, pieces: Sequence[Piece]) -> StoredBlock:
        """Writes the rows of one block.

        Args:
            rows: all columns of the source.
            pieces: what they are of, in the same order.

        Raises:
            StorageError: the root cannot be written.
        """
        stored = with_lineage(rows, pieces)
        return StoredBlock(self._path, stored.schema, self._stager.stage(stored))

    @cached_property
    def _stager(self) -> FragmentStager:
        # Lance takes half a second to load, and an actor has other things to do when it starts.
        from state.lance.fragment_stager import FragmentStager

        return FragmentStager(self._root.child(self._path))


def with_lineage(rows: pa.Table, pieces: Sequence[Piece]) -> pa.Table:
    """The rows with the columns of `LINEAGE` before their own."""
    filled = [(piece.progress.file, piece.rows) for piece in pieces if piece.rows is not None]
    which = np.repeat(np.arange(len(filled)), [read.table.num_rows for _, read in filled])
    columns = [
        pa.array([file.path for file, _ in filled], pa.string()).take(pa.array(which)),
        pa.array([version_number(file.version) for file, _ in filled], pa.int64()).take(pa.array(which)),
        pa.concat_arrays([row_positions(read) for _, read in filled]),
    ]
    # In one piece each: of many small ones Lance takes twice as long.
    schema = pa.schema([*LINEAGE, *rows.schema])
    return pa.Table.from_arrays([*columns, *rows.columns], schema=schema).combine_chunks()


def with_files(rows: pa.Table, pieces: Sequence[Piece]) -> pa.Table:
    """The rows with the number of their file at their end."""
    filled = [(piece.progress.path_key, piece.rows) for piece in pieces if piece.rows is not None]
    numbers = np.array([file_number(*key) for key, _ in filled], dtype=np.int64)
    counts = [read.table.num_rows for _, read in filled]
    return rows.append_column(FILE_FIELD, pa.array(np.repeat(numbers, counts), FILE_FIELD.type))

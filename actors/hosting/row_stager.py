"""Stager of a materialized source: writes its rows to its dataset, each with its file and its position in the file."""

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
from state.tables.fingerprint import path_fingerprint
from state.tables.stored_rows import FILE_FIELD, LINEAGE, version_number

if TYPE_CHECKING:
    from state.lance.fragment_stager import FragmentStager


class RowStager:
    """Writes rows of one source as fragments of its dataset.  Any thread.

    Args:
        root: the root of the pipeline.
        path: path of the dataset, relative to the root.
    """

    def __init__(self, root: Location, path: str) -> None:
        self._root, self._path = root, path

    def stage(self, rows: pa.Table, pieces: Sequence[Piece]) -> StoredBlock:
        """Writes the rows of one block.

        Args:
            rows: all columns of the source.
            pieces: their files and positions, in the same order.

        Raises:
            StorageError: the root cannot be written.
        """
        stored = with_lineage(rows, pieces)
        return StoredBlock(self._path, stored.schema, self._stager.stage(stored))

    @cached_property
    def _stager(self) -> FragmentStager:
        # Lance takes half a second to load: not while the actor starts.
        from state.lance.fragment_stager import FragmentStager

        return FragmentStager(self._root.child(self._path))


def with_lineage(rows: pa.Table, pieces: Sequence[Piece]) -> pa.Table:
    """Adds the columns of `LINEAGE` before the columns of the rows."""
    filled = [(piece.progress.file, piece.rows) for piece in pieces if piece.rows is not None]
    which = np.repeat(np.arange(len(filled)), [read.table.num_rows for _, read in filled])
    columns = [
        pa.array([file.path for file, _ in filled], pa.string()).take(pa.array(which)),
        pa.array([version_number(file.version) for file, _ in filled], pa.int64()).take(pa.array(which)),
        pa.concat_arrays([row_positions(read) for _, read in filled]),
    ]
    # One chunk for each column: Lance takes twice as long for many small ones.
    schema = pa.schema([*LINEAGE, *rows.schema])
    return pa.Table.from_arrays([*columns, *rows.columns], schema=schema).combine_chunks()


def with_files(rows: pa.Table, pieces: Sequence[Piece]) -> pa.Table:
    """Adds the fingerprint of its file's path to each row, as the last column."""
    filled = [(piece.progress.path_key, piece.rows) for piece in pieces if piece.rows is not None]
    which = np.repeat(np.arange(len(filled)), [read.table.num_rows for _, read in filled])
    files = pa.array([path_fingerprint(*key) for key, _ in filled], FILE_FIELD.type)
    return rows.append_column(FILE_FIELD, files.take(pa.array(which)))

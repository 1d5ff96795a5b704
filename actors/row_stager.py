"""Stages the rows of a materialized source for its dataset, each with the file and the position that it is from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from actors.messages import StoredBlock
from actors.metadata_columns import row_positions
from actors.read_buffer import Piece
from state.location import Location
from state.stored_rows import FILE_FIELD, LINEAGE, file_number, version_number

if TYPE_CHECKING:
    from state.fragment_stager import FragmentStager


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
        from state.fragment_stager import FragmentStager

        return FragmentStager(self._root.child(self._path))


def with_lineage(rows: pa.Table, pieces: Sequence[Piece]) -> pa.Table:
    """The rows with the columns of `LINEAGE` before their own."""
    paths, versions, positions = [], [], []
    for piece in pieces:
        assert piece.rows is not None, "a piece of a block has rows"
        num_rows, file = piece.rows.table.num_rows, piece.progress.file
        paths.append(pa.repeat(pa.scalar(file.path, pa.string()), num_rows))
        versions.append(pa.repeat(pa.scalar(version_number(file.version), pa.int64()), num_rows))
        positions.append(row_positions(piece.rows))
    columns = [pa.chunked_array(each) for each in (paths, versions, positions)]
    return pa.Table.from_arrays([*columns, *rows.columns], schema=pa.schema([*LINEAGE, *rows.schema]))


def with_files(rows: pa.Table, pieces: Sequence[Piece]) -> pa.Table:
    """The rows with the number of their file at their end."""
    numbers = []
    for piece in pieces:
        assert piece.rows is not None, "a piece of a block has rows"
        number = file_number(*piece.progress.path_key)
        numbers.append(pa.repeat(pa.scalar(number, FILE_FIELD.type), piece.rows.table.num_rows))
    return rows.append_column(FILE_FIELD, pa.chunked_array(numbers, FILE_FIELD.type))

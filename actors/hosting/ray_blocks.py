"""Blocks of rows in Ray's object store, and the rows of materialized sources in their datasets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import pyarrow as pa
import ray

from actors.fetching.instructions import EmitBlock
from actors.fetching.read_buffers import Piece
from actors.hosting.row_stager import RowStager, with_files
from actors.protocol.blocks import Block, StoredBlock
from actors.schemas.metadata_columns import with_epoch
from state.errors import StorageFullError
from state.location import Location


class RayBlocks:
    """The rows on their way out of one fetch actor.  See `Blocks`.

    Args:
        root: the place that the pipeline writes to.
        stored: materialized source → the dataset of its rows, relative to the root.
    """

    def __init__(self, name: str, root: Location, stored: Mapping[str, str]) -> None:
        self._name = name
        self._stagers = {source: RowStager(root, path) for source, path in stored.items()}

    def put(self, block: EmitBlock, columns: frozenset[str] | None) -> tuple[Block, Callable[[], StoredBlock] | None]:
        rows = with_epoch(pa.concat_tables(block.tables).combine_chunks(), block.epoch)
        stager = self._stagers.get(block.source)
        seen = rows if stager is None else with_files(rows, block.pieces)
        table = seen if columns is None else seen.select([name for name in seen.column_names if name in columns])
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        try:
            reference = ray.put(sink.getvalue().to_pybytes())
        except ray.exceptions.OutOfDiskError:
            raise StorageFullError(
                f"{self._name}: Ray's object store is full, and so is the disk that it spills to (95 % by default): "
                "make room there, or start Ray with another spill directory; the run resumes from the last epoch"
            ) from None
        message = Block(self._name, block.source, reference, block.rows, block.nbytes, tuple(table.column_names))
        return message, None if stager is None else partial(stager.stage, rows, block.pieces)

    def store(self, piece: Piece, epoch: int) -> StoredBlock:
        table = piece.table
        assert table is not None, "a piece that is stored has rows"
        return self._stagers[piece.progress.file.source].stage(with_epoch(table, epoch), [piece])

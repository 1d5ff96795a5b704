"""Simulated files as a fetch actor reads them, and its blocks.  Each request is conditional on the file's version."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING
from zlib import crc32

import pyarrow as pa

from actors.fetching.instructions import EmitBlock
from actors.fetching.read_buffers import Piece
from actors.file_errors import EmptyFile, UnreadableFile
from actors.files import FileVersion
from actors.protocol.blocks import Block, StoredBlock
from actors.reading.open_file import NewColumns
from actors.rows import Offset, Rows
from actors.sources.source import SourceDefinition
from state.tables.stored_rows import FILE_FIELD
from tests.simulation.world.bucket import Content
from tests.simulation.world.file_rows import ROW_BYTES, SCHEMA, FileRows
from tests.simulation.world.interruptions import Killed
from tests.simulation.world.simulated_root import SimulatedRoot

if TYPE_CHECKING:
    from tests.simulation.simulated_world import World

_NUM_COLUMNS = 3


class SimulatedFiles:
    """The files of one source.  See `Files`.

    Args:
        source: the source; each file of one that adds columns has one of three.
        schema: None until it is decided.
        world: everything else.
        kill: ends the actor that reads.
    """

    def __init__(
        self, source: SourceDefinition, schema: pa.Schema | None, world: World, kill: Callable[[], None]
    ) -> None:
        self.schema = schema
        self.columns: frozenset[str] | None = None
        self._adds_columns = source.evolution == "add_columns"
        self._world, self._kill = world, kill

    def open(self, file: FileVersion) -> SimulatedFile:
        return SimulatedFile(file, self._world, self._kill, adds_columns=self._adds_columns)

    def check(self) -> None:
        pass


class SimulatedFile:
    """See `ReadableFile`.

    Args:
        file: the version.
        world: everything else.
        kill: ends the actor that reads.
        adds_columns: whether the file has a column of its own.
    """

    def __init__(self, file: FileVersion, world: World, kill: Callable[[], None], *, adds_columns: bool) -> None:
        self._file, self._world, self._kill = file, world, kill
        self._column = f"c{crc32(file.path.encode()) % _NUM_COLUMNS}" if adds_columns else None
        self._row: int | None = None
        self._requests = self._bytes = 0

    def infer_schema(self) -> pa.Schema:
        content = self._requested()
        self._survive(content, 0, 1)
        if content.rows == 0:
            raise EmptyFile(f"{self._file.path} is empty")
        if content.is_unreadable_at(0):
            raise UnreadableFile("row 1: not a number")
        return SCHEMA

    def next_piece(
        self, schema: pa.Schema, offset: Offset, columns: Collection[str] | None = None
    ) -> tuple[Rows, bool]:
        content = self._requested()
        if self._column is not None and self._column not in schema.names:
            raise NewColumns(pa.schema([(self._column, pa.int64())]))
        start = offset.row if self._row is None else self._row
        if content.is_unreadable_at(start):
            raise UnreadableFile(f"row {start + 1}: not a number")
        piece_rows = max(1, self._world.definition.fetch.piece_bytes // ROW_BYTES)
        end = min(start + self._world.random.randint(1, piece_rows), content.readable_rows)
        self._survive(content, start, end)
        rows = content.records((self._file.source, self._file.path, self._file.version), start, end, schema.names)
        self._row = end
        self._bytes += rows.table.nbytes
        return rows, end == content.rows

    def ask(self) -> None:
        pass

    def settle(self) -> None:
        pass

    def take_cost(self) -> tuple[int, int]:
        cost = self._requests, self._bytes
        self._requests = self._bytes = 0
        return cost

    def _requested(self) -> Content:
        self._requests += 1
        return self._world.bucket.read(self._file)

    def _survive(self, content: Content, start: int, end: int) -> None:
        """Ends the actor if one of the rows from `start` to `end` (exclusive) kills."""
        if content.kills_in("fetch", start, end):
            self._kill()
            raise Killed


class SimulatedBlocks:
    """See `Blocks`.

    Args:
        name: the fetch actor's name.
        root: by its way.
        stored: materialized source → the dataset of its rows.
    """

    def __init__(self, name: str, root: SimulatedRoot, stored: Mapping[str, str]) -> None:
        self._name, self._root, self._stored = name, root, stored

    def put(self, block: EmitBlock, columns: frozenset[str] | None) -> tuple[Block, Callable[[], StoredBlock] | None]:
        rows = FileRows.joined(block.tables)
        is_stored = block.source in self._stored
        names = (*rows.column_names, FILE_FIELD.name) if is_stored else rows.column_names
        message = Block(self._name, block.source, rows, block.rows, block.nbytes, names)
        store = partial(self._store, block.source, rows) if is_stored else None
        return message, store

    def store(self, piece: Piece, epoch: int) -> StoredBlock:
        assert piece.rows is not None, "a piece that is stored has rows"
        return self._store(piece.progress.file.source, piece.rows.table)

    def _store(self, source: str, rows: FileRows) -> StoredBlock:
        path = self._stored[source]
        schema = pa.schema([(name, pa.int64()) for name in rows.column_names])
        return StoredBlock(path, schema, (self._root.stage_rows(path, rows.spans),))

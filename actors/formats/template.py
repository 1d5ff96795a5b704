"""The template of the built-in readers: open, tables, conform, cut.

A reader of tables (Avro, ORC, Parquet) fills in `open` and `tables`; a reader of text fills in `RecordReader.open`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Generic, NamedTuple, TypeVar

import pyarrow as pa

from actors.formats.conformed import conformed
from actors.formats.limits import CpuTime, Expansion
from actors.formats.pieces import pieces
from actors.objects.object_file import ObjectFile
from actors.rows import Offset, Rows
from actors.schemas.chosen_columns import missing_columns, only_columns, without_columns
from actors.schemas.conform import Timestamps, require_common_column, require_fitting_columns
from actors.schemas.safe_types import safe_schema
from actors.settings import MIB, ReadLimits

Head = TypeVar("Head")


class ReadRequest(NamedTuple):
    """The arguments of `FileReader.read`."""

    file: ObjectFile
    schema: pa.Schema
    offset: Offset
    piece_bytes: int
    columns: Collection[str] | None
    every_column: bool

    @property
    def wanted(self) -> pa.Schema:
        """The columns of the tables."""
        return only_columns(self.schema, self.columns)


class Reader(ABC):
    """A built-in `FileReader`.

    Args:
        limits: the limits of one file.
        timestamps: the treatment of digits below microseconds.
    """

    def __init__(self, limits: ReadLimits = ReadLimits(), timestamps: Timestamps = "exact") -> None:
        self._limits, self._timestamps = limits, timestamps

    @abstractmethod
    def infer_schema(self, file: ObjectFile) -> pa.Schema:
        """See `FileReader`."""

    def read(
        self,
        file: ObjectFile,
        schema: pa.Schema,
        offset: Offset = Offset(),
        piece_bytes: int = 8 * MIB,
        columns: Collection[str] | None = None,
        every_column: bool = False,
    ) -> Iterator[Rows]:
        """See `FileReader`."""
        return self._rows(ReadRequest(file, schema, offset, piece_bytes, columns, every_column))

    @abstractmethod
    def _rows(self, request: ReadRequest) -> Iterator[Rows]:
        """Yields the rows; the errors of `read` are raised with the first piece."""


class OpenedFile(NamedTuple, Generic[Head]):
    """A file whose head or tail has been read, and its columns as they are stored."""

    head: Head
    schema: pa.Schema


class DecodedTable(NamedTuple):
    """Consecutive records of a file.

    Args:
        table: the records, with the wanted columns that the file has.
        first_row: the position of the first record in the file, from 0.
        anchor: a place at or before the first record from which the file can be read; None for its start.
    """

    table: pa.Table
    first_row: int
    anchor: Offset | None = None


class TableReader(Reader, Generic[Head]):
    """The template of the readers of files with a schema."""

    @abstractmethod
    def _open(self, file: ObjectFile) -> OpenedFile[Head]:
        """Opens a file.

        Raises:
            UnreadableFile: the file is damaged, or exceeds the limits.
        """

    @abstractmethod
    def _tables(
        self, opened: OpenedFile[Head], request: ReadRequest, cpu: CpuTime, expansion: Expansion
    ) -> Iterator[DecodedTable]:
        """Yields the records in file order; those before the offset may be left out.

        Args:
            opened: the file; the request names at least one of its columns.
            cpu: the CPU time of the file; `require` ends a file that takes too long.
            expansion: the count of decompressed bytes; the bytes of the tables are added to it afterwards.
        """

    def _cut(self, parts: Iterator[Rows], piece_bytes: int, cpu: CpuTime) -> Iterator[Rows]:
        """Yields the rows in pieces; the CPU time of the file pauses while the caller has one."""
        return cpu.pausing(pieces(parts, piece_bytes))

    def infer_schema(self, file: ObjectFile) -> pa.Schema:
        return safe_schema(self._open(file).schema, null=pa.null())

    def _rows(self, request: ReadRequest) -> Iterator[Rows]:
        cpu, expansion = CpuTime(request.file.size, self._limits), Expansion(request.file.size, self._limits)
        opened = self._open(request.file)
        require_common_column(opened.schema.names, request.schema)
        require_fitting_columns(opened.schema, request.schema)
        tables = self._tables(opened, request, cpu, expansion)
        parts = self._conformed(tables, opened.schema, request, expansion)
        yield from self._cut(parts, request.piece_bytes, cpu)

    def _conformed(
        self, tables: Iterator[DecodedTable], stored: pa.Schema, request: ReadRequest, expansion: Expansion
    ) -> Iterator[Rows]:
        """Yields the rows from the offset, in the schema of the source."""
        names, wanted, start = request.schema.names, request.wanted, request.offset.row
        others = tuple(without_columns(stored, names)) if {*stored.names} - {*names} else ()
        missing = missing_columns(wanted, stored.names)
        num_bad = 0
        for table, first_row, anchor in tables:
            rows = conformed(table, wanted, first_row, self._timestamps, num_bad, self._limits)
            num_bad += len(rows.bad)
            if others or missing or anchor:
                rows = replace(rows, anchor=anchor or rows.anchor, others=others, missing=missing)
            expansion.add(rows.nbytes)
            if rows.end_row > start:
                yield rows if first_row >= start else rows.between(start, rows.end_row)

"""The template of the built-in readers: open, tables, conform, cut.

A reader of tables (Avro, ORC, Parquet) fills in `open` and `tables`; a reader of text fills in `RecordReader.open`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import ClassVar, Generic, NamedTuple, TypeVar

import pyarrow as pa

from actors.file_errors import UnreadableFile
from actors.formats.conformed import conformed
from actors.formats.limits import CpuTime, Expansion
from actors.formats.pieces import pieces
from actors.formats.signatures import HEAD_BYTES, Declared, with_found_format
from actors.objects.object_file import ObjectFile
from actors.rows import Offset, Rows
from actors.schemas.chosen_columns import missing_columns, only_columns, without_columns
from actors.schemas.column_names import NameRule, renamed_columns, source_names
from actors.schemas.conform import Timestamps, require_common_column, require_fitting_columns
from actors.schemas.safe_types import suggested_schema
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
        names: the rule that matches the columns of a file with the columns of its source.
    """

    def __init__(
        self,
        limits: ReadLimits = ReadLimits(),
        timestamps: Timestamps = "exact",
        names: NameRule = "any_case",
    ) -> None:
        self._limits, self._timestamps, self._names = limits, timestamps, names

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

    declared: ClassVar[Declared]
    magics: ClassVar[tuple[bytes, ...]]
    """The first bytes of a file of this format, damaged or not."""

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
        return suggested_schema(self._opened(file).schema)

    def _opened(self, file: ObjectFile) -> OpenedFile[Head]:
        """Opens a file.  Errors as `_open`; content of another format is named."""
        try:
            return self._open(file)
        except UnreadableFile as error:
            if file.head(HEAD_BYTES).startswith(self.magics):
                raise
            named = with_found_format(error, file, self.declared)
        raise named

    def _rows(self, request: ReadRequest) -> Iterator[Rows]:
        cpu, expansion = CpuTime(request.file.size, self._limits), Expansion(request.file.size, self._limits)
        opened = self._opened(request.file)
        columns = _StoredColumns(opened.schema, request, self._names)
        tables = columns.named(self._tables(opened, columns.request, cpu, expansion))
        yield from self._cut(self._conformed(tables, columns, request, cpu, expansion), request.piece_bytes, cpu)

    def _conformed(
        self,
        tables: Iterator[DecodedTable],
        columns: _StoredColumns,
        request: ReadRequest,
        cpu: CpuTime,
        expansion: Expansion,
    ) -> Iterator[Rows]:
        """Yields the rows from the offset, in the schema of the source."""
        wanted, start = request.wanted, request.offset.row
        others, missing, renamed = columns.others, columns.missing, columns.renamed
        num_bad = 0
        for table, first_row, anchor in tables:
            rows = conformed(
                table, wanted, first_row, self._timestamps, num_bad, self._limits, self._names, cpu.require
            )
            num_bad += len(rows.bad)
            if others or missing or renamed or anchor:
                rows = replace(rows, anchor=anchor or rows.anchor, others=others, missing=missing, renamed=renamed)
            expansion.add(rows.nbytes)
            if rows.end_row > start:
                yield rows if first_row >= start else rows.between(start, rows.end_row)


class _StoredColumns:
    """The columns of a file with a schema, and their match with the columns of the source.

    Args:
        stored: the columns as they are stored.
        request: the request for columns of the source.
        rule: the match of names.

    Attributes:
        request: the same request by the names in the file.
        others: the columns that the source lacks.
        missing: the names of the columns that the file lacks.
        renamed: see `Rows.renamed`.

    Raises:
        UnreadableFile: a column is of another kind, several columns match one of the source, or none does.
    """

    def __init__(self, stored: pa.Schema, request: ReadRequest, rule: NameRule) -> None:
        schema = request.schema
        names = source_names(stored.names, schema.names, rule)
        found = stored
        if names != stored.names:
            found = pa.schema([field.with_name(name) for name, field in zip(names, stored, strict=True)])
        require_common_column(names, schema)
        require_fitting_columns(found, schema, rule)
        self.others = tuple(without_columns(found, schema.names)) if {*names} - {*schema.names} else ()
        self.missing = missing_columns(schema, names)
        self.renamed = renamed_columns(stored.names, names)
        self.request, self._names = request, None if names == stored.names else names
        if self._names is None:
            return
        stored_names = dict(zip(names, stored.names, strict=True))
        fields = [field.with_name(stored_names.get(field.name, field.name)) for field in schema]
        wanted = request.columns
        self.request = request._replace(
            schema=pa.schema(fields),
            columns=None if wanted is None else frozenset(stored_names.get(name, name) for name in wanted),
        )
        self._given: dict[str, list[str]] = {}
        for name, stored_name in zip(names, stored.names, strict=True):
            self._given.setdefault(stored_name, []).append(name)

    def named(self, tables: Iterator[DecodedTable]) -> Iterator[DecodedTable]:
        """Yields the tables with the names of the source.  All columns of one name are in a table, or none."""
        if self._names is None:
            yield from tables
            return
        for decoded in tables:
            given = {name: iter(names) for name, names in self._given.items()}
            names = [next(given[name]) for name in decoded.table.column_names]
            yield decoded._replace(table=decoded.table.rename_columns(names))

"""CSV files."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.types as kinds

from actors.conform import conform, require_common_column
from actors.object_file import ObjectFile
from actors.read_errors import EmptyFile, UnreadableFile, one_line
from actors.readers.pieces import cut
from actors.readers.row_bytes import row_bytes
from actors.readers.text_stream import text_stream
from actors.safe_types import safe_schema
from actors.settings import MIB, ReadLimits
from actors.source import Csv
from state.errors import SchemaError

_FIRST_LINE_BYTES = 64 * 1024
_SMALLEST_BLOCK_BYTES = 4 * 1024
_ROW = re.compile(r"Row #(\d+): ")
_COLUMN = re.compile(r"In CSV column #(\d+): ")


class CsvReader:
    """Reads CSV files; see `FileReader`.

    Lines without any content are not rows.  A field may contain line ends if it is quoted.

    Args:
        format: delimiter, quotes, header and the texts for null.
        limits: what a file may ask for.
    """

    def __init__(self, format: Csv, limits: ReadLimits = ReadLimits()) -> None:
        self._format, self._limits = format, limits

    def infer_schema(self, file: ObjectFile) -> pa.Schema:
        first_line = self._first_line(file)
        try:
            str(first_line, "utf-8")
        except UnicodeDecodeError:
            raise UnreadableFile("its first line is not UTF-8") from None
        most_bytes = self._limits.max_record_bytes
        block_bytes = min(8 * MIB, most_bytes)
        while True:
            try:
                reader = self._open(file, None, [], block_bytes)
                break
            except _RecordTooLarge:
                block_bytes = _larger(block_bytes, most_bytes)
        if reader is None:
            raise EmptyFile("the file is empty: no schema can be taken from it")
        # A time of day has no form in Spark; its text has.
        fields = [field.with_type(pa.string()) if kinds.is_time(field.type) else field for field in reader.schema]
        return safe_schema(pa.schema(fields))

    def read(
        self, file: ObjectFile, schema: pa.Schema, offset_rows: int = 0, piece_bytes: int = 8 * MIB
    ) -> Iterator[pa.Table]:
        for field in schema:
            if kinds.is_nested(field.type):
                raise SchemaError(f"column {field.name}: CSV has no {field.type}; declare it as a string")
        names = self._names(file, schema)
        most_bytes = self._most_bytes(names, schema)
        row, block_bytes = offset_rows, min(piece_bytes, most_bytes)
        while True:
            try:
                for table in self._tables(file, schema, names, row, block_bytes):
                    yield from cut(table, piece_bytes)
                    row += table.num_rows
                return
            except _RecordTooLarge:
                block_bytes = _larger(block_bytes, most_bytes)

    def _most_bytes(self, names: list[str], schema: pa.Schema) -> int:
        """How much text may be parsed at once: a row of one character becomes a null in every column of the schema."""
        shortest_row = max(2, len(names))
        in_a_batch = self._limits.max_batch_bytes * shortest_row // max(1, row_bytes(schema))
        return min(self._limits.max_record_bytes, max(_SMALLEST_BLOCK_BYTES, in_a_batch))

    def _tables(
        self, file: ObjectFile, schema: pa.Schema, names: list[str], offset_rows: int, block_bytes: int
    ) -> Iterator[pa.Table]:
        reader = self._open(file, schema, names, block_bytes)
        if reader is not None:
            require_common_column(names, schema)
        row = 0
        while reader is not None:
            batch = self._ask(lambda: next(reader, None), names)
            if batch is None:
                return
            skipped = min(max(offset_rows - row, 0), batch.num_rows)
            table = pa.Table.from_batches([batch.slice(skipped)])
            if table.num_rows:
                yield conform(table, schema, first_row=row + skipped, parse_text=True)
            row += batch.num_rows

    def _open(
        self, file: ObjectFile, schema: pa.Schema | None, names: list[str], block_bytes: int
    ) -> arrow_csv.CSVStreamingReader | None:
        """A reader of the whole file; None if there is nothing in it."""
        if not file.size:
            return None
        given_names = schema.names if schema is not None and not self._format.header else None
        read_options = arrow_csv.ReadOptions(
            use_threads=False,
            block_size=block_bytes,
            column_names=given_names,
            autogenerate_column_names=not self._format.header and given_names is None,
        )
        parse_options = arrow_csv.ParseOptions(
            delimiter=self._format.delimiter, quote_char=self._format.quote, newlines_in_values=True
        )
        convert_options = arrow_csv.ConvertOptions(
            null_values=list(self._format.null_values),
            strings_can_be_null=True,
            **_column_options(schema),
        )
        return self._ask(
            lambda: arrow_csv.open_csv(text_stream(file, self._limits), read_options, parse_options, convert_options),
            names,
        )

    def _names(self, file: ObjectFile, schema: pa.Schema) -> list[str]:
        """The names of the file's columns, in its order, as far as its first line tells."""
        if not self._format.header or not file.size:
            return list(schema.names)
        line = self._first_line(file).decode("utf-8-sig", "replace").replace("\0", "")
        try:
            return next(csv.reader([line], delimiter=self._format.delimiter, quotechar=self._format.quote), [])
        except csv.Error as error:
            reason = f"the first line cannot be read: {one_line(error)}"
        raise UnreadableFile(reason)

    def _first_line(self, file: ObjectFile) -> bytes:
        """The line that says how many columns there are.

        Raises:
            UnreadableFile: it has too many, or no end.
        """
        nbytes = _FIRST_LINE_BYTES
        while True:
            text = self._ask(partial(self._start, file, nbytes), [])
            line, end, _ = text.lstrip(b"\r\n").replace(b"\r", b"\n").partition(b"\n")
            if line.count(self._format.delimiter.encode()) >= self._limits.max_columns:
                raise UnreadableFile(f"it has more than {self._limits.max_columns} columns (ReadLimits.max_columns)")
            if end or len(text) < nbytes:
                return bytes(line)
            nbytes = _larger(nbytes, self._limits.max_record_bytes)

    def _start(self, file: ObjectFile, nbytes: int) -> bytes:
        content: bytes = text_stream(file, self._limits).read(nbytes)
        return content

    def _ask(self, call: Callable[[], Any], names: list[str]) -> Any:
        """What Arrow answers; None if it finds nothing in the file."""
        try:
            return call()
        except pa.ArrowMemoryError:
            raise  # says nothing about the file
        except (pa.ArrowException, OSError) as error:
            text = _COLUMN.sub(lambda match: f"column {_name(names, int(match[1]))}: ", _ROW.sub("", one_line(error)))
            found = _ROW.search(str(error))
        if "Empty CSV file" in text:
            return None
        if "straddles two block boundaries" in text:
            raise _RecordTooLarge
        lines_before = 1 if self._format.header else 0
        raise UnreadableFile(text, int(found.group(1)) - lines_before if found else None)


def _larger(block_bytes: int, most_bytes: int) -> int:
    if block_bytes >= most_bytes:
        raise UnreadableFile(
            f"a line is longer than {most_bytes} bytes (ReadLimits.max_record_bytes; or max_batch_bytes, for the "
            "columns that it would fill)"
        )
    return min(4 * block_bytes, most_bytes)


def _name(names: list[str], index: int) -> str:
    return names[index] if index < len(names) else f"number {index + 1}"


class _RecordTooLarge(Exception):
    """A record is longer than a block."""


def _column_options(schema: pa.Schema | None) -> dict[str, object]:
    if schema is None:
        return {}
    return {
        "include_columns": schema.names,
        "include_missing_columns": True,
        # Arrow insists on a zone in the text of an instant; `conform` takes UTC where there is none.
        "column_types": {f.name: pa.string() if getattr(f.type, "tz", None) else f.type for f in schema},
    }

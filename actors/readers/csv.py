"""CSV files."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.types as kinds

from actors.conform import conform, require_common_column
from actors.object_file import ObjectFile
from actors.read_errors import EmptyFile, UnreadableFile, one_line
from actors.readers.pieces import cut
from actors.readers.text_stream import text_stream
from actors.safe_types import safe_schema
from actors.settings import MIB
from actors.source import Csv
from state.errors import SchemaError

_MAX_RECORD_BYTES = 512 * MIB
_MAX_HEADER_BYTES = 64 * 1024
_ROW = re.compile(r"Row #(\d+): ")
_COLUMN = re.compile(r"In CSV column #(\d+): ")


class CsvReader:
    """Reads CSV files; see `FileReader`.

    Lines without any content are not rows.  A field may contain line ends if it is quoted.

    Args:
        format: delimiter, quotes, header and the texts for null.
    """

    def __init__(self, format: Csv) -> None:
        self._format = format

    def infer_schema(self, file: ObjectFile) -> pa.Schema:
        block_bytes = 8 * MIB
        while True:
            try:
                reader = self._open(file, None, [], block_bytes)
                break
            except _RecordTooLarge:
                block_bytes *= 4
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
        row, block_bytes = offset_rows, piece_bytes
        while True:
            try:
                for table in self._tables(file, schema, row, block_bytes):
                    yield from cut(table, piece_bytes)
                    row += table.num_rows
                return
            except _RecordTooLarge:
                block_bytes *= 4

    def _tables(self, file: ObjectFile, schema: pa.Schema, offset_rows: int, block_bytes: int) -> Iterator[pa.Table]:
        names = self._names(file, schema)
        reader = self._open(file, schema, names, block_bytes)
        if reader is not None:
            require_common_column(names, schema)
        row = 0
        while reader is not None:
            batch = self._ask(lambda: next(reader, None), block_bytes, names)
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
            lambda: arrow_csv.open_csv(text_stream(file), read_options, parse_options, convert_options),
            block_bytes,
            names,
        )

    def _names(self, file: ObjectFile, schema: pa.Schema) -> list[str]:
        """The names of the file's columns, in its order, as far as its first line tells."""
        if not self._format.header or not file.size:
            return list(schema.names)
        start = self._ask(lambda: text_stream(file).read(_MAX_HEADER_BYTES), 0, [])
        text = start.decode("utf-8-sig", "replace").replace("\0", "")
        line = text.lstrip("\r\n").splitlines()[:1]
        return next(csv.reader(line, delimiter=self._format.delimiter, quotechar=self._format.quote), [])

    def _ask(self, call: Callable[[], Any], block_bytes: int, names: list[str]) -> Any:
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
        if "straddles two block boundaries" in text and block_bytes < _MAX_RECORD_BYTES:
            raise _RecordTooLarge
        lines_before = 1 if self._format.header else 0
        raise UnreadableFile(text, int(found.group(1)) - lines_before if found else None)


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

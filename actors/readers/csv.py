"""CSV files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.types as kinds

from actors.conform import conform
from actors.object_file import ObjectFile
from actors.read_errors import UnreadableFile, one_line
from actors.readers.pieces import cut
from actors.readers.text_stream import text_stream
from actors.safe_types import safe_schema
from actors.settings import MIB
from actors.source import Csv
from state.errors import SchemaError

_MAX_RECORD_BYTES = 512 * MIB
_ROW = re.compile(r"Row #(\d+): ")


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
                reader = self._open(file, None, block_bytes)
                break
            except _RecordTooLarge:
                block_bytes *= 4
        if reader is None:
            raise UnreadableFile("the file is empty: no schema can be taken from it")
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
        reader = self._open(file, schema, block_bytes)
        row = 0
        while reader is not None:
            batch = self._ask(lambda: next(reader, None), block_bytes)
            if batch is None:
                return
            skipped = min(max(offset_rows - row, 0), batch.num_rows)
            table = pa.Table.from_batches([batch.slice(skipped)])
            if table.num_rows:
                yield conform(table, schema, first_row=row + skipped, parse_text=True)
            row += batch.num_rows

    def _open(
        self, file: ObjectFile, schema: pa.Schema | None, block_bytes: int
    ) -> arrow_csv.CSVStreamingReader | None:
        """A reader of the whole file; None if there is nothing in it."""
        if not file.size:
            return None
        names = schema.names if schema is not None and not self._format.header else None
        read_options = arrow_csv.ReadOptions(
            use_threads=False,
            block_size=block_bytes,
            column_names=names,
            autogenerate_column_names=not self._format.header and names is None,
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
            lambda: arrow_csv.open_csv(text_stream(file), read_options, parse_options, convert_options), block_bytes
        )

    def _ask(self, call: Callable[[], Any], block_bytes: int) -> Any:
        """What Arrow answers; None if it finds nothing in the file."""
        try:
            return call()
        except (pa.ArrowException, OSError) as error:
            text = _ROW.sub("", one_line(error))
            found = _ROW.search(str(error))
        if "Empty CSV file" in text:
            return None
        if "straddles two block boundaries" in text and block_bytes < _MAX_RECORD_BYTES:
            raise _RecordTooLarge
        lines_before = 1 if self._format.header else 0
        raise UnreadableFile(text, int(found.group(1)) - lines_before if found else None)


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

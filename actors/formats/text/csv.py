"""Reader of CSV files."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.types as kinds

from actors.file_errors import EmptyFile, UnreadableFile, one_line
from actors.formats.limits import row_bytes
from actors.formats.options import Csv
from actors.formats.signatures import is_another, json_format
from actors.formats.template import ReadRequest
from actors.formats.text.content import TextContent
from actors.formats.text.csv_records import CsvRecords
from actors.formats.text.lines import Text
from actors.formats.text.rows import OpenedText, RecordReader, large_blocks
from actors.objects.object_file import ObjectFile
from actors.schemas.chosen_columns import missing_columns
from actors.schemas.column_names import NameRule, renamed_columns, source_names, unique_names
from actors.schemas.conform import Timestamps, conform, lost_digits, require_common_column
from actors.schemas.safe_types import suggested_schema
from actors.settings import MIB, ReadLimits
from state.errors import SchemaError

_HEADER_BYTES = 64 * 1024
# A block that fits into the cache of a processor is parsed faster.
_BLOCK_BYTES = MIB
_ROW = re.compile(r"Row #(\d+): ")
_COLUMN = re.compile(r"In CSV column #(\d+): ")
_LINE_ENDS = b"\r\n"
_BLANK = (b"", b"\r", b"\n")


class CsvReader(RecordReader):
    """Reads CSV files; see `FileReader`.

    Empty lines are not rows.  A field may contain line ends if it is quoted.

    Args:
        format: the options of the format.
        limits: the limits of one file.
        timestamps: the treatment of digits below microseconds.
        names: the match of the columns of files with those of their source.
    """

    def __init__(
        self,
        format: Csv,
        limits: ReadLimits = ReadLimits(),
        timestamps: Timestamps = "exact",
        names: NameRule = "any_case",
    ) -> None:
        super().__init__(limits, timestamps, names)
        self._format = format
        self._records = CsvRecords(format.delimiter, format.quote)
        self._last: _Parser | None = None

    def infer_schema(self, file: ObjectFile) -> pa.Schema:
        names, content = self._text(file, None)
        if not names:
            raise EmptyFile("the file is empty and has no schema")
        names = unique_names(names)
        parser = _Parser(self._format, self._records, names, None, self._limits, self._timestamps)
        first_block = next(large_blocks(content, parser, 8 * MIB, self._limits), memoryview(b""))
        try:
            inferred = parser.parse(first_block).schema
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            reason = parser.reason(error)
        else:
            fields = [_with_form(field) for field in inferred]
            return suggested_schema(pa.schema(fields))
        raise UnreadableFile(reason)

    def _open(self, request: ReadRequest) -> OpenedText | None:
        schema = request.schema
        for field in schema:
            if kinds.is_nested(field.type):
                raise SchemaError(f"column {field.name}: CSV has no {field.type}; declare it as a string")
        names, content = self._text(request.file, schema, request.offset.anchor_byte)
        if not names:
            return None
        given = source_names(names, schema.names, self._names)
        require_common_column(given, schema)
        parser = self._parser(given, schema, every_column=request.every_column)
        return OpenedText(content, parser, renamed_columns(names, given))

    def _parser(self, names: list[str], schema: pa.Schema, *, every_column: bool) -> _Parser:
        """A parser; mostly that of the last file, which had the same columns."""
        parser = self._last
        if every_column or parser is None or not parser.fits(names, schema):
            parser = _Parser(self._format, self._records, names, schema, self._limits, self._timestamps, every_column)
        if not every_column:
            self._last = parser
        return parser

    def _text(self, file: ObjectFile, schema: pa.Schema | None, start: int = 0) -> tuple[list[str], TextContent]:
        """The names of the columns of the file, in its order, and the text behind them, or from a byte.

        An empty file has no names.
        """
        content = TextContent(file, self._limits, self._format.encoding, declared="CSV")
        record, end = self._first_record(content)
        if self._format.header and (found := json_format(record)) is not None:
            raise is_another(found, "CSV")
        names = self._fields(record)
        if self._format.header:
            start = start or end
        elif names:
            names = [f"f{index}" for index in range(len(names))] if schema is None else schema.names
        if not content.seek(start):
            content = TextContent(file, self._limits, self._format.encoding, start)
        return names, content

    def _first_record(self, content: TextContent) -> tuple[bytes, int]:
        """The first record, which tells the number of columns, and the position behind it.

        Raises:
            UnreadableFile: the record has too many columns, or is too long.
        """
        text, start = b"", content.position
        most_bytes = self._limits.max_record_bytes
        while True:
            # As much again as was searched: the whole search takes time in proportion to the length of the record.
            chunk = content.read(max(_HEADER_BYTES, len(text)))
            text += chunk
            empty = len(text) - len(text.lstrip(_LINE_ENDS))
            end = self._records.first_end(memoryview(text)[empty:])
            record = text[empty : empty + end] if end else text[empty:]
            if record.count(self._format.delimiter.encode()) >= self._limits.max_columns:
                raise UnreadableFile(f"it has more than {self._limits.max_columns} columns (ReadLimits.max_columns)")
            if end or not chunk:
                return record, start + empty + len(record)
            if len(text) > most_bytes:
                raise UnreadableFile(f"a line is longer than {most_bytes} bytes (ReadLimits.max_record_bytes)")

    def _fields(self, record: bytes) -> list[str]:
        line = record.decode("utf-8", "replace").replace("\0", "")
        try:
            return next(csv.reader([line], delimiter=self._format.delimiter, quotechar=self._format.quote), [])
        except csv.Error as error:
            reason = f"the first line cannot be read: {one_line(error)}"
        raise UnreadableFile(reason)


class _Parser:
    """A `RecordParser`.  Without a schema it infers the types from the text, and leaves bad records out.

    It has no state but `others`, which change only with `infer_others`: without, many files and threads may share it.

    Args:
        infer_others: True to infer the types of extra columns.
    """

    def __init__(
        self,
        format: Csv,
        records: CsvRecords,
        names: Sequence[str],
        schema: pa.Schema | None,
        limits: ReadLimits,
        timestamps: Timestamps,
        infer_others: bool = False,
    ) -> None:
        self._format, self._names, self._schema, self._timestamps = format, names, schema, timestamps
        self.first_end, self.last_end, self.ends = records.first_end, records.last_end, records.ends
        fields = [pa.field(name, pa.int64()) for name in names] if schema is None else schema
        # A row of one character is a null in every column of the schema.
        self.most_records = max(1, limits.max_batch_bytes // max(1, row_bytes(fields)))
        known = {*names} if schema is None else {*schema.names}
        self.others = tuple(pa.field(name, pa.null()) for name in dict.fromkeys(names) if name not in known)
        self.missing = () if schema is None else missing_columns(schema, names)
        self._untyped = [field.name for field in self.others] if infer_others else []
        self._parsing = arrow_csv.ParseOptions(
            delimiter=format.delimiter,
            quote_char=format.quote,
            newlines_in_values=True,
            invalid_row_handler=None if schema is not None else lambda row: "skip",
        )
        self._typed = self._converting(schema)

    def fits(self, names: Sequence[str], schema: pa.Schema) -> bool:
        """True if it is the parser for these columns."""
        return schema is self._schema and names == self._names

    def is_row(self, record: bytes) -> bool:
        return bool(record.strip(_LINE_ENDS))

    def parse(self, text: Text) -> pa.Table:
        if text[:1] in _BLANK and not bytes(text).strip(_LINE_ENDS):
            schema = self._schema or pa.schema([(name, pa.null()) for name in self._names])
            return schema.empty_table()
        table = self._parsed(text, self._typed)
        if self._untyped:
            self._infer_others(text)
        return (
            table
            if self._schema is None
            else conform(table, self._schema, parse_text=True, timestamps=self._timestamps)
        )

    def _converting(self, schema: pa.Schema | None) -> arrow_csv.ConvertOptions:
        if schema is None:
            return self._convert_options()
        types = {field.name: pa.string() if self._is_read_as_text(field) else field.type for field in schema}
        return self._convert_options(include_columns=schema.names, include_missing_columns=True, column_types=types)

    def _convert_options(self, **options: object) -> arrow_csv.ConvertOptions:
        null_values = list(self._format.null_values)
        return arrow_csv.ConvertOptions(null_values=null_values, strings_can_be_null=True, **options)

    def _is_read_as_text(self, field: pa.Field) -> bool:
        """Arrow refuses an instant without a zone, and digits below microseconds; `conform` takes them."""
        return kinds.is_timestamp(field.type) and (field.type.tz is not None or self._timestamps == "truncate")

    def _infer_others(self, text: Text) -> None:
        options = self._convert_options(include_columns=self._untyped)
        found = {field.name: field for field in self._parsed(text, options).schema}
        self.others = tuple(_with_form(found.get(field.name, field)) for field in self.others)
        self._untyped = [name for name in self._untyped if kinds.is_null(found[name].type)]

    def _parsed(self, text: Text, options: arrow_csv.ConvertOptions) -> pa.Table:
        try:
            return self._parsed_by(text, options, _BLOCK_BYTES)
        except pa.ArrowInvalid as error:
            if "straddl" not in str(error):
                raise
        return self._parsed_by(text, options, len(text) + 1)

    def _parsed_by(self, text: Text, options: arrow_csv.ConvertOptions, block_bytes: int) -> pa.Table:
        reading = arrow_csv.ReadOptions(use_threads=False, block_size=block_bytes, column_names=self._names)
        return arrow_csv.read_csv(pa.BufferReader(text), reading, self._parsing, options)

    def reason(self, error: Exception) -> str:
        if isinstance(error, UnreadableFile):
            return error.reason
        reason = _COLUMN.sub(lambda match: f"column {self._name(int(match[1]))}: ", _ROW.sub("", one_line(error)))
        return lost_digits(reason)

    def _name(self, index: int) -> str:
        return self._names[index] if index < len(self._names) else f"number {index + 1}"


def _with_form(field: pa.Field) -> pa.Field:
    """The column with a type that Spark has: a time of day as text; binary, which is text with a bad record, too."""
    return field.with_type(pa.string()) if kinds.is_time(field.type) or kinds.is_binary(field.type) else field

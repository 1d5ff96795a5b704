"""Reader of newline-delimited JSON files."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice

import pyarrow as pa
import pyarrow.types as kinds

from actors.file_errors import EmptyFile
from actors.formats.limits import row_bytes
from actors.formats.salvage import with_a_record
from actors.formats.template import ReadRequest
from actors.formats.text.content import TextContent
from actors.formats.text.json_schema import inferred
from actors.formats.text.json_text import is_too_large, parsed, reason_of
from actors.formats.text.lines import Text, first_line_end, last_line_end, line_ends
from actors.formats.text.rows import OpenedText, RecordReader, large_blocks
from actors.objects.object_file import ObjectFile
from actors.rows import Rows
from actors.schemas.conform import Timestamps, conform, lost_digits
from actors.schemas.safe_types import safe_schema
from actors.settings import MIB, ReadLimits
from state.errors import SchemaError

_LOOKED_BYTES = 64 * 1024
_LINES_LOOKED_AT = 100
_UNEXPECTED = "unexpected field"


class JsonReader(RecordReader):
    """Reads files of one JSON object a line; see `FileReader`.  Empty lines are not rows."""

    def infer_schema(self, file: ObjectFile) -> pa.Schema:
        if file.size:
            parser = _Parser(pa.schema([]), self._limits, self._timestamps)
            for block in large_blocks(TextContent(file, self._limits, declared="JSON"), parser, 8 * MIB, self._limits):
                fields = inferred(bytes(block), self._limits)
                if fields:
                    return safe_schema(pa.schema(fields), null=pa.null())
        raise EmptyFile("the file is empty and has no schema")

    def _open(self, request: ReadRequest) -> OpenedText | None:
        parser = _Parser(request.schema, self._limits, self._timestamps, request.every_column)
        if not request.file.size:
            return None
        return OpenedText(
            TextContent(request.file, self._limits, start=request.offset.anchor_byte, declared="JSON"), parser
        )

    def _rows(self, request: ReadRequest) -> Iterator[Rows]:
        return with_a_record(super()._rows(request), partial(self.infer_schema, request.file))


class _Parser:
    """A `RecordParser`.

    Args:
        every_column: see `FileReader.read`; without it the first lines show the extra columns.
    """

    first_end, last_end, ends = staticmethod(first_line_end), staticmethod(last_line_end), staticmethod(line_ends)

    def __init__(
        self, schema: pa.Schema, limits: ReadLimits, timestamps: Timestamps, every_column: bool = False
    ) -> None:
        self._schema, self._limits, self._timestamps = schema, limits, timestamps
        self._every_column, self._is_strict = every_column, True
        self._looked_bytes = 0
        self.others: tuple[pa.Field, ...] = ()
        self.missing: tuple[str, ...] = ()  # of lines, not of files
        self._text_schema = pa.schema([pa.field(f.name, _text_type(f.type, f.name, timestamps)) for f in schema])
        # A row of three characters is a null in every column.
        self.most_records = max(1, limits.max_batch_bytes // max(1, row_bytes(schema)))

    def is_row(self, record: bytes) -> bool:
        return bool(record.strip())

    def parse(self, text: Text) -> pa.Table:
        return conform(self._looked_at(text), self._schema, parse_text=True, timestamps=self._timestamps)

    def _looked_at(self, text: Text) -> pa.Table:
        """The rows of whole records; extra columns are noted."""
        if self._every_column or self._looked_bytes < _LOOKED_BYTES:
            self._looked_bytes += len(text)
            if self._is_strict:
                try:
                    return parsed(text, self._text_schema, "error")
                except pa.ArrowInvalid as error:
                    # Arrow tells at no cost that extra columns exist; their names and types cost a parse.
                    if _UNEXPECTED not in str(error):
                        raise
            self._look(bytes(text))
        return parsed(text, self._text_schema)

    def _look(self, text: bytes) -> None:
        lines = io.BytesIO(text)
        names = _names(lines if self._every_column else islice(lines, _LINES_LOOKED_AT), self._limits)
        unknown = [name for name in names if name not in self._schema.names]
        # An extra field may be inside a struct: Arrow would then report it for every block.
        self._is_strict = bool(unknown)
        found = inferred(text, self._limits) if unknown and self._every_column else []
        others = {field.name: field for field in self.others} | dict.fromkeys(unknown)
        typed = others | {field.name: field for field in found if not kinds.is_null(field.type)}
        self.others = tuple(typed[name] or pa.field(name, pa.null()) for name in others)

    def reason(self, error: Exception) -> str:
        return lost_digits(reason_of(error))


def _names(lines: Iterable[bytes], limits: ReadLimits) -> list[str]:
    """The names of the fields of the objects, in the order of their appearance; other lines are skipped.

    So are lines that would take more memory than `max_batch_bytes`.
    """
    names: dict[str, None] = {}
    for line in lines:
        if is_too_large(line, limits):
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            names.update(dict.fromkeys(value))
    return list(names)


def _text_type(kind: pa.DataType, column: str, timestamps: Timestamps) -> pa.DataType:
    """The type that Arrow parses from JSON for a type; `conform` converts the rest."""
    if kinds.is_map(kind):
        raise SchemaError(f"column {column}: a JSON object is read as a struct, not as {kind}; name its fields")
    if kinds.is_struct(kind):
        return pa.struct([pa.field(f.name, _text_type(f.type, f"{column}.{f.name}", timestamps)) for f in kind])
    if kinds.is_list(kind):
        return pa.list_(_text_type(kind.value_type, f"{column}.element", timestamps))
    is_cut = kinds.is_timestamp(kind) and timestamps == "truncate"
    return pa.string() if kind == pa.date32() or is_cut else kind

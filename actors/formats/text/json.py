"""Reader of newline-delimited JSON files."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterable, Iterator

import pyarrow as pa
import pyarrow.types as kinds

from actors.file_errors import EmptyFile
from actors.formats.limits import row_bytes
from actors.formats.text.content import TextContent
from actors.formats.text.json_schema import inferred
from actors.formats.text.json_text import parsed, reason_of
from actors.formats.text.lines import Text, last_line_end, line_ends
from actors.formats.text.rows import large_blocks, read_rows
from actors.objects.object_file import ObjectFile
from actors.rows import Offset, Rows
from actors.schemas.conform import conform
from actors.schemas.safe_types import safe_schema
from actors.settings import MIB, ReadLimits
from state.errors import SchemaError

_LOOKED_BYTES = 64 * 1024
_LINES_LOOKED_AT = 100
_UNEXPECTED = "unexpected field"


class JsonReader:
    """Reads files of one JSON object a line; see `FileReader`.  Empty lines are not rows.

    Args:
        limits: the limits of one file.
    """

    def __init__(self, limits: ReadLimits = ReadLimits()) -> None:
        self._limits = limits

    def infer_schema(self, file: ObjectFile) -> pa.Schema:
        if file.size:
            parser = _Parser(pa.schema([]), self._limits)
            for block in large_blocks(TextContent(file, self._limits), parser, 8 * MIB, self._limits):
                fields = inferred(bytes(block), self._limits)
                if fields:
                    return safe_schema(pa.schema(fields), null=pa.null())
        raise EmptyFile("the file is empty and has no schema")

    def read(
        self,
        file: ObjectFile,
        schema: pa.Schema,
        offset: Offset = Offset(),
        piece_bytes: int = 8 * MIB,
        columns: Collection[str] | None = None,
        every_column: bool = False,
    ) -> Iterator[Rows]:
        parser = _Parser(schema, self._limits, every_column)
        if file.size:
            content = TextContent(file, self._limits, start=offset.anchor_byte)
            yield from read_rows(content, parser, offset, piece_bytes, self._limits, columns)


class _Parser:
    """A `RecordParser`.

    Args:
        every_column: see `FileReader.read`; without it the first lines show the extra columns.
    """

    last_end, ends = staticmethod(last_line_end), staticmethod(line_ends)

    def __init__(self, schema: pa.Schema, limits: ReadLimits, every_column: bool = False) -> None:
        self._schema, self._limits = schema, limits
        self._every_column, self._is_strict = every_column, True
        self._looked_bytes = 0
        self.others: tuple[pa.Field, ...] = ()
        self._text_schema = pa.schema([pa.field(f.name, _text_type(f.type, f.name)) for f in schema])
        # A row of three characters is a null in every column.
        self.most_records = max(1, limits.max_batch_bytes // max(1, row_bytes(schema)))

    def is_row(self, record: bytes) -> bool:
        return bool(record.strip())

    def parse(self, text: Text) -> pa.Table:
        return conform(self._looked_at(text), self._schema, parse_text=True)

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
        lines = io.BytesIO(text).readlines()
        names = _names(lines if self._every_column else lines[:_LINES_LOOKED_AT])
        unknown = [name for name in names if name not in self._schema.names]
        # An extra field may be inside a struct: Arrow would then report it for every block.
        self._is_strict = bool(unknown)
        found = inferred(text, self._limits) if unknown and self._every_column else []
        others = {field.name: field for field in self.others} | dict.fromkeys(unknown)
        typed = others | {field.name: field for field in found if not kinds.is_null(field.type)}
        self.others = tuple(typed[name] or pa.field(name, pa.null()) for name in others)

    def reason(self, error: Exception) -> str:
        return reason_of(error)


def _names(lines: Iterable[bytes]) -> list[str]:
    """The names of the fields of the objects, in the order of their appearance; other lines are skipped."""
    names: dict[str, None] = {}
    for line in lines:
        try:
            names.update(dict.fromkeys(json.loads(line)))
        except (ValueError, TypeError, RecursionError):
            continue
    return list(names)


def _text_type(kind: pa.DataType, column: str) -> pa.DataType:
    """The type that Arrow parses from JSON for a type; `conform` converts the rest."""
    if kinds.is_map(kind):
        raise SchemaError(f"column {column}: a JSON object is read as a struct, not as {kind}; name its fields")
    if kinds.is_struct(kind):
        return pa.struct([pa.field(f.name, _text_type(f.type, f"{column}.{f.name}")) for f in kind])
    if kinds.is_list(kind):
        return pa.list_(_text_type(kind.value_type, f"{column}.element"))
    return pa.string() if kind == pa.date32() else kind

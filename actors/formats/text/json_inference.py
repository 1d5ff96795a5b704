"""What columns lines of JSON show."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as kinds

from actors.file_errors import UnreadableFile
from actors.formats.salvage import WRONG
from actors.formats.text.json_shape import JsonShape
from actors.formats.text.json_text import parsed, reason_of
from actors.schemas.merged_schema import common_type, merged_schema
from actors.settings import ReadLimits

_COLUMN_BYTES = 8
_LINES_APART = 1000


def inferred(block: bytes, limits: ReadLimits) -> list[pa.Field]:
    """The columns of the lines of a block, with the types that Arrow takes them to have.

    If the lines do not go together, those that do not go with most of the others count for nothing: they are bad
    records, which are told when they are read.

    Raises:
        UnreadableFile: no line shows anything, or they are wider or deeper than the limits.
    """
    # Arrow's inference follows every level on the stack, and gives every line every column.
    shape = JsonShape.of(block, limits)
    most_lines = max(1, limits.max_batch_bytes // max(1, shape.num_columns * _COLUMN_BYTES))
    lines = [line for line in io.BytesIO(block).readlines()[:most_lines] if line.strip()]
    try:
        schema = _schema(lines)
    except pa.ArrowMemoryError:
        raise  # says nothing about the file
    except WRONG:
        schema = _schema(_agreeing(lines[:_LINES_APART]))
    # What has only ever been {} says nothing about its fields.
    return [field for field in schema if not (kinds.is_struct(field.type) and not field.type.num_fields)]


def _schema(lines: Sequence[bytes]) -> pa.Schema:
    return parsed(b"".join(lines), None).schema


def _agreeing(lines: Sequence[bytes]) -> list[bytes]:
    """The lines that have, in every column, the kind of value that most of them have."""
    shown: dict[bytes, pa.Schema] = {}
    error: Exception | None = None
    for number, line in enumerate(lines, 1):
        try:
            shown[line] = _with_text(_schema([line]))
        except pa.ArrowMemoryError:
            raise
        except WRONG as wrong:
            error = error or UnreadableFile(reason_of(wrong), number)
    if error is not None and not shown:
        raise error
    most = {field.name: field.type for field in merged_schema(shown.values())}
    return [
        line
        for line, schema in shown.items()
        if all(common_type(field.type, most.get(field.name, field.type)) is not None for field in schema)
    ]


def _with_text(schema: pa.Schema) -> pa.Schema:
    # A text that looks like a time is one only if all do.
    return pa.schema([field.with_type(_text_for_time(field.type)) for field in schema])


def _text_for_time(kind: pa.DataType) -> pa.DataType:
    if kinds.is_timestamp(kind):
        return pa.string()
    if kinds.is_list(kind):
        return pa.list_(_text_for_time(kind.value_type))
    if kinds.is_struct(kind):
        return pa.struct([field.with_type(_text_for_time(field.type)) for field in kind])
    return kind

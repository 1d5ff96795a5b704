"""Lines of JSON, parsed into columns by Arrow."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.json as arrow_json

from actors.file_errors import UnreadableFile, one_line
from actors.formats.text.lines import Text, require_utf8


def parsed(block: Text, schema: pa.Schema | None, unexpected: str = "ignore") -> pa.Table:
    """One row for each line that is not empty.

    Args:
        block: whole lines.
        schema: a schema of types that Arrow parses from JSON; None to infer it.
        unexpected: the treatment of extra fields, "ignore" or "error".

    Raises:
        pa.ArrowInvalid: a line is not an object, or does not fit the schema.
        UnreadableFile: the block is not UTF-8.
    """
    require_utf8(block)
    if not bytes(block[:64]).strip() and not bytes(block).strip():
        return (schema or pa.schema([])).empty_table()
    return arrow_json.read_json(
        pa.BufferReader(block),
        read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1),
        parse_options=arrow_json.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="infer" if schema is None else unexpected
        ),
    )


def reason_of(error: Exception) -> str:
    """The reason of an error of `parsed`, without Arrow's own row numbers."""
    return error.reason if isinstance(error, UnreadableFile) else one_line(error).partition(" in row ")[0]

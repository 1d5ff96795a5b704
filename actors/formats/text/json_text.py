"""Lines of JSON, parsed into columns by Arrow."""

from __future__ import annotations

import codecs
import re

import pyarrow as pa
import pyarrow.json as arrow_json

from actors.file_errors import UnreadableFile, one_line
from actors.formats.text.lines import Text, require_utf8
from actors.settings import ReadLimits

# Of a dictionary with one key, a list, an element, a value with its place in a dictionary, and half a text.
_NO_OBJECT = re.compile(r"^JSON parse error: Column\(\) changed from object to (\w+)$")
_KINDS = {"number": "a number", "string": "a text", "array": "a list", "boolean": "a truth value"}
_BEFORE_VALUES = b" \t\r\n" + codecs.BOM_UTF8
_MOST_BYTES_A_BYTE = 188
_BYTES_OF_VALUES = {b"{": 184, b"[": 64, b",": 40, b":": 64, b'"': 25}


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
    beginning = bytes(block[:64]).lstrip(_BEFORE_VALUES) or bytes(block).lstrip(_BEFORE_VALUES)[:1]
    if not beginning and not bytes(block).strip():
        return (schema or pa.schema([])).empty_table()
    if beginning.startswith(b"n"):
        # Arrow crashes if the first value is null: behind an object, null is a row of nulls.
        return _parsed(b"{}\n" + bytes(block), schema, unexpected).slice(1)
    return _parsed(block, schema, unexpected)


def _parsed(block: Text, schema: pa.Schema | None, unexpected: str) -> pa.Table:
    return arrow_json.read_json(
        pa.BufferReader(block),
        read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1),
        parse_options=arrow_json.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="infer" if schema is None else unexpected
        ),
    )


def is_too_large(line: bytes, limits: ReadLimits) -> bool:
    """True if Python may take more than `max_batch_bytes` of memory for a line of JSON."""
    if len(line) * _MOST_BYTES_A_BYTE <= limits.max_batch_bytes:
        return False
    text = len(line) if line.isascii() else 4 * len(line)
    values = sum(nbytes * line.count(mark) for mark, nbytes in _BYTES_OF_VALUES.items())
    return text + values > limits.max_batch_bytes


def reason_of(error: Exception) -> str:
    """The reason of an error of `parsed`, without Arrow's own row numbers and its full stop."""
    if isinstance(error, UnreadableFile):
        return error.reason
    reason = one_line(error).partition(" in row ")[0].removesuffix(".")
    return _NO_OBJECT.sub(lambda found: f"it is {_KINDS.get(found[1], found[1])}, not an object", reason)

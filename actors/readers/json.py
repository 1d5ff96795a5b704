"""Newline-delimited JSON files."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.json as arrow_json
import pyarrow.types as kinds

from actors.conform import conform
from actors.object_file import ObjectFile
from actors.read_errors import EmptyFile, UnreadableFile, one_line
from actors.readers.json_shape import JsonShape
from actors.readers.pieces import cut
from actors.readers.row_bytes import row_bytes
from actors.readers.text_stream import text_stream
from actors.safe_types import safe_schema
from actors.settings import MIB, ReadLimits
from state.errors import SchemaError

_COLUMN_BYTES = 8


class JsonReader:
    """Reads files of one JSON object a line; see `FileReader`.  Empty lines are not rows.

    Args:
        limits: what a file may ask for.
    """

    def __init__(self, limits: ReadLimits = ReadLimits()) -> None:
        self._limits = limits

    def infer_schema(self, file: ObjectFile) -> pa.Schema:
        for block in self._blocks(file, 8 * MIB):
            # Arrow's inference follows every level on the stack, and gives every line every column.
            shape = JsonShape.of(block, self._limits)
            most_lines = self._most_lines(shape.num_columns * _COLUMN_BYTES)
            first_lines = b"".join(io.BytesIO(block).readlines()[:most_lines])
            inferred = _located(lambda lines: _parsed(lines, None), first_lines, 0).schema
            # What has only ever been {} says nothing about its fields.
            fields = [field for field in inferred if not (kinds.is_struct(field.type) and not field.type.num_fields)]
            if fields:
                return safe_schema(pa.schema(fields))
        raise EmptyFile("the file is empty: no schema can be taken from it")

    def read(
        self, file: ObjectFile, schema: pa.Schema, offset_rows: int = 0, piece_bytes: int = 8 * MIB
    ) -> Iterator[pa.Table]:
        text_schema = pa.schema([pa.field(f.name, _text_type(f.type, f.name)) for f in schema])
        most_lines = self._most_lines(row_bytes(schema))
        row = 0
        for block in self._blocks(file, piece_bytes):
            for lines in _at_most(block, most_lines):
                table = _located(lambda lines: _parsed(lines, text_schema), lines, row)
                skipped = min(max(offset_rows - row, 0), table.num_rows)
                row += table.num_rows
                if skipped < table.num_rows:
                    first_row = row - table.num_rows + skipped
                    rows = conform(table.slice(skipped), schema, first_row=first_row, parse_text=True)
                    yield from cut(rows, piece_bytes)

    def _most_lines(self, row_bytes: int) -> int:
        """How many lines are parsed at once: three characters become as many nulls as there are columns."""
        return max(1, self._limits.max_batch_bytes // max(1, row_bytes))

    def _blocks(self, file: ObjectFile, block_bytes: int) -> Iterator[bytes]:
        """Yields the text in whole lines, about `block_bytes` at a time, more if a line is longer."""
        if not file.size:
            return
        most_bytes = self._limits.max_record_bytes
        try:
            stream = text_stream(file, self._limits)
            text = b""
            while chunk := stream.read(min(block_bytes, most_bytes)):
                end = text.rfind(b"\n") + 1
                if end:
                    yield text[:end]
                text = text[end:] + chunk
                if len(text) > most_bytes and text.find(b"\n", most_bytes - len(chunk)) < 0:
                    raise UnreadableFile(f"a line is longer than {most_bytes} bytes (ReadLimits.max_record_bytes)")
            # Only now is it sure which text is the last: a last line without an end belongs to it.
            yield text
            return
        except pa.ArrowMemoryError:
            raise  # says nothing about the file
        except (pa.ArrowException, OSError) as error:
            reason = one_line(error)
        raise UnreadableFile(reason)


def _at_most(block: bytes, most_lines: int) -> Iterator[bytes]:
    """Yields the block in runs of so many lines; nearly always in one."""
    if block.count(b"\n") < most_lines:
        yield block
        return
    lines = io.BytesIO(block).readlines()
    for start in range(0, len(lines), most_lines):
        yield b"".join(lines[start : start + most_lines])


def _parsed(block: bytes, schema: pa.Schema | None) -> pa.Table:
    # Arrow does not look at the bytes of strings.
    str(block, "utf-8")
    if not block.strip():
        return (schema or pa.schema([])).empty_table()
    return arrow_json.read_json(
        pa.BufferReader(block),
        read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1),
        parse_options=arrow_json.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="infer" if schema is None else "ignore"
        ),
    )


def _located(parse: Callable[[bytes], pa.Table], block: bytes, first_row: int) -> pa.Table:
    """Parses a block; if it cannot be, finds the first line that is to blame, by halving."""
    try:
        return parse(block)
    except pa.ArrowMemoryError:
        raise  # says nothing about the file
    except (pa.ArrowException, UnicodeDecodeError):
        lines = [line for line in block.splitlines(keepends=True) if line.strip()]
    low, high = 0, len(lines)
    while high - low > 1:
        middle = (low + high) // 2
        # From the start, because what a line may hold depends on the lines before when types are inferred.
        if _error_of(parse, b"".join(lines[:middle])) is None:
            low = middle
        else:
            high = middle
    reason = _error_of(parse, b"".join(lines[: low + 1])) or "the line is not a JSON object"
    raise UnreadableFile(reason, first_row + low + 1)


def _error_of(parse: Callable[[bytes], pa.Table], block: bytes) -> str | None:
    try:
        parse(block)
        return None
    except pa.ArrowMemoryError:
        raise  # says nothing about the file
    except (pa.ArrowException, UnicodeDecodeError) as error:
        return one_line(error).partition(" in row ")[0]


def _text_type(kind: pa.DataType, column: str) -> pa.DataType:
    """What Arrow's parser can make of JSON for a type; `conform` does the rest."""
    if kinds.is_map(kind):
        raise SchemaError(f"column {column}: a JSON object is read as a struct, not as {kind}; name its fields")
    if kinds.is_struct(kind):
        return pa.struct([pa.field(f.name, _text_type(f.type, f"{column}.{f.name}")) for f in kind])
    if kinds.is_list(kind):
        return pa.list_(_text_type(kind.value_type, f"{column}.element"))
    return pa.string() if kind == pa.date32() else kind

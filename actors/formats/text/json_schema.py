"""Schema inference for lines of JSON, within limits on width and depth."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from actors.file_errors import TooLargeToInfer, UnreadableFile
from actors.formats.salvage import WRONG
from actors.formats.text.json_text import is_too_large, parsed, reason_of
from actors.schemas.merged_schema import common_type, merged_schema
from actors.settings import ReadLimits


@dataclass(frozen=True)
class JsonShape:
    """The shape of lines of JSON.

    Args:
        num_columns: the number of fields with different paths.
    """

    num_columns: int

    @classmethod
    def of(cls, block: bytes, limits: ReadLimits) -> JsonShape:
        """The shape of a block of lines.  A line that is not JSON is skipped: the parser reports it.

        Raises:
            UnreadableFile: the lines are wider or deeper than the limits.
            TooLargeToInfer: a line is too long.
        """
        paths: set[tuple[str, ...]] = set()
        for number, line in enumerate(filter(bytes.strip, io.BytesIO(block)), 1):
            if is_too_large(line, limits):
                raise TooLargeToInfer(
                    f"its {len(line)} bytes of JSON would take more than {limits.max_batch_bytes} bytes of memory to "
                    "find its columns (ReadLimits.max_batch_bytes); declare a schema",
                    number,
                )
            might_be_deep = line.count(b"[") + line.count(b"{") > limits.max_nesting
            try:
                _add_paths(json.loads(line), (), limits.max_nesting, paths)
            except (RecursionError, _TooDeep):
                raise UnreadableFile(
                    f"its JSON has more than {limits.max_nesting} levels (ReadLimits.max_nesting)", number
                ) from None
            except ValueError:
                if might_be_deep:
                    raise UnreadableFile("the line is not a JSON object", number) from None
            if len(paths) > limits.max_columns:
                raise UnreadableFile(f"it has more than {limits.max_columns} columns (ReadLimits.max_columns)", number)
        return cls(len(paths))


class _TooDeep(Exception):
    """A value is nested deeper than `ReadLimits.max_nesting`."""


def _add_paths(value: Any, path: tuple[str, ...], levels: int, paths: set[tuple[str, ...]]) -> None:
    if not isinstance(value, (dict, list)):
        paths.add(path)
        return
    if levels == 0:
        raise _TooDeep
    if isinstance(value, dict):
        for name, field in value.items():
            _add_paths(field, (*path, name), levels - 1, paths)
    else:
        for element in value:
            _add_paths(element, path, levels - 1, paths)


_COLUMN_BYTES = 8
_LINES_APART = 1000


def inferred(block: bytes, limits: ReadLimits) -> list[pa.Field]:
    """The columns of the lines of a block, with the types that Arrow infers.

    Lines that disagree with most others are ignored here: they are bad records, and reading reports them.

    Raises:
        UnreadableFile: no line has a column, or the lines are wider or deeper than the limits.
    """
    # Arrow's inference recurses into every level, and gives every line every column.
    shape = JsonShape.of(block, limits)
    most_lines = max(1, limits.max_batch_bytes // max(1, shape.num_columns * _COLUMN_BYTES))
    lines = list(islice(filter(bytes.strip, io.BytesIO(block)), most_lines))
    try:
        schema = _schema(lines)
    except pa.ArrowMemoryError:
        raise  # not an error of the file
    except WRONG:
        schema = _schema_of_most(lines[:_LINES_APART])
    # A field that is always {} tells nothing about its own fields.
    return [field for field in schema if not (kinds.is_struct(field.type) and not field.type.num_fields)]


def _schema(lines: Sequence[bytes]) -> pa.Schema:
    return parsed(b"".join(lines), None).schema


def _schema_of_most(lines: Sequence[bytes]) -> pa.Schema:
    """The schema of the lines that agree with most others."""
    try:
        return _schema(_agreeing(lines))
    except pa.ArrowMemoryError:
        raise
    except pa.ArrowException as error:
        # Lines that are good apart need not be good together, as one that begins with a byte order mark.
        reason = reason_of(error)
    raise UnreadableFile(reason)


def _agreeing(lines: Sequence[bytes]) -> list[bytes]:
    """The lines whose values have, in every column, the most frequent kind."""
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
    # A column of texts is a time only if all its texts are.
    return pa.schema([field.with_type(_text_for_time(field.type)) for field in schema])


def _text_for_time(kind: pa.DataType) -> pa.DataType:
    if kinds.is_timestamp(kind):
        return pa.string()
    if kinds.is_list(kind):
        return pa.list_(_text_for_time(kind.value_type))
    if kinds.is_struct(kind):
        return pa.struct([field.with_type(_text_for_time(field.type)) for field in kind])
    return kind

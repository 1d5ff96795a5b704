"""The readings of a file by Slackwater, as lines of text that compare with the readings of other engines."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from actors.file_errors import EmptyFile, UnreadableFile
from actors.formats.registry import reader_for
from actors.schemas.ddl import format_schema
from actors.schemas.safe_types import safe_schema
from state.errors import SchemaError
from tests.actors.formats.written_files import open_written
from tests.corpus.case import Case, Lines


def ours(case: Case, directory: Path) -> Lines:
    """The rows, the bad records and the refusal of a case."""
    file = open_written(directory, case.bytes)
    reader = reader_for(case.format, timestamps=case.timestamps)
    lines: list[str] = []
    try:
        schema = case.declared or safe_schema(reader.infer_schema(file))
        lines.append(format_schema(schema))
        for piece in reader.read(file, schema):
            bad = {each.row: f"bad: {each.reason}" for each in piece.bad}
            rows = iter(rows_text(piece.table.to_pylist(maps_as_pydicts="lossy")))
            lines.extend(bad.get(row) or next(rows) for row in range(piece.first_row, piece.end_row))
    except (EmptyFile, UnreadableFile, SchemaError) as error:
        refusal = f"refused: {error}"
        return (refusal,) if len(lines) < 2 else (*lines, refusal)
    return tuple(lines)


def rows_text(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line for each row."""
    return [f"[{', '.join(map(shown, row.values()))}]" for row in rows]


def shown(value: Any) -> str:
    """A value as text: equal for equal values of every engine."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | Decimal():
            return str(value)
        case float():
            return (
                repr(value) if math.isfinite(value) else {"nan": "NaN", "inf": "Infinity"}.get(str(value), "-Infinity")
            )
        case str():
            return json.dumps(value, ensure_ascii=False)
        case bytes() | bytearray():
            return f"0x{bytes(value).hex()}"
        case datetime():
            return f"{value.astimezone(UTC).replace(tzinfo=None)}Z" if value.tzinfo else str(value)
        case date() | time():
            return str(value)
        case Mapping():
            return f"{{{', '.join(f'{name}: {shown(each)}' for name, each in value.items())}}}"
        case list() | tuple():
            return f"[{', '.join(map(shown, value))}]"
    return repr(value)


def schema_text(schema: pa.Schema) -> str:
    """A schema of Arrow in the words of Spark, as far as Spark has its types."""
    return ", ".join(f"{field.name} {_type_text(field.type)}" for field in schema)


def _type_text(kind: pa.DataType) -> str:
    try:
        return (
            format_schema(safe_schema(pa.schema([("c", kind)]))).partition(" ")[2]
            if not pa.types.is_null(kind)
            else "null"
        )
    except SchemaError:
        return str(kind)

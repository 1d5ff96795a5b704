"""Columns from the path of a file, as Hive and Spark write them: `dt=2026-01-01/hour=5/part-0.parquet`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from urllib.parse import unquote

import pyarrow as pa

from actors.file_errors import UnreadableFile, one_line
from actors.schemas.column_names import NameRule, source_names, unique_names
from actors.schemas.conform import conform

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")
_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def path_values(path: str) -> dict[str, str | None]:
    """Column → its text, from the directories of a path relative to its source; None for null.

    The last of several segments with one key counts, in any case.

    Example:
        >>> path_values("dt=2026-01-01/city=S%C3%A3o%20Paulo/part-0.parquet")
        {'dt': '2026-01-01', 'city': 'São Paulo'}
    """
    if "=" not in path:
        return {}
    values: dict[str, tuple[str, str | None]] = {}
    for segment in path.split("/")[:-1]:
        key, equals, text = segment.partition("=")
        if key and equals:
            name = unquote(key)
            first, _ = values.get(name.lower(), (name, None))
            values[name.lower()] = first, None if text == NO_VALUE else unquote(text)
    return dict(values.values())


def path_fields(paths: Iterable[str]) -> list[pa.Field]:
    """The columns in paths, in the order of their appearance, with the types that their values suggest."""
    texts: dict[str, tuple[str, list[str]]] = {}
    for path in paths:
        for name, text in path_values(path).items():
            texts.setdefault(name.lower(), (name, []))[1].extend([] if text is None else [text])
    names = unique_names([name for name, _ in texts.values()])
    return [pa.field(name, _suggested_type(found)) for name, (_, found) in zip(names, texts.values(), strict=True)]


def path_scalars(path: str, schema: pa.Schema, rule: NameRule = "any_case") -> Mapping[str, pa.Scalar]:
    """Column → its value, for the columns of a schema that a path has.

    Args:
        path: the path, relative to the source.
        schema: the schema of the source.
        rule: the match of the keys with the columns of the source.

    Raises:
        UnreadableFile: a value does not fit its type; the message names the segment.
    """
    values = path_values(path)
    names = source_names([*values], schema.names, rule)
    return {
        name: _scalar(key, text, schema.field(name))
        for name, (key, text) in zip(names, values.items(), strict=True)
        if name in schema.names
    }


def _suggested_type(texts: list[str]) -> pa.DataType:
    if texts and all(_WHOLE_NUMBER.fullmatch(text) for text in texts):
        return pa.int64()
    if texts and all(map(_is_date, texts)):
        return pa.date32()
    return pa.string()


def _is_date(text: str) -> bool:
    try:
        return bool(_ISO_DATE.fullmatch(text) and date.fromisoformat(text))
    except ValueError:
        return False


def _scalar(key: str, text: str | None, field: pa.Field) -> pa.Scalar:
    if text is None:
        return pa.scalar(None, field.type)
    column = pa.array([text])
    try:
        if pa.types.is_timestamp(field.type):
            table = pa.table({field.name: column})
            return conform(table, pa.schema([field]), parse_text=True)[field.name][0]
        return column.cast(field.type)[0]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnreadableFile) as error:
        reason = error.reason if isinstance(error, UnreadableFile) else one_line(error)
    raise UnreadableFile(f"its path has {key}={text}, but column {field.name} of the source is {field.type}: {reason}")

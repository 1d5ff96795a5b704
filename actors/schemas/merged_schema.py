"""Merge of the schemas of several files into one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.types as kinds

_MAX_PRECISION = 38
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}

DOUBTFUL_HEADER = b"slackwater.doubtful_header"
"""Metadata of the schema of a file whose first line names the columns, and may be a row: each of its values fits the
type of the values below it."""


def with_headers(shown: Mapping[str, pa.Schema]) -> Mapping[str, pa.Schema]:
    """Leaves out the schemas of files whose first line is a row.

    A first line that may be a row is one if another file has a header, and the two have no name in common.

    Args:
        shown: path of a file → its schema.
    """
    headers = {
        name.lower()
        for schema in shown.values()
        if DOUBTFUL_HEADER not in (schema.metadata or {})
        for name in schema.names
    }
    if not headers:
        return shown
    return {
        path: schema
        for path, schema in shown.items()
        if DOUBTFUL_HEADER not in (schema.metadata or {}) or any(name.lower() in headers for name in schema.names)
    }


def merged_schema(shown: Iterable[pa.Schema]) -> pa.Schema:
    """The columns of all files by name, in the order of their appearance, each with a type that holds most files'.

    Types are promoted within their kind: integers, floats, decimals, a date to a time, and null to anything.  For a
    column of several kinds the kind of most files wins, the first one in a tie: one bad file does not decide, and is
    read by the schema like any later file.

    Names that differ by case alone are one column, with the first spelling, since Spark does not show them apart.

    Args:
        shown: the schema of each file in the order of the files, of safe types; null for a column without a value.
    """
    columns: dict[str, tuple[str, list[pa.DataType]]] = {}
    for schema in shown:
        for field in schema:
            columns.setdefault(field.name.lower(), (field.name, []))[1].append(field.type)
    return pa.schema([(name, _type_of_most(types)) for name, types in columns.values()])


def _type_of_most(types: Iterable[pa.DataType]) -> pa.DataType:
    """The type that holds the values of the most files."""
    found: list[tuple[pa.DataType, int]] = []
    for kind in types:
        if kinds.is_null(kind):
            continue
        for position, (known, files) in enumerate(found):
            common = common_type(known, kind)
            if common is not None:
                found[position] = common, files + 1
                break
        else:
            found.append((kind, 1))
    return max(found, key=lambda each: each[1], default=(pa.null(), 0))[0]


def common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The narrowest safe type that holds the values of both types; None without such a type.  Both may be null."""
    if one == other or kinds.is_null(other):
        return one
    if kinds.is_null(one):
        return other
    if kinds.is_struct(one) and kinds.is_struct(other):
        return _common_struct(one, other)
    if kinds.is_list(one) and kinds.is_list(other):
        element = common_type(one.value_type, other.value_type)
        return None if element is None else pa.list_(element)
    if kinds.is_map(one) and kinds.is_map(other):
        key, item = common_type(one.key_type, other.key_type), common_type(one.item_type, other.item_type)
        return None if key is None or item is None else pa.map_(key, item)
    if kinds.is_temporal(one) and kinds.is_temporal(other):
        zones = {kind.tz for kind in (one, other) if kinds.is_timestamp(kind)}
        # A time without a zone counts as UTC, as in `conform`.
        return pa.timestamp("us", "UTC" if "UTC" in zones else None)
    return _common_number(one, other)


def _common_struct(one: pa.StructType, other: pa.StructType) -> pa.DataType | None:
    fields = {field.name.lower(): field for field in one}
    for field in other:
        known = fields.get(field.name.lower(), field)
        kind = common_type(known.type, field.type)
        if kind is None:
            return None
        fields[field.name.lower()] = known.with_type(kind)
    return pa.struct(list(fields.values()))


def _common_number(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    both = (one, other)
    if all(kinds.is_integer(kind) or kinds.is_floating(kind) for kind in both):
        if all(map(kinds.is_integer, both)):
            return max(both, key=lambda kind: kind.bit_width)
        return pa.float64()
    if all(kinds.is_integer(kind) or kinds.is_decimal(kind) for kind in both):
        sizes = [
            (kind.precision - kind.scale, kind.scale) if kinds.is_decimal(kind) else (_DIGITS[kind.bit_width], 0)
            for kind in both
        ]
        whole, scale = (max(size) for size in zip(*sizes, strict=True))
        return pa.decimal128(whole + scale, scale) if whole + scale <= _MAX_PRECISION else None
    return None

"""Rows of every type that a view can have, as Spark declares them: also columns, fields and elements without nulls."""

from __future__ import annotations

import math
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

_PLACE = pa.struct([pa.field("x", pa.int64(), nullable=False), ("y", pa.string()), ("z", pa.list_(pa.float64()))])

SCHEMA = pa.schema(
    [
        ("carrier", pa.string()),
        ("day", pa.date32()),
        pa.field("n", pa.int64(), nullable=False),
        ("tiny", pa.int8()),
        ("small", pa.int16()),
        ("whole", pa.int32()),
        pa.field("is_late", pa.bool_(), nullable=False),
        ("delay", pa.float64()),
        ("ratio", pa.float32()),
        ("price", pa.decimal128(12, 2)),
        ("fraction", pa.decimal128(9, 9)),
        ("total", pa.decimal128(38, 0)),
        ("exact", pa.decimal128(38, 18)),
        ("name", pa.string()),
        pa.field("code", pa.string(), nullable=False),
        ("raw", pa.binary()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("seen", pa.list_(pa.float64())),
        ("sizes", pa.list_(pa.field("element", pa.int32(), nullable=False))),
        ("place", _PLACE),
        ("places", pa.list_(_PLACE)),
        ("tags", pa.map_(pa.string(), pa.string())),
        ("by_name", pa.map_(pa.string(), _PLACE)),
        ("lists", pa.list_(pa.list_(pa.int64()))),
        ("maps", pa.list_(pa.map_(pa.string(), pa.list_(_PLACE)))),
        ("deep", pa.struct([("places", pa.list_(_PLACE)), ("tags", pa.map_(pa.string(), pa.list_(pa.string())))])),
        ("a column's (é) name = 1", pa.int64()),
    ]
)

TEXTS = (
    "",
    "a",
    "A",
    "NULL",
    "\x00",
    "a\x00b",
    " a ",
    "é",
    "e\u0301",
    "\U0001f600",
    "\uffff\U00010000",
    "a/b=c%d",
    "\n\t",
    "x" * 40,
)
_INTEGERS = (0, 1, -1)
_FLOATS = (0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, 1.5, -1e300)
_YEAR_US = 31_556_952_000_000
# The first and the last of Python, of Spark's literals and of its calendar, and one that Arrow prints modulo 65,536.
_TIMES_US = (
    0,
    -1,
    1,
    1_770_000_000_123_456,
    -62_135_596_800_000_000,
    253_402_300_799_999_999,
    65_536 * _YEAR_US,
    -70_000 * _YEAR_US,
)
_DAYS = (0, -1, 20_000, -719_162, 2_932_896)
_NULLS = 0.2


def row(random: Random, schema: pa.Schema = SCHEMA) -> dict[str, Any]:
    """A random row; every type gives its special values more often than others."""
    return {field.name: _value(random, field) for field in schema}


def table(rows: list[dict[str, Any]], schema: pa.Schema = SCHEMA) -> pa.Table:
    """The rows as Spark writes them."""
    columns = [_array([each[field.name] for each in rows], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _value(random: Random, field: pa.Field) -> Any:
    if field.nullable and random.random() < _NULLS:
        return None
    kind = field.type
    if kinds.is_struct(kind):
        return {each.name: _value(random, each) for each in kind}
    if kinds.is_map(kind):
        keys = random.sample(TEXTS, random.choice((0, 1, 2, 3)))
        return [(key, _value(random, kind.item_field)) for key in keys]
    if kinds.is_list(kind):
        return [_value(random, kind.value_field) for _ in range(random.choice((0, 0, 1, 2, 3)))]
    return _single(random, kind)


def _single(random: Random, kind: pa.DataType) -> Any:
    if kinds.is_boolean(kind):
        return random.random() < 0.5
    if kinds.is_integer(kind):
        most = 2 ** (kind.bit_width - 1)
        return random.choice((*_INTEGERS, most - 1, -most, random.randrange(100)))
    if kinds.is_float32(kind):
        return random.choice((*_FLOATS[:5], 0.5, random.randrange(100) / 4))
    if kinds.is_floating(kind):
        return random.choice((*_FLOATS, random.random()))
    if kinds.is_decimal(kind):
        most = 10**kind.precision - 1
        return Decimal(f"{random.choice((0, 1, -1, most, -most, random.randrange(most)))}E-{kind.scale}")
    if kinds.is_string(kind):
        return random.choice(TEXTS)
    if kinds.is_binary(kind):
        return random.choice(TEXTS).encode() + bytes(random.choices(range(256), k=random.choice((0, 1, 3))))
    if kinds.is_date(kind):
        return random.choice((*_DAYS, random.randrange(20_000)))
    assert kinds.is_timestamp(kind), kind
    return random.choice((*_TIMES_US, random.randrange(10**15)))


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    plain = _plain(kind)
    return pa.array(values, plain).cast(kind) if plain != kind else pa.array(values, kind)


def _plain(kind: pa.DataType) -> pa.DataType:
    """Times as numbers: Python has no years beyond 9999."""
    if kinds.is_date(kind):
        return pa.int32()
    return pa.int64() if kinds.is_timestamp(kind) else kind


def bag_of(rows: pa.Table, schema: pa.Schema) -> list[str]:
    """The rows as sorted texts: equal bags have equal lists.  Signed zeros differ, and so do nulls and empty lists.

    Args:
        rows: as any program has read them: with other names within lists and maps, and with all columns nullable.
        schema: the types that the values must have.
    """
    return sorted(map(repr, zip(*(_values(rows[field.name], field.type) for field in schema), strict=True)))


def _values(column: pa.ChunkedArray, kind: pa.DataType) -> list[Any]:
    column = column.cast(_nullable(kind))
    return list(column.cast(_nullable(kind, in_numbers=True)).to_pylist())


def _nullable(kind: pa.DataType, *, in_numbers: bool = False) -> pa.DataType:
    """The type with parts that may all be null; with times as numbers if asked."""
    if kinds.is_struct(kind):
        return pa.struct([(each.name, _nullable(each.type, in_numbers=in_numbers)) for each in kind])
    if kinds.is_map(kind):
        key, item = (_nullable(each, in_numbers=in_numbers) for each in (kind.key_type, kind.item_type))
        return pa.map_(key, item)
    if kinds.is_list(kind):
        return pa.list_(_nullable(kind.value_type, in_numbers=in_numbers))
    return _plain(kind) if in_numbers else kind

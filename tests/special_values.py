"""Values on which two implementations of equality disagree most easily, with their classes by both relations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

_DAY_US = 86_400 * 10**6
_NAN_64 = (0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000000001, 0x7FF0000000000001)
_NAN_32 = (0x7FC00000, 0xFFC00000, 0x7FC00001, 0x7F800001)
_TIMES = (
    *(0, -1, 1, 20_454 * _DAY_US, 23_956_986 * _DAY_US),  # the last two are 65,536 years apart
    *(-719_162 * _DAY_US - 1, -719_162 * _DAY_US, 2_932_897 * _DAY_US - 1, 2_932_897 * _DAY_US),
    *(-141_428 * _DAY_US, -(2**63), -(2**63) + 1, 2**63 - 1, -3_000_000 * _DAY_US),
)
_DAYS = (0, -1, 20_454, 23_956_986, -719_163, -719_162, 2_932_896, 2_932_897, -(2**31), 2**31 - 1)
_STRINGS = (
    *(
        "",
        " ",
        "  ",
        "a",
        "a ",
        " a",
        "A",
        "\0",
        "a\0",
        "a\0b",
        "|",
        "a|",
        "\\",
        "\\\\",
        "\\|",
        "\\N",
        "N",
        "nan",
        "-0",
    ),
    *("é", "e\u0301", "ß", "ss", "😀", "\U0010ffff", "\uffff", "\u200b", "İ", "i\u0307", "%", "_", "'", '"', "`", "\n"),
)
_BINARIES = (b"", b"\0", b"\0\0", b"a", b"61", b"|", b"\\N", b"\xff", b"\xff\xff", "é".encode())


@dataclass(frozen=True)
class SpecialValues:
    """Values of one type.

    Args:
        values: no two of them have the same bits.
        sql: for each value its class by SQL equality; null has -1.
        identity: for each value its class by identity.
    """

    values: pa.Array
    sql: Sequence[int]
    identity: Sequence[int]

    def table(self, name: str = "v") -> pa.Table:
        return pa.table({name: self.values})


def _distinct(values: pa.Array) -> SpecialValues:
    """Values that differ by both relations, and null."""
    classes = [*range(len(values)), -1]
    return SpecialValues(pa.concat_arrays([values, pa.nulls(1, values.type)]), classes, classes)


def _floats(kind: pa.DataType, bits: Any, nans: Sequence[int]) -> tuple[pa.Array, list[int], list[int]]:
    others = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, 0.1], kind.to_pandas_dtype())
    tiny = np.array([1, 2], bits).view(others.dtype)
    after_one = np.nextafter(others[2:3], np.inf, dtype=others.dtype)
    numbers = np.concatenate([np.array(nans, bits).view(others.dtype), others, tiny, after_one])
    count = len(numbers) - len(nans)
    sql = [0] * len(nans) + [1, 1, *range(2, count)]
    identity = [0] * len(nans) + [*range(1, count + 1)]
    return pa.array(numbers, kind, from_pandas=False), sql, identity


def _with_null(values: pa.Array, sql: list[int], identity: list[int]) -> SpecialValues:
    return SpecialValues(pa.concat_arrays([values, pa.nulls(1, values.type)]), [*sql, -1], [*identity, -1])


def _lists(special: SpecialValues) -> SpecialValues:
    """Arrays of none, one and two of the values and nulls; a null array."""
    count = len(special.values)
    lists = [[], *([each] for each in range(count)), [0, count - 1], [count - 1, 0], [0, 0], [1, 1], [count - 1] * 2]
    offsets = np.concatenate([[0], np.cumsum([*map(len, lists)])])
    flat = special.values.take(pa.array([at for each in lists for at in each], pa.int64()))
    values = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat)
    return _with_null(values, _classes(lists, special.sql), _classes(lists, special.identity))


def _structs(special: SpecialValues) -> SpecialValues:
    """Structs with each value before and after a text, and a null struct."""
    count = len(special.values)
    rows = [*((at, text) for at in range(count) for text in (0, 1)), (0, 2)]
    texts = pa.array(["", None, "|"]).take(pa.array([text for _, text in rows]))
    field = special.values.take(pa.array([at for at, _ in rows]))
    values = pa.StructArray.from_arrays([field, texts], ["a", "b"])
    sql, identity = ([(classes[at], text) for at, text in rows] for classes in (special.sql, special.identity))
    return _with_null(values, _numbers(sql), _numbers(identity))


def _classes(lists: Sequence[Sequence[int]], classes: Sequence[int]) -> list[int]:
    return _numbers([tuple(classes[at] for at in each) for each in lists])


def _numbers(keys: Sequence[Any]) -> list[int]:
    numbers: dict[Any, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def _integers(kind: pa.DataType, bits: int) -> SpecialValues:
    return _distinct(pa.array([0, 1, -1, 10, 11, -(1 << bits - 1), (1 << bits - 1) - 1], kind))


def _decimals(precision: int, scale: int) -> SpecialValues:
    largest = 10**precision - 1
    numbers = {0, 1, -1, 10, 100, min(10**scale, largest), largest, -largest}
    values = [Decimal(f"{each}E-{scale}") for each in sorted(numbers)]
    return _distinct(pa.array(values, pa.decimal128(precision, scale)))


_DOUBLE = _with_null(*_floats(pa.float64(), np.uint64, _NAN_64))
_FLOAT = _with_null(*_floats(pa.float32(), np.uint32, _NAN_32))
_STRING = _distinct(pa.array(_STRINGS))
_TEXTS_IN_ARRAYS = _distinct(
    pa.array(
        [
            [],
            [[]],
            [[], []],
            [[""]],
            [["", ""]],
            [[""], []],
            [["a", ""]],
            [["a"], []],
            [["a"], [""]],
            [["a|"]],
            [["|"]],
        ],
        pa.list_(pa.list_(pa.string())),
    )
)
_TIME = _distinct(pa.array(_TIMES, pa.int64()).cast(pa.timestamp("us", "UTC")))

SPECIAL: Mapping[str, SpecialValues] = {
    "boolean": _distinct(pa.array([True, False])),
    "tinyint": _integers(pa.int8(), 8),
    "smallint": _integers(pa.int16(), 16),
    "int": _integers(pa.int32(), 32),
    "bigint": _integers(pa.int64(), 64),
    "float": _FLOAT,
    "double": _DOUBLE,
    "decimal(10,2)": _decimals(10, 2),
    "decimal(38,0)": _decimals(38, 0),
    "decimal(38,38)": _distinct(pa.array([Decimal(0), Decimal("1E-38"), Decimal("0.1")], pa.decimal128(38, 38))),
    "string": _STRING,
    "binary": _distinct(pa.array(_BINARIES, pa.binary())),
    "date": _distinct(pa.array(_DAYS, pa.int32()).cast(pa.date32())),
    "timestamp": _TIME,
    "timestamp_ntz": _distinct(pa.array(_TIMES, pa.int64()).cast(pa.timestamp("us"))),
    "array<double>": _lists(_DOUBLE),
    "array<bigint>": _lists(_integers(pa.int64(), 64)),
    "array<string>": _lists(_STRING),
    "array<timestamp>": _lists(_TIME),
    "array<array<double>>": _lists(_lists(_DOUBLE)),
    "array<array<string>>": _TEXTS_IN_ARRAYS,
    "struct<double>": _structs(_DOUBLE),
    "struct<array<float>>": _structs(_lists(_FLOAT)),
    "array<struct<string>>": _lists(_structs(_STRING)),
}
"""The types that name groups, in the words of Spark."""


def _maps() -> SpecialValues:
    zero_and_one = [[], [("a", 0.0)], [("a", -0.0)], [("a", None)], [("a", 1.0), ("b", 2.0)], [("b", 2.0), ("a", 1.0)]]
    return _distinct(pa.array(zero_and_one, pa.map_(pa.string(), pa.float64())))


MAPS: Mapping[str, SpecialValues] = {"map<string,double>": _maps(), "array<map>": _lists(_maps())}
"""Types that do not name groups: only their identity is defined."""

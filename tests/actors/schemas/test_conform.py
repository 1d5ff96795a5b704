from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from actors.file_errors import UnreadableFile
from actors.schemas.conform import conform, lost_digits, require_common_column
from actors.schemas.safe_types import safe_schema

_UTC = UTC


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", None, "b"]).dictionary_encode(),
        pa.array([2**64 - 1, None, 0], pa.uint64()),
        pa.array([1_000, None, 2_000], pa.timestamp("ns")),
        pa.array([1, None, 2], pa.timestamp("s", "Europe/Berlin")),
        pa.array(["x", None, "y"], pa.large_string()),
        pa.array(["x", None, "y"], pa.string_view()),
        pa.array([b"xx", None, b"yy"], pa.binary(2)),
        pa.array([1.5, None, 2.0], pa.float32()).cast(pa.float16()),
        pa.nulls(3),
        pa.array([["x"], None, [None, "q"]], pa.large_list(pa.large_string())),
        pa.array([[1, 2], None, [3, 4]], pa.list_(pa.uint32(), 2)),
        pa.array([{"a": 1, "b": "q"}, None, {"a": None}], pa.struct([("a", pa.uint64()), ("b", pa.large_string())])),
        pa.array([[("k", 1)], None, []], pa.map_(pa.large_string(), pa.uint16())),
        pa.array([[{"t": [1]}], [], None], pa.list_(pa.struct([("t", pa.large_list(pa.uint8()))]))),
        pa.RunEndEncodedArray.from_arrays([2, 3], ["a", None]),
        pa.array([b"x" * 16, None, None], pa.binary(16)),
    ],
    ids=lambda column: str(column.type),
)
def test_safe_types_hold_the_same_values(column: pa.Array) -> None:
    table = pa.table({"c": column})
    schema = safe_schema(table.schema)
    assert conform(table, schema).schema == schema
    for start in range(3):
        result = conform(table.slice(start), schema)
        result.validate(full=True)
        assert result.column("c").to_pylist() == table.column("c").to_pylist()[start:]


@pytest.mark.parametrize(
    ("found", "wanted", "value"),
    [
        (pa.array([7], pa.int32()), pa.int64(), 7),
        (pa.array([7], pa.int64()), pa.float64(), 7.0),
        (pa.array([7], pa.int64()), pa.decimal128(20, 2), Decimal("7.00")),
        (pa.array([1.5], pa.float32()), pa.float64(), 1.5),
        (pa.array([Decimal("1.5")], pa.decimal128(5, 1)), pa.decimal128(10, 3), Decimal("1.500")),
        (pa.array([date(2013, 1, 2)]), pa.timestamp("us", "UTC"), datetime(2013, 1, 2, tzinfo=_UTC)),
        (pa.array([1], pa.timestamp("s")), pa.timestamp("us", "UTC"), datetime(1970, 1, 1, 0, 0, 1, tzinfo=_UTC)),
        (pa.array([1], pa.timestamp("s", "Asia/Tokyo")), pa.timestamp("us"), datetime(1970, 1, 1, 0, 0, 1)),  # noqa: DTZ001
        (pa.array([{"a": 1}]), pa.struct([("b", pa.string()), ("a", pa.float64())]), {"b": None, "a": 1.0}),
        (pa.array([[{"a": 1}]]), pa.list_(pa.struct([("b", pa.int8())])), [{"b": None}]),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_values_widen(found: pa.Array, wanted: pa.DataType, value: Any) -> None:
    result = conform(pa.table({"c": found}), pa.schema([("c", wanted)]))
    assert result.column("c").type == wanted
    assert result.column("c").to_pylist() == [value]


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (pa.int64(), pa.int32()),
        (pa.string(), pa.int64()),
        (pa.int64(), pa.string()),
        (pa.float64(), pa.float32()),
        (pa.float64(), pa.int64()),
        (pa.binary(), pa.string()),
        (pa.string(), pa.timestamp("us")),
        (pa.timestamp("us"), pa.date32()),
        (pa.time64("us"), pa.int64()),
        (pa.struct([("a", pa.string())]), pa.struct([("a", pa.int8())])),
        (pa.list_(pa.string()), pa.string()),
    ],
    ids=str,
)
def test_another_kind_is_refused_even_without_rows(found: pa.DataType, wanted: pa.DataType) -> None:
    table = pa.table({"x": pa.array([], pa.int8()), "c": pa.array([], found)})
    with pytest.raises(UnreadableFile, match=r"column c: the source has .*, the file has ") as caught:
        conform(table, pa.schema([("c", wanted)]))
    assert str(found) in str(caught.value) and str(wanted) in str(caught.value)


def _invalid_text() -> pa.Array:
    offsets = pa.array([0, 1, 2, 3, 4], pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.string(), 4, [None, offsets, pa.py_buffer(b"ab\xffd")])


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (lambda: pa.array([1_000, 2_000, 2_001, 3_000], pa.timestamp("ns")), pa.timestamp("us")),
        (lambda: pa.array([1_000, 2_000, 2_001, 3_000], pa.timestamp("ns")), pa.timestamp("us", "UTC")),
        (lambda: pa.array([1, 2, 2**53 + 1, 4]), pa.float64()),
        (lambda: pa.array([1, 2, 1_000, 4]), pa.decimal128(4, 2)),
        (_invalid_text, pa.string()),
        (lambda: pa.array([[1], [], [3, 2**53 + 1], None]), pa.list_(pa.float64())),
    ],
)
def test_a_value_that_would_change_is_refused_with_its_row(make: Callable[[], pa.Array], wanted: pa.DataType) -> None:
    table = pa.table({"c": pa.chunked_array([make().slice(0, 1), make().slice(1)])})
    with pytest.raises(UnreadableFile, match="column c: ") as caught:
        conform(table, pa.schema([("c", wanted)]), first_row=10)
    assert caught.value.row == 13


def test_text_becomes_a_time_only_where_that_is_asked_for() -> None:
    table = pa.table({"c": ["2013-01-01 05:00:00", "2013-01-01T05:00:00+0100", " 2013-01-01 ", None]})
    schema = pa.schema([("c", pa.timestamp("us", "UTC"))])
    with pytest.raises(UnreadableFile, match="the file has string"):
        conform(table, schema)
    values = conform(table, schema, parse_text=True).column("c").to_pylist()
    day = datetime(2013, 1, 1, tzinfo=_UTC)
    assert values == [day.replace(hour=5), day.replace(hour=4), day, None]
    with pytest.raises(UnreadableFile, match="row 2: column c: "):
        conform(pa.table({"c": ["2013-01-01", "soon"]}), schema, parse_text=True)


def test_a_column_of_nothing_but_nulls_fits_every_type() -> None:
    table = pa.table({"c": pa.nulls(2), "s": pa.array([{"a": None}, None], pa.struct([("a", pa.null())]))})
    schema = pa.schema([("c", pa.date32()), ("s", pa.struct([("a", pa.decimal128(5, 2))]))])
    assert conform(table, schema).to_pylist() == [{"c": None, "s": {"a": None}}, {"c": None, "s": None}]


@pytest.mark.parametrize(
    ("found", "wanted", "has_remedy"),
    [
        (pa.int64(), pa.int32(), True),
        (pa.float64(), pa.float32(), True),
        (pa.float64(), pa.int32(), True),
        (pa.string(), pa.int32(), False),
        (pa.int64(), pa.string(), False),
    ],
    ids=str,
)
def test_a_column_of_wider_numbers_names_the_option_that_helps(
    found: pa.DataType, wanted: pa.DataType, has_remedy: bool
) -> None:
    with pytest.raises(UnreadableFile) as raised:
        conform(pa.table({"x": pa.nulls(1, found)}), pa.schema([("x", wanted)]))
    assert ('Schema(evolution="widen")' in raised.value.reason) == has_remedy


@pytest.mark.parametrize(
    ("reason", "has_remedy"),
    [
        ("In CSV column #0: CSV conversion error to int8: invalid value '300'", True),
        ("Failed to convert JSON to int32, couldn't parse:3000000000", True),
        ("Integer value 300 not in range: -128 to 127", True),
        ("In CSV column #0: CSV conversion error to int8: invalid value 'x'", False),
        ("In CSV column #0: CSV conversion error to int64: invalid value '99999999999999999999'", False),
    ],
)
def test_a_number_that_is_too_large_names_the_option_that_helps(reason: str, has_remedy: bool) -> None:
    assert (lost_digits(reason) != reason) == has_remedy


def test_long_and_broken_names_of_a_file_are_one_short_line_of_its_error() -> None:
    names = ["no\nheader " * 1_000 for _ in range(9)]
    with pytest.raises(UnreadableFile, match="none of the source's columns") as raised:
        require_common_column(names, pa.schema([("x", pa.int64())]))
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 500


def test_missing_columns_cost_linear_time() -> None:
    def seconds(num_columns: int) -> float:
        table = pa.table({f"c{number}": [1] for number in range(num_columns)})
        schema = pa.schema([*table.schema, *(pa.field(f"m{number}", pa.int64()) for number in range(num_columns))])
        return min(timed(lambda: conform(table, schema)) for _ in range(3))

    def timed(call: Callable[[], object]) -> float:
        started = time.thread_time()
        call()
        return time.thread_time() - started

    assert seconds(8_000) < 10 * seconds(2_000)

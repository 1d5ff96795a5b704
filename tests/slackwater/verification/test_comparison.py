"""Every kind of difference between two tables is seen: a comparison that cannot fail would prove nothing."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from slackwater.verification.comparison import differences

_SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("price", pa.float64())])
_ROWS: list[dict[str, Any]] = [
    {"id": 1, "name": "tea", "price": 2.5},
    {"id": 2, "name": None, "price": 9.0},
    {"id": 3, "name": "rum", "price": None},
    {"id": 4, "name": "gin", "price": math.nan},
    {"id": None, "name": "all", "price": math.inf},
]
_MODES: dict[str, dict[str, Any]] = {
    "append": {"key": (), "is_aggregate": False},
    "keyed": {"key": ("id",), "is_aggregate": True},
    "unkeyed": {"key": (), "is_aggregate": True},
}


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, _SCHEMA)


def _counts(rows: list[dict[str, Any]], mode: str) -> tuple[int, int, int] | None:
    found = differences(_table(rows), _table(_ROWS), **_MODES[mode])
    return None if found is None else (found.missing, found.extra, found.changed)


def _with(index: int, **values: Any) -> list[dict[str, Any]]:
    return [{**row, **values} if at == index else row for at, row in enumerate(_ROWS)]


@pytest.mark.parametrize("mode", _MODES)
def test_the_order_of_rows_does_not_count(mode: str) -> None:
    assert _counts(_ROWS[::-1], mode) is None
    assert differences(_table([]), _table([]), **_MODES[mode]) is None


@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize(
    ("rows", "missing", "extra"),
    [(_ROWS[1:], 1, 0), ([*_ROWS, _ROWS[0]], 0, 1), ([*_ROWS, *_ROWS[3:], *_ROWS[3:]], 0, 4), ([], 5, 0)],
    ids=["lost", "twice", "three times", "empty"],
)
def test_lost_and_doubled_rows_are_counted(mode: str, rows: list[dict[str, Any]], missing: int, extra: int) -> None:
    assert _counts(rows, mode) == (missing, extra, 0)


@pytest.mark.parametrize(
    "wrong",
    [
        _with(0, name="Tea"),
        _with(0, name=None),
        _with(1, name="NULL"),
        _with(0, price=2.50000001),
        _with(0, price=None),
        _with(2, price=0.0),
        _with(3, price=0.0),
        _with(3, price=None),
        _with(4, price=-math.inf),
        _with(4, price=1e300),
    ],
)
def test_a_wrong_value_is_a_change_where_rows_have_a_key(wrong: list[dict[str, Any]]) -> None:
    assert _counts(wrong, "append") == _counts(wrong, "unkeyed") == (1, 1, 0)
    assert _counts(wrong, "keyed") == (0, 0, 1)


@pytest.mark.parametrize("wrong", [_with(0, id=7), _with(0, id=None)])
def test_a_wrong_key_is_a_row_lost_and_one_too_many(wrong: list[dict[str, Any]]) -> None:
    assert {_counts(wrong, mode) for mode in _MODES} == {(1, 1, 0)}


def test_the_last_digits_of_a_float_count_only_where_nothing_was_summed() -> None:
    near = _with(0, price=2.5 * (1 + 1e-12))
    assert _counts(near, "keyed") is None and _counts(near, "unkeyed") is None
    assert _counts(near, "append") == (1, 1, 0)
    doubled = [*near, near[0]]
    assert _counts(doubled, "unkeyed") == (0, 1, 0)
    assert _counts(doubled, "keyed") == (1, 2, 0)


def test_rows_without_a_key_meet_although_their_numbers_are_in_another_order() -> None:
    schema = pa.schema([("a", pa.float64()), ("b", pa.float64())])
    ones = [1.0, 1.0 - 1e-16, 1.0 + 3e-16, 1.0]
    view = pa.table({"a": ones, "b": [4.0, 3.0, 2.0, 1.0]}, schema=schema)
    expected = pa.table({"a": ones, "b": [1.0, 2.0, 3.0, 4.0]}, schema=schema)
    assert differences(view, expected, key=(), is_aggregate=True) is None
    wrong = pa.table({"a": ones, "b": [1.0, 2.0, 3.0, 5.0]}, schema=schema)
    found = differences(view, wrong, key=(), is_aggregate=True)
    assert found is not None and (found.missing, found.extra) == (1, 1)


def test_zeros_are_one_value() -> None:
    schema = pa.schema([("x", pa.float32())])
    zero, negative = (pa.table({"x": pa.array([value], pa.float32())}, schema=schema) for value in (0.0, -0.0))
    assert differences(zero, negative, key=(), is_aggregate=False) is None


def test_nested_values_count() -> None:
    rows = [{"id": 1, "tags": [{"x": 1}, None]}, {"id": 2, "tags": None}]
    schema = pa.schema([("id", pa.int64()), ("tags", pa.list_(pa.struct([("x", pa.int64())])))])
    right = pa.Table.from_pylist(rows, schema)
    assert differences(right, right.take([1, 0]), key=("id",), is_aggregate=True) is None
    for tags in ([{"x": 2}, None], [None, {"x": 1}], [], None):
        wrong = pa.Table.from_pylist([{"id": 1, "tags": tags}, rows[1]], schema)
        found = differences(wrong, right, key=("id",), is_aggregate=True)
        assert found is not None and found.changed == 1


def test_examples_hold_both_rows_and_are_few() -> None:
    found = differences(_table(_with(1, price=8.0)), _table(_ROWS), key=("id",), is_aggregate=True)
    assert found is not None
    assert [(dict(each.view or {}), dict(each.expected or {})) for each in found.examples] == [
        ({**_ROWS[1], "price": 8.0}, _ROWS[1])
    ]
    many = pa.Table.from_pylist([{"id": i, "name": "", "price": 0.0} for i in range(1000)], _SCHEMA)
    found = differences(many, many.slice(0, 0), key=("id",), is_aggregate=True)
    assert found is not None and (found.extra, len(found.examples)) == (1000, 5)


@pytest.mark.parametrize("mode", _MODES)
def test_times_in_far_years_are_compared(mode: str) -> None:
    """Python has no such times, and Arrow formats their years as 16-bit numbers."""
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("ats", pa.list_(pa.date32()))])

    def rows(*days: int) -> pa.Table:
        times = pa.array([day * 86_400_000_000 for day in days], pa.int64()).cast(schema.field("at").type)
        dates = pa.ListArray.from_arrays(range(len(days) + 1), pa.array(days, pa.int32()).cast(pa.date32()))
        return pa.table([pa.array(range(len(days))), times, dates], schema=schema)

    assert differences(rows(1, 23_956_986), rows(1, 23_956_986), **_MODES[mode]) is None
    found = differences(rows(1, 23_956_986), rows(1, 20_454), **_MODES[mode])
    assert found is not None
    assert (found.missing, found.extra, found.changed) == ((0, 0, 1) if mode == "keyed" else (1, 1, 0))


def test_zeros_within_arrays_are_equal_as_they_are_elsewhere() -> None:
    zeros = [pa.table({"x": [zero], "xs": [[zero, None]]}) for zero in (0.0, -0.0)]
    assert differences(*zeros, **_MODES["append"]) is None

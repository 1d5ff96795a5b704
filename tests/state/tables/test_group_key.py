"""Group keys: one readable text per group."""

from __future__ import annotations

import datetime
import decimal
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from state.errors import SchemaError
from state.tables.group_key import GLOBAL_KEY, group_keys, key_range

_texts = st.one_of(st.none(), st.text(alphabet="a|\\N", max_size=4))


@given(st.lists(st.tuples(_texts, _texts, _texts), min_size=1, max_size=30))
def test_different_groups_have_different_texts(rows: list[tuple[str | None, str | None, str | None]]) -> None:
    columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    keys = group_keys(columns).to_pylist()
    assert len(set(keys)) == len(set(rows))
    assert None not in keys


def test_texts_are_stable() -> None:
    moment = datetime.datetime(2013, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC)
    row = {
        pa.string(): ("a|b\\", "a\\|b\\\\"),
        pa.int32(): (-3, "-3"),
        pa.bool_(): (True, "true"),
        pa.float64(): (0.1, "0.1"),
        pa.decimal128(10, 2): (decimal.Decimal("1.50"), "1.50"),
        pa.date32(): (moment.date(), "2013-01-02"),
        pa.timestamp("us", "UTC"): (moment, "2013-01-02 03:04:05.000006Z"),
        pa.timestamp("us"): (moment.replace(tzinfo=None), "2013-01-02 03:04:05.000006"),
        pa.binary(): (b"\xff|", "ff7c"),
    }
    columns = [pa.array([value, None], data_type) for data_type, (value, _) in row.items()]
    assert group_keys(columns).to_pylist() == ["|".join(text for _, text in row.values()), "|".join(["\\N"] * len(row))]


def test_texts_of_far_times_are_stable() -> None:
    """Milliseconds that are read as seconds give such years."""
    day_us = 86_400 * 10**6
    times = [-719_162 * day_us - 1, -719_162 * day_us, 2_932_897 * day_us - 1, 2_932_897 * day_us, None]
    texts = ["@-62135596800000001", "0001-01-01 00:00:00.000000", "9999-12-31 23:59:59.999999", "@253402300800000000"]
    numbers = pa.array(times, pa.int64())
    assert group_keys([numbers.cast(pa.timestamp("us"))]).to_pylist() == [*texts, "\\N"]
    zoned = group_keys([numbers.cast(pa.timestamp("us", "Europe/Oslo"))]).to_pylist()
    assert zoned == [*(f"{text}Z" for text in texts), "\\N"]
    days = pa.array([-719_163, -719_162, 2_932_896, 2_932_897], pa.int32()).cast(pa.date32())
    assert group_keys([days]).to_pylist() == ["@-719163", "0001-01-01", "9999-12-31", "@2932897"]


def test_zeros_are_one_group_and_so_are_nans() -> None:
    assert group_keys([pa.array([0.0, -0.0])]).to_pylist() == ["0", "0"]
    assert len(set(group_keys([pa.array([float("nan"), -float("nan")])]).to_pylist())) == 1
    assert len(set(group_keys([pa.array([1.0, 1.0000000000000002])]).to_pylist())) == 2


def test_chunks_do_not_matter() -> None:
    chunked = pa.chunked_array([["a"], [], ["b", None]], pa.string())
    assert group_keys([chunked, chunked]).to_pylist() == ["a|a", "b|b", "\\N|\\N"]


def test_grouping_by_nothing_is_one_group() -> None:
    assert group_keys([]).to_pylist() == [GLOBAL_KEY]


def test_maps_cannot_name_a_group() -> None:
    """Spark does not group by them either."""
    for data_type in (pa.map_(pa.string(), pa.int64()), pa.list_(pa.map_(pa.string(), pa.int64())), pa.struct([])):
        with pytest.raises(SchemaError, match="cannot name a group"):
            group_keys([pa.array([None], data_type)])


def test_texts_of_structs_and_arrays_are_stable() -> None:
    pair, several = pa.struct([("a", pa.string()), ("b", pa.float64())]), pa.list_(pa.string())
    nested = pa.struct([("p", pair), ("l", several)])
    rows: dict[pa.DataType, list[Any]] = {
        pair: [{"a": "x|", "b": -0.0}, {"a": None, "b": float("nan")}, None],
        several: [["a", "b|", None], [], None],
        nested: [{"p": {"a": "x", "b": 1.0}, "l": ["y"]}, {"p": None, "l": []}, None],
    }
    texts = {
        pair: ["x\\\\\\|\\|0", "\\\\N\\|nan", "\\N"],
        several: ["a\\|b\\\\\\|\\|\\\\N\\|", "", "\\N"],
        nested: ["x\\\\\\|1\\|y\\\\\\|", "\\\\N\\|", "\\N"],
    }
    for data_type, values in rows.items():
        whole = pa.chunked_array([pa.array([None, *values], data_type).slice(1, 2), pa.array(values[2:], data_type)])
        assert group_keys([whole]).to_pylist() == texts[data_type]


_leaves: st.SearchStrategy[object] = st.one_of(st.none(), st.text(alphabet="a|\\N", max_size=2))
_several = st.one_of(st.none(), st.lists(_leaves, max_size=2))
_pairs = st.one_of(st.none(), st.fixed_dictionaries({"a": _leaves, "b": _several}))


@settings(deadline=None)
@given(st.lists(st.tuples(_pairs, _pairs), min_size=1, max_size=30))
def test_different_nested_groups_have_different_texts(rows: list[tuple[object, object]]) -> None:
    pair = pa.struct([("a", pa.string()), ("b", pa.list_(pa.string()))])
    keys = group_keys([pa.array(column, pair) for column in zip(*rows, strict=True)]).to_pylist()
    assert len(set(keys)) == len({json.dumps(row, sort_keys=True) for row in rows})


_values = st.one_of(
    st.tuples(st.just(pa.string()), st.lists(st.one_of(st.none(), st.text(alphabet="a|}\\N%_~é", max_size=3)))),
    st.tuples(st.just(pa.float64()), st.lists(st.sampled_from([None, 0.0, -0.0, float("nan"), 1.0, 1e300]))),
    st.tuples(st.just(pa.binary()), st.lists(st.sampled_from([None, b"", b"|", b"\\", b"a"]))),
    st.tuples(st.just(pa.int64()), st.lists(st.sampled_from([None, 0, -1, 1, 11]))),
)


@settings(deadline=None)
@given(st.lists(_values, min_size=2, max_size=4), st.data())
def test_groups_with_the_same_first_values_are_one_range(
    kinds: list[tuple[pa.DataType, list[object]]], data: st.DataObject
) -> None:
    types = [data_type for data_type, _ in kinds]
    rows = data.draw(st.lists(st.tuples(*(st.sampled_from(values or [None]) for _, values in kinds)), max_size=30))
    asked = data.draw(st.sampled_from(rows)) if rows else tuple(None for _ in kinds)
    length = data.draw(st.integers(1, len(types) - 1))
    start, end = key_range([pa.array([value], each) for value, each in zip(asked[:length], types, strict=False)])
    columns = [pa.array([row[at] for row in rows], each) for at, each in enumerate(types)]
    texts = group_keys(columns).to_pylist() if rows else []
    inside = [start.encode() <= text.encode() < end.encode() for text in texts]
    assert inside == [
        [_same_group(value) for value in row[:length]] == [*map(_same_group, asked[:length])] for row in rows
    ]


def _same_group(value: object) -> object:
    """A value as Spark's grouping compares it: zeros are equal, and so are NaNs."""
    return "nan" if value != value else value

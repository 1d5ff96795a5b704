"""The text of a group: one per group, and readable."""

from __future__ import annotations

import datetime
import decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.errors import SchemaError
from state.group_key import GLOBAL_KEY, group_keys

_texts = st.one_of(st.none(), st.text(alphabet="a|\\N", max_size=4))


@given(st.lists(st.tuples(_texts, _texts, _texts), min_size=1, max_size=30))
def test_different_groups_have_different_texts(rows: list[tuple[str | None, str | None, str | None]]) -> None:
    columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    keys = group_keys(columns).to_pylist()
    assert len(set(keys)) == len(set(rows))
    assert None not in keys


def test_texts_are_stable() -> None:
    moment = datetime.datetime(2013, 1, 2, 3, 4, 5, 6, tzinfo=datetime.timezone.utc)
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


def test_zeros_are_one_group_and_so_are_nans() -> None:
    assert group_keys([pa.array([0.0, -0.0])]).to_pylist() == ["0", "0"]
    assert len(set(group_keys([pa.array([float("nan"), -float("nan")])]).to_pylist())) == 1
    assert len(set(group_keys([pa.array([1.0, 1.0000000000000002])]).to_pylist())) == 2


def test_chunks_do_not_matter() -> None:
    chunked = pa.chunked_array([["a"], [], ["b", None]], pa.string())
    assert group_keys([chunked, chunked]).to_pylist() == ["a|a", "b|b", "\\N|\\N"]


def test_grouping_by_nothing_is_one_group() -> None:
    assert group_keys([]).to_pylist() == [GLOBAL_KEY]


def test_nested_values_cannot_name_a_group() -> None:
    with pytest.raises(SchemaError, match="list<"):
        group_keys([pa.array([[1]])])

"""Texts, numbers and comparisons agree with the definition of equality, for all pairs of special values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from state.equality.row_identity import differ, exact, first_rows, kinds_of, row_texts
from state.equality.value_texts import Equality, value_texts
from state.tables.group_key import group_keys, is_group_type
from tests.special_values import MAPS, SPECIAL

ALL = {**SPECIAL, **MAPS}


def pairs(keys: Sequence[Any]) -> list[list[bool]]:
    """For each pair whether it is equal."""
    return [[left == right for right in keys] for left in keys]


@pytest.mark.parametrize("kind", ALL)
def test_identity_of_all_pairs(kind: str) -> None:
    special = ALL[kind]
    wanted = pairs(special.identity)
    count = len(special.identity)
    assert pairs(kinds_of(special.table()).tolist()) == wanted
    assert pairs(row_texts(special.table())) == wanted
    chunked = pa.chunked_array([special.values.slice(0, 2), special.values.slice(2)])
    assert pairs(kinds_of(pa.table([chunked], names=["v"])).tolist()) == wanted
    assert row_texts(pa.table([chunked], names=["v"])) == row_texts(special.table())
    left, right = (np.array(each).ravel() for each in np.meshgrid(range(count), range(count)))
    different = differ(special.values.take(pa.array(left)), special.values.take(pa.array(right)))
    assert different.to_pylist() == [not equal for row in wanted for equal in row]
    for at in range(count):
        same = pc.is_in(exact(special.values), value_set=exact(special.values.slice(at, 1)))
        assert same.to_pylist() == wanted[at]


@pytest.mark.parametrize("kind", SPECIAL)
def test_sql_equality_of_all_pairs(kind: str) -> None:
    special = SPECIAL[kind]
    assert is_group_type(special.values.type)
    wanted = pairs(special.sql)
    keys = group_keys([special.values]).to_pylist()
    assert pairs(keys) == wanted
    sliced = pa.concat_arrays([special.values.slice(3), special.values.slice(0, 3)]).slice(1)
    if not pa.types.is_nested(special.values.type):
        assert group_keys([special.values.dictionary_encode()]).to_pylist() == keys
    assert group_keys([sliced]).to_pylist() == [*keys[3:], *keys[:3]][1:]


@pytest.mark.parametrize("kind", MAPS)
def test_maps_name_no_group(kind: str) -> None:
    assert not is_group_type(MAPS[kind].values.type)


def test_identical_values_are_equal_in_sql() -> None:
    for special in SPECIAL.values():
        for sql, identity in zip(pairs(special.sql), pairs(special.identity), strict=True):
            assert all(equal or not identical for equal, identical in zip(sql, identity, strict=True))


def test_rows_of_many_columns_have_kinds_by_all_of_them() -> None:
    """The product of the numbers of values of the columns exceeds 64 bits."""
    chance = np.random.default_rng(1)
    columns = [pa.array(chance.permutation(1_000)) for _ in range(8)]
    rows = pa.table([*columns, pa.array([0.0] * 1_000)], names=[f"c{at}" for at in range(9)])
    other = rows.set_column(8, "c8", [pa.array([-0.0] + [0.0] * 999)])
    kinds = kinds_of(pa.concat_tables([rows, other]))
    assert kinds[:1_000].tolist() == [*range(1_000)]
    assert kinds[1_000:].tolist() == [1_000, *range(1, 1_000)]
    assert first_rows(kinds).tolist() == [*range(1_001)]


def test_rows_without_columns_or_rows() -> None:
    assert kinds_of(pa.table({"v": pa.array([], pa.float64())})).tolist() == []
    assert row_texts(pa.table({"v": pa.array([], pa.float64())})) == []
    for special in ALL.values():
        empty = special.values.slice(0, 0)
        assert len(value_texts(empty, Equality.SQL)) == 0
        assert kinds_of(pa.table([pa.chunked_array([], empty.type)], names=["v"])).tolist() == []


def test_fields_without_nulls_within_null_structs() -> None:
    """Arrow stores a null below each null struct, and its casts refuse that."""
    point = pa.struct([pa.field("x", pa.int64(), nullable=False)])
    for kind, values in (
        (point, [None, {"x": 1}, {"x": 2}]),
        (pa.list_(point), [None, [], [None], [{"x": 1}]]),
        (pa.map_(pa.string(), point), [None, [], [("a", None)], [("a", {"x": 1})]]),
        (pa.struct([("p", point)]), [None, {"p": None}, {"p": {"x": 1}}]),
    ):
        column = pa.array([values[0], *values, *values], kind).slice(1)
        assert kinds_of(pa.table({"v": column})).tolist() == [*range(len(values)), *range(len(values))]

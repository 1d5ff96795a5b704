"""Rows under another schema keep every value: nulls at each level of a nested type, slices, and far years."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from state.equality.exact_rows import exact_rows, with_nulls
from state.errors import SchemaError

_POINT = pa.struct([pa.field("x", pa.int64(), nullable=False), ("y", pa.string())])
_TAGGED = pa.struct(
    [
        pa.field("point", _POINT, nullable=False),
        pa.field("sizes", pa.list_(pa.int32()), nullable=False),
        pa.field("at", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("price", pa.decimal128(9, 2), nullable=False),
    ]
)
_AT = {"point": {"x": 1, "y": None}, "sizes": [], "at": 0, "price": 1}
SHAPES = [
    (pa.list_(_POINT), [[{"x": 1, "y": None}], None, [], [None, {"x": 2, "y": "b"}]]),
    (pa.list_(pa.list_(_POINT)), [[[{"x": 1, "y": None}], None, []], None, []]),
    (pa.map_(pa.string(), _POINT), [[("a", {"x": 1, "y": None}), ("b", None)], None, []]),
    (pa.map_(pa.string(), pa.list_(_POINT)), [[("a", None), ("b", [])], None, [("c", [None])]]),
    (pa.list_(pa.map_(pa.string(), pa.int64())), [[None, [("a", None)]], None, []]),
    (
        pa.struct([("in", _POINT), ("list", pa.list_(_POINT))]),
        [None, {"in": None, "list": None}, {"in": None, "list": []}],
    ),
    (_TAGGED, [None, _AT, None]),
    (pa.large_list(_POINT), [None, [], [None]]),
]


@pytest.mark.parametrize(("kind", "values"), SHAPES, ids=lambda each: str(each)[:30])
def test_nulls_stay_at_every_level_also_in_a_slice_and_in_a_parquet_file(
    kind: pa.DataType, values: list[Any], tmp_path: Any
) -> None:
    array = pa.array([*values, *values], kind)
    for begin in range(len(values)):
        rows = pa.table({"v": array.slice(begin, len(values))})
        exact = exact_rows(rows, rows.schema)
        assert exact["v"].to_pylist() == rows["v"].to_pylist()
        pq.write_table(exact, tmp_path / "rows.parquet")
        assert pq.read_table(tmp_path / "rows.parquet")["v"].to_pylist() == rows["v"].to_pylist()


def test_a_value_below_a_null_is_not_among_the_entries() -> None:
    hidden = pa.ListArray.from_arrays(pa.array([0, 2, 3]), pa.array([1, 2, 3]), mask=pa.array([True, False]))
    rows = pa.table({"v": hidden})
    assert exact_rows(rows, rows.schema)["v"].to_pylist() == [None, [3]]


def test_columns_take_the_order_and_the_types_of_the_schema() -> None:
    rows = pa.table({"a": pa.array([1, None], pa.int8()), "b": ["x", ""]})
    wanted = pa.schema([pa.field("b", pa.large_string(), nullable=False), ("a", pa.int32())])
    exact = exact_rows(rows, wanted)
    assert exact.schema == wanted and exact.to_pylist() == [{"b": "x", "a": 1}, {"b": "", "a": None}]


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (pa.field("v", pa.int64(), nullable=False), None, "v has a null, and must have none"),
        (pa.field("v", pa.int8()), 1_000, "not in range"),
        (pa.field("v", pa.list_(pa.field("element", pa.int64(), nullable=False))), [None], "element has a null"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_its_column(kind: pa.Field, value: Any, message: str) -> None:
    rows = pa.table({"v": pa.array([value], pa.list_(pa.int64()) if isinstance(value, list) else pa.int64())})
    with pytest.raises(SchemaError, match=f"column 'v' cannot be written as .*{message}"):
        exact_rows(rows, pa.schema([kind]))
    assert exact_rows(rows, with_nulls(rows.schema)).to_pylist() == [{"v": value}]

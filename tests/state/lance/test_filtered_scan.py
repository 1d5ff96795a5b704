"""Tests of scans with a condition: the other columns have any type."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from state.lance.filtered_scan import filtered_scan
from state.location import Location

_STRUCT = pa.struct([("f", pa.int64())])
_OTHERS = {
    "map": (pa.map_(pa.string(), pa.int64()), [("x", 1)]),
    "map of structs": (pa.map_(pa.string(), _STRUCT), [("x", {"f": 1})]),
    "map of arrays of structs": (pa.map_(pa.string(), pa.list_(_STRUCT)), [("x", [{"f": 1}])]),
    "array of maps of structs": (pa.list_(pa.map_(pa.string(), _STRUCT)), [[("x", {"f": 1})]]),
    "struct with a map of structs": (pa.struct([("m", pa.map_(pa.string(), _STRUCT))]), {"m": [("x", {"f": 1})]}),
    "struct": (_STRUCT, {"f": 1}),
    "duration": (pa.duration("us"), 1),
    "vector": (pa.list_(pa.float32(), 2), [1.0, 2.0]),
}


@pytest.mark.parametrize("other", _OTHERS)
def test_a_condition_works_beside_a_column_of_any_type(tmp_path: Path, other: str) -> None:
    data_type, value = _OTHERS[other]
    rows = pa.table({"before": pa.array([value, None, value], data_type), "k": ["a", "b", "c"], "n": [1, 2, 3]})
    dataset = lance.write_dataset(rows, Location(str(tmp_path / "rows.lance")).lance_uri)
    dataset.create_scalar_index("k", "BTREE")
    condition = pc.field("k").isin(["b", "c"]) & (pc.field("n") > 2)
    assert filtered_scan(dataset, condition).to_table() == rows.slice(2)
    scan = filtered_scan(dataset, condition, ["n"], limit=5, offset=None, with_row_address=True)
    assert scan.to_table().to_pydict() == {"n": [3], "_rowaddr": [2]}
    assert "ScalarIndexQuery" in scan.explain_plan()


def test_a_condition_may_use_a_nested_column(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "s": pa.array([{"f": 1}, None, {"f": 3}], _STRUCT),
            "m": pa.array([[("x", {"f": 1})]] * 3, _OTHERS["map of structs"][0]),
        }
    )
    dataset = lance.write_dataset(rows, Location(str(tmp_path / "rows.lance")).lance_uri)
    assert filtered_scan(dataset, pc.field("s").is_null(), ["s"]).to_table().to_pylist() == [{"s": None}]
    assert filtered_scan(dataset, "s.f > 1", ["s"]).to_table().to_pylist() == [{"s": {"f": 3}}]
    assert filtered_scan(dataset, None, ["s"]).to_table().num_rows == 3

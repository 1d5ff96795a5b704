"""The condition on wanted values passes every row whose value is equal in SQL."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from spark_bridge.ingest.dataset_frame import WantedRows
from state.tables.group_key import group_keys
from tests.special_values import SPECIAL

PLAIN = [name for name, special in SPECIAL.items() if not pa.types.is_nested(special.values.type)]


@pytest.mark.parametrize("kind", PLAIN)
def test_rows_with_equal_values_pass(tmp_path: Path, kind: str) -> None:
    """A group that is computed again from its rows would else lack some of them."""
    values = SPECIAL[kind].values
    numbers = pa.array(range(len(values)), pa.int64())
    dataset = lance.write_dataset(pa.table({"v": values, "id": numbers}), tmp_path / "rows.lance")
    keys = group_keys([values]).to_pylist()
    for at, key in enumerate(keys):
        condition = WantedRows(values={"v": values.slice(at, 1)}).condition(dataset.schema)
        found = dataset.to_table(columns=["id"], filter=condition)["id"].to_pylist()
        assert {*found} >= {other for other, each in enumerate(keys) if each == key}
        others = pa.concat_arrays([values.slice(at, 1), values.slice((at + 2) % len(values), 1)])
        condition = WantedRows(values={"v": others}).condition(dataset.schema)
        found = dataset.to_table(columns=["id"], filter=condition)["id"].to_pylist()
        assert {*found} >= {other for other, each in enumerate(keys) if each in group_keys([others]).to_pylist()}


def test_a_condition_has_the_columns_with_the_fewest_values() -> None:
    """Arrow needs twice the time for each further column: an aggregation by twenty columns took minutes."""
    values = {f"c{number:02}": pa.array(range(20 - number), pa.int64()) for number in range(20)}
    schema = pa.schema([(name, pa.int64()) for name in values])
    text = str(WantedRows(values=values).condition(schema))
    assert [name for name in values if f"is_in({name}," in text] == [f"c{number}" for number in range(14, 20)]

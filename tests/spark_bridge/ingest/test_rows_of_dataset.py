"""The rows of a dataset are the same, read by this process or by Spark's tasks."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_bridge.ingest import dataset_frame
from spark_bridge.ingest.dataset_frame import WantedRows, rows_of_dataset
from state.location import Location

_ROWS = pa.table({"k": ["a", "b", None, "a", "c"], "v": range(5)})


@pytest.mark.parametrize("at_once_bytes", [dataset_frame.AT_ONCE_BYTES, 20, 0])
@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        (WantedRows(), [0, 1, 2, 3, 4]),
        (WantedRows(values={"k": pa.array(["a", None])}), [0, 2, 3]),
        (WantedRows(fragments=[1]), [3, 4]),
    ],
    ids=["all", "some", "of a fragment"],
)
def test_rows_are_the_same_read_here_or_by_tasks(
    local_spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    wanted: WantedRows,
    numbers: list[int],
    at_once_bytes: int,
) -> None:
    location = Location(str(tmp_path / "rows.lance"))
    dataset = lance.write_dataset(_ROWS, location.lance_uri, max_rows_per_file=3)
    monkeypatch.setattr(dataset_frame, "AT_ONCE_BYTES", at_once_bytes)
    rows, most = rows_of_dataset(local_spark, location, dataset, ["v", "k"], wanted)
    assert (rows.few is not None) == (at_once_bytes > 20)
    assert most >= len(numbers)
    found = sorted((row["v"], row["k"]) for row in rows.frame.collect())
    assert found == [(number, _ROWS["k"][number].as_py()) for number in numbers]

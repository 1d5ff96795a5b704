"""Arrow tables as DataFrames: no row is lost, however the table is cut into chunks."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_bridge.catalyst.arrow_frames import frame_of_table, table_of_frame

FEW, MANY = 3, 50_000


@pytest.mark.parametrize("rows", [FEW, MANY])
@pytest.mark.parametrize("empty_at", [0, 1, 2])
def test_an_empty_chunk_ends_nothing(local_spark: SparkSession, rows: int, empty_at: int) -> None:
    chunks = [pa.table({"n": range(rows), "text": ["a"] * rows}) for _ in range(2)]
    chunks.insert(empty_at, chunks[0].slice(0, 0))
    table = pa.concat_tables(chunks)
    assert 0 in [len(chunk) for chunk in table.column("n").chunks]
    read = table_of_frame(frame_of_table(local_spark, table), table.schema)
    assert sorted(read["n"].to_pylist()) == sorted(table["n"].to_pylist())

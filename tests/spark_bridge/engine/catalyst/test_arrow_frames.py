"""Arrow tables as DataFrames: no row is lost, however the table is cut into chunks."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from spark_bridge.engine.catalyst.arrow_frames import frame_of_table, table_of_frame

FEW, MANY, LARGE = 3, 50_000, 1_000_000
"""Rows of a chunk: for one call, for a file with chunks put together, and for a file with the chunks as they are."""


@pytest.mark.more_after(2)
@pytest.mark.parametrize("rows", [FEW, MANY, LARGE])
@pytest.mark.parametrize("empty_at", [0, 1, 2])
def test_an_empty_chunk_ends_nothing(local_spark: SparkSession, rows: int, empty_at: int) -> None:
    chunks = [pa.table({"n": range(rows), "text": ["a"] * rows}) for _ in range(2)]
    chunks.insert(empty_at, chunks[0].slice(0, 0))
    table = pa.concat_tables(chunks)
    assert 0 in [len(chunk) for chunk in table.column("n").chunks]
    read = table_of_frame(frame_of_table(local_spark, table), table.schema)
    assert (read.num_rows, pc.sum(read["n"])) == (table.num_rows, pc.sum(table["n"]))

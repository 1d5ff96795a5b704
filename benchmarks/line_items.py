"""Line items in the manner of TPC-H: orders that come one after the other, and lines of older ones now and then."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

QUERY = (
    "SELECT l_orderkey, count(*) AS lines, sum(l_quantity) AS quantity, "
    "sum(l_extendedprice * (1 - l_discount)) AS revenue, max(l_shipdate) AS last_ship "
    "FROM lineitem GROUP BY l_orderkey"
)
SCHEMA = (
    "l_orderkey bigint, l_partkey bigint, l_quantity double, l_extendedprice double, l_discount double, l_shipdate int"
)
_LINES_OF_AN_ORDER = 4
_LATE = 0.1


def write_line_items(directory: Path, files: int, rows: int) -> None:
    """Writes Parquet files of `rows` lines; one line of ten belongs to any order before, the others to new ones."""
    rng = np.random.default_rng(0)
    directory.mkdir(parents=True)
    for number in range(files):
        new = (number * rows + np.arange(rows)) // _LINES_OF_AN_ORDER
        older = rng.integers(0, max(1, number * rows // _LINES_OF_AN_ORDER), rows)
        prices = rng.integers(90_000, 10_000_000, rows) / 100
        table = pa.table(
            {
                "l_orderkey": np.where(rng.random(rows) < _LATE, older, new),
                "l_partkey": rng.integers(0, 200_000, rows),
                "l_quantity": rng.integers(1, 51, rows).astype(np.float64),
                "l_extendedprice": prices,
                "l_discount": rng.integers(0, 11, rows) / 100,
                "l_shipdate": rng.integers(8_000, 10_500, rows).astype(np.int32),
            }
        )
        pq.write_table(table, directory / f"{number:05}.parquet")

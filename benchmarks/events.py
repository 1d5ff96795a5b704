"""Data of the benchmarks: small files of events."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

QUERY = "SELECT user, count(*) AS n, sum(amount) AS total FROM events GROUP BY user"


def event_files(count: int, rows: int, users: int = 1_000) -> Iterator[bytes]:
    """`count` Parquet files of `rows` events each; the same every time."""
    rng = random.Random(0)
    for _ in range(count):
        table = pa.table(
            {
                "user": pa.array([rng.randrange(users) for _ in range(rows)], pa.int64()),
                "amount": pa.array([rng.random() for _ in range(rows)], pa.float64()),
                "kind": pa.array([rng.choice(("view", "click", "buy")) for _ in range(rows)], pa.string()),
            }
        )
        sink = io.BytesIO()
        pq.write_table(table, sink)
        yield sink.getvalue()


def as_csv(file: bytes) -> bytes:
    """The same rows, for those who read no Parquet."""
    sink = io.BytesIO()
    arrow_csv.write_csv(pq.read_table(io.BytesIO(file)), sink)
    return sink.getvalue()

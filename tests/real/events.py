"""Files of events, views over them, and a writer whose files appear whole."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

VIEWS = {
    "totals": "SELECT user, count(*) AS n, sum(amount) AS total, max(amount) AS most, count(DISTINCT amount) AS d "
    "FROM events GROUP BY user",
    "busy": "SELECT user, min(amount) AS least FROM events GROUP BY user HAVING count(*) > 4",
    "large": "SELECT user, amount * 2 AS twice FROM events WHERE amount >= 100",
}
"""Groups that change, groups that leave, and rows."""


def parquet(rows: list[dict[str, Any]], row_group_size: int = 1_000) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink, row_group_size=row_group_size)
    return sink.getvalue()


def events(start: int, count: int = 10) -> list[dict[str, Any]]:
    return [{"user": number % 3, "amount": float(number)} for number in range(start, start + count)]


def write(directory: Path, name: str, content: bytes) -> None:
    """As a careful writer does: the file appears whole."""
    directory.mkdir(parents=True, exist_ok=True)
    part = directory / f".{name}.part"
    part.write_bytes(content)
    part.rename(directory / name)

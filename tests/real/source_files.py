"""Rows as the content of a file, in each format."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq


def encoded(kind: str, rows: list[dict[str, object]]) -> bytes:
    """The rows as `parquet` (with small row groups), `csv` or `json`."""
    if kind == "json":
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    if kind == "csv":
        lines: list[list[object]] = [[*rows[0]], *([*row.values()] for row in rows)]
        return "".join(",".join(map(str, line)) + "\n" for line in lines).encode()
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink, row_group_size=16)
    return sink.getvalue()

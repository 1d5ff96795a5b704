"""The rows of materialized sources, in whole runs."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slackwater as sw
from slackwater.testing.servers.s3_server import S3Server
from slackwater.verification.verification import Outcome
from tests.real.events import parquet, write

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("session")]

FAST = sw.Listing(interval_s=0.1)


def stored(store: sw.Store, source: str) -> list[dict[str, Any]]:
    rows = store.snapshot().rows(source).lance().to_table().drop_columns(["__sw_version"]).to_pylist()
    return sorted(rows, key=lambda row: (row["__sw_path"], row["__sw_row"]))


def of_file(path: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of a file as they should be stored."""
    return [{"__sw_path": path, "__sw_row": at, **row} for at, row in enumerate(rows)]


@pytest.mark.more
def test_every_column_of_every_row_is_stored_while_the_views_use_few(s3: S3Server, bucket: str) -> None:
    files = {
        f"day={number % 3}/{number:02}.parquet": [
            {"user": row % 5, "note": f"{number}-{row}", "tags": [f"t{row}", None], "at": {"x": row, "y": None}}
            for row in range(number)
        ]
        for number in range(1, 24)
    }
    types = pa.schema(
        [
            ("user", pa.int64()),
            ("note", pa.string()),
            ("tags", pa.list_(pa.string())),
            ("at", pa.struct([("x", pa.int64()), ("y", pa.float64())])),
        ]
    )
    for path, rows in files.items():
        s3.put(bucket, f"in/{path}", parquet(rows))
    s3.put(bucket, "in/day=0/empty.parquet", parquet([{"user": 1, "note": ""}]).replace(b"PAR1", b"BAD1"))
    pipeline = sw.Pipeline(
        "stored",
        f"s3://{bucket}/root",
        storage_options=s3.storage_options,
        settings=sw.Settings(fetch=sw.settings.FetchSettings(num_fetchers=2, piece_bytes=1024, max_files_per_epoch=8)),
    )
    schema = pa.schema([*types, ("day", pa.int64())])
    pipeline.source(
        "t", f"s3://{bucket}/in", format="parquet", schema=schema, discovery=FAST, metadata=["row"], materialize=True
    )
    pipeline.view("totals", "SELECT user, count(*) AS n FROM t GROUP BY user")
    pipeline.run(until="caught_up")
    store = sw.open(pipeline.root.url, storage_options=s3.storage_options)
    expected = [
        {**row, "day": int(path[4]), "_row": row["__sw_row"]}
        for path, rows in sorted(files.items())
        for row in of_file(path, rows)
    ]
    assert stored(store, "t") == expected
    assert store.snapshot().rows("t").schema.names == [*schema.names, "_row"]
    outcomes = {check.view: check.outcome for check in sw.verify(store, engine="duckdb", follow_sources=True).views}
    assert outcomes["t.rows"] is Outcome.EQUAL
    counts = [rows.count_rows() for rows in _retained(store, "t")]
    assert len(set(counts)) > 2 and counts == sorted(counts), "several epochs have brought rows"

    pipeline.run(until="caught_up")
    assert stored(store, "t") == expected
    s3.put(bucket, "in/day=1/late.parquet", parquet(files["day=1/01.parquet"]))
    pipeline.run(until="caught_up")
    late = [{**row, "day": 1, "_row": 0} for row in of_file("day=1/late.parquet", files["day=1/01.parquet"])]
    assert stored(store, "t") == sorted([*expected, *late], key=lambda row: (row["__sw_path"], row["__sw_row"]))


def _retained(store: sw.Store, source: str) -> Iterator[sw.View]:
    """Yields the rows at each retained epoch that has any."""
    for epoch in store.epochs()["epoch"].to_pylist():
        with suppress(sw.errors.ViewNotFoundError):
            yield store.snapshot(epoch).rows(source)


@pytest.mark.more
def test_columns_that_come_bad_records_and_large_blocks_are_stored_exactly(tmp_path: Path) -> None:
    lines = [[{"k": number, "v": row} for row in range(6)] for number in range(4)]
    for number, rows in enumerate(lines):
        body: list[Any] = [{**row, "late": row["v"] / 2} if number % 2 else row for row in rows]
        body[3] = {"k": "none", "v": 0}
        write(tmp_path / "in", f"{number}.json", b"".join(json.dumps(row).encode() + b"\n" for row in body))
    write(tmp_path / "in", "bad.json", b'{"k": "none", "v": 1}\n{"k": 1\n')
    count = 14 << 20
    write(tmp_path / "large", "a.parquet", _numbers(count))
    pipeline = sw.Pipeline(
        "stored",
        tmp_path / "root",
        settings=sw.Settings(fetch=sw.settings.FetchSettings(piece_bytes=200 << 20, max_bytes_in_flight=64 << 20)),
    )
    pipeline.source(
        "t",
        tmp_path / "in",
        format="json",
        schema=sw.Schema("k bigint, v bigint", evolution="add_columns"),
        discovery=FAST,
        materialize=True,
    )
    pipeline.source("large", tmp_path / "large", format="parquet", discovery=FAST, materialize=True)
    pipeline.view("counts", "SELECT k, count(*) AS n FROM t GROUP BY k")
    pipeline.view("large_count", "SELECT count(*) AS n FROM large")
    pipeline.run(until="caught_up")
    store = sw.open(tmp_path / "root")
    expected = [
        {**row, "late": row["v"] / 2 if number % 2 else None}
        for number, rows in enumerate(lines)
        for row in of_file(f"{number}.json", rows)
        if row["__sw_row"] != 3
    ]
    assert stored(store, "t") == expected
    large = store.snapshot().rows("large").lance()
    assert large.count_rows() == large.count_rows("x = __sw_row") == count
    assert {
        check.view: check.outcome
        for check in sw.verify(store, engine="duckdb", follow_sources=True).views
        if "." in check.view
    } == {
        "t.rows": Outcome.EQUAL,
        "large.rows": Outcome.EQUAL,
    }


def _numbers(count: int) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": pa.array(range(count), pa.int64())}), sink)
    return sink.getvalue()

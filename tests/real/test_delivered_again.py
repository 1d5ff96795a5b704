"""Whole runs: a name that comes again with the same bytes after the run has deleted it."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

import slackwater as sw
from slackwater.testing.servers.s3_server import S3Server
from tests.real.event_pipeline import FAST
from tests.waiting import eventually

CONTENT = b"n\n1\n2\n"
TIME_NS = 1_700_000_000_000_000_000


def rows(root: str, options: dict[str, str] | None = None) -> list[int]:
    found: list[int] = sw.open(root, options).snapshot().view("v").to_arrow()["n"].to_pylist()
    return sorted(found)


@pytest.mark.more
@pytest.mark.ray
@pytest.mark.usefixtures("session")
def test_every_delivery_in_a_bucket_is_read_once(s3: S3Server, bucket: str) -> None:
    root = f"s3://{bucket}/root"

    def pipeline() -> sw.Pipeline:
        made = sw.Pipeline("p", root, storage_options=s3.storage_options)
        made.source(
            "daily",
            f"s3://{bucket}/in/",
            format="csv",
            schema="n bigint",
            discovery=FAST,
            on_change="append",
            after=sw.Delete(keep_s=0),
        )
        made.view("v", "SELECT n FROM daily")
        return made

    def is_read(deliveries: int) -> bool:
        return run.status().epoch > 0 and len(rows(root, s3.storage_options)) == 2 * deliveries

    def is_recorded(deliveries: int) -> bool:
        return is_deleted() and sw.open(root, s3.storage_options).ledger.handled_files().num_rows == deliveries

    def is_deleted() -> bool:
        return not s3.client().list_objects_v2(Bucket=bucket, Prefix="in/").get("Contents")

    s3.put(bucket, "in/daily.csv", CONTENT)
    with pipeline().start() as run:
        for delivery in range(1, 4):
            eventually(partial(is_read, delivery))
            eventually(partial(is_recorded, delivery))
            s3.put(bucket, "in/daily.csv", CONTENT)
        eventually(lambda: len(rows(root, s3.storage_options)) == 8)
        eventually(is_deleted)
    # The next run reads from the record which files the run before has deleted.
    s3.put(bucket, "in/daily.csv", CONTENT)
    pipeline().run(until="caught_up")
    pipeline().run(until="caught_up")
    assert rows(root, s3.storage_options) == [1] * 5 + [2] * 5
    store = sw.open(root, s3.storage_options)
    assert [(each["status"], each["rows_read"]) for each in store.ledger.files("daily").to_pylist()] == [
        ("done", 2)
    ] * 5


@pytest.mark.more
@pytest.mark.ray
@pytest.mark.usefixtures("session")
def test_a_local_file_that_returns_with_its_old_time_is_read(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    file = tmp_path / "in" / "daily.csv"

    def deliver() -> None:
        part = tmp_path / "in" / ".daily.part"
        part.write_bytes(CONTENT)
        os.utime(part, ns=(TIME_NS, TIME_NS))
        part.rename(file)

    pipeline = sw.Pipeline("p", tmp_path / "root")
    pipeline.source(
        "daily", tmp_path / "in", format="csv", schema="n bigint", discovery=FAST, on_change="append",
        after=sw.Delete(keep_s=0),
    )  # fmt: skip
    pipeline.view("v", "SELECT n FROM daily")
    for delivery in range(1, 4):
        deliver()
        pipeline.run(until="caught_up")
        assert rows(str(tmp_path / "root")) == [1] * delivery + [2] * delivery
        assert not file.exists()

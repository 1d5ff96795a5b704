"""The start of a run on a new root asks its store for the capabilities first."""

from __future__ import annotations

from pathlib import Path

import pytest

import slackwater as sw
from slackwater.testing.servers.s3_server import S3Server
from state.capabilities.store_record import read_record
from state.clock import SystemClock
from state.lance.lance_root import LanceRoot
from state.location import Location
from state.ownership.owner import Ownership


def pipeline(root: Location, source: Path) -> sw.Pipeline:
    pipeline = sw.Pipeline("p", root=root.url, storage_options=root.storage_options)
    source.mkdir(exist_ok=True)
    pipeline.source("s", source, format="csv", schema="n bigint")
    pipeline.view("v", "SELECT * FROM s")
    return pipeline


def keys(s3: S3Server, bucket: str) -> list[str]:
    return [each["Key"] for each in s3.client().list_objects_v2(Bucket=bucket).get("Contents", [])]


def test_a_run_on_a_store_without_conditional_writes_is_refused_and_leaves_nothing(
    s3: S3Server, bucket: str, tmp_path: Path
) -> None:
    root = Location(f"s3://{bucket}/root", s3.faithless_proxy(["If-None-Match"]).storage_options)
    with pytest.raises(sw.errors.StoreCapabilityError, match=r"lacks conditional creation .* nothing was written"):
        pipeline(root, tmp_path / "raw").start()
    assert keys(s3, bucket) == []


def test_a_run_on_an_existing_root_records_what_its_store_lacks_and_goes_on(
    s3: S3Server, bucket: str, tmp_path: Path
) -> None:
    root = Location(f"s3://{bucket}/root", s3.faithless_proxy(["If-None-Match"]).storage_options)
    LanceRoot(s3.location(bucket, "root"), SystemClock()).create_or_open().take_over("run-1")
    other = Ownership(root, SystemClock(), run_id="r", pipeline="p")
    other.acquire()
    try:
        with pytest.raises(sw.errors.OwnedError):  # the first step that follows
            pipeline(root, tmp_path / "raw").start()
    finally:
        other.release()
    record = read_record(root)
    assert record is not None and record.missing == ("conditional creation (If-None-Match: *)",)

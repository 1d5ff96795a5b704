"""A new published table is refused on a store whose commits cannot be relied on; nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import slackwater as sw
from slackwater.plugins.publish.declaration import declared
from slackwater.plugins.publish.publisher import Publisher
from slackwater.plugins.publish.start_check import check_publications
from slackwater.plugins.publish.targets import Target
from slackwater.testing.servers.s3_server import S3Server
from state.clock import SystemClock
from state.location import Location
from tests.slackwater.plugins.publish.growing_view import GrowingView, events


def delta(bucket: str, options: dict[str, str]) -> sw.Delta:
    return sw.Delta(f"s3://{bucket}/table", storage_options=options)


def parquet(bucket: str, options: dict[str, str]) -> sw.ParquetFiles:
    return sw.ParquetFiles(f"s3://{bucket}/table", storage_options=options)


def keys(s3: S3Server, bucket: str) -> list[str]:
    return [each["Key"] for each in s3.client().list_objects_v2(Bucket=bucket).get("Contents", [])]


@pytest.mark.more_after(1)
@pytest.mark.parametrize(
    ("target", "header", "capability"),
    [
        (delta, "If-None-Match", "conditional creation"),
        (parquet, "If-None-Match", "conditional creation"),
        (parquet, "If-Match", "conditional replacement"),
        (delta, "Range", "ranged reads"),
    ],
)
def test_a_new_table_on_a_store_without_a_capability_is_refused(
    s3: S3Server, bucket: str, tmp_path: Path, target: Callable[..., Target], header: str, capability: str
) -> None:
    growing = GrowingView(Location(str(tmp_path / "root")))
    growing.create(events(1))
    table = target(bucket, s3.faithless_proxy([header]).storage_options)
    with pytest.raises(
        sw.errors.StoreCapabilityError, match=rf"table s3://{bucket}/table: its store lacks {capability}"
    ):
        Publisher(growing.store, "v", table, SystemClock()).publish()
    with pytest.raises(sw.errors.StoreCapabilityError, match=capability):
        check_publications(growing.writer.root, [declared("v", table, growing.writer.root)], SystemClock())
    assert keys(s3, bucket) == []

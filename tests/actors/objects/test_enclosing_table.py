"""A source within a root or a table is found by the directories above it, on disks and in buckets."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.objects.object_store import ObjectStore
from actors.objects.source_pages import SourcePages
from slackwater.testing.servers.s3_server import S3Server
from state.location import Location
from state.places.marker import MARKER, Marker, write_marker

LOGS = {
    "_delta_log/00000000000000000000.json": "a Delta table",
    "metadata/v1.metadata.json": "an Iceberg table",
    "_versions/1.manifest": "a Lance dataset",
    "state.lance/_versions/1.manifest": "a root of Slackwater",
    ".hoodie/hoodie.properties": "a Hudi table",
}


def marker(location: Location) -> None:
    write_marker(location, Marker("table", "p", "s3://lake/root", "by_carrier", "0.1.0"))


@pytest.fixture(params=["disk", "bucket"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    if request.param == "disk":
        (tmp_path / "lake").mkdir()
        return Location(str(tmp_path / "lake"))
    s3: S3Server = request.getfixturevalue("s3")
    return Location(f"s3://{request.getfixturevalue('bucket')}/lake", s3.storage_options)


def put(location: Location, name: str, request: pytest.FixtureRequest) -> None:
    if location.is_local:
        file = location.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    else:
        s3: S3Server = request.getfixturevalue("s3")
        s3.put(location.host.url[5:], location.below_host + name, b"x")


def above(location: Location) -> str | None:
    return ObjectStore(location).enclosing_table()


@pytest.mark.more_after(1)
def test_a_marker_above_a_source_is_found(lake: Location) -> None:
    assert above(lake.child("t/data")) is None
    marker(lake.child("t"))
    words = "the published table of view by_carrier of s3://lake/root"
    for source in ("t/data", "t/data/day=1/deep"):
        assert above(lake.child(source)) == f"{words} ({lake.child('t')}/{MARKER})"
    assert above(lake.child("t")) is None, "its own listing shows it"
    assert above(lake.child("u/data")) is None
    assert above(lake) is None


@pytest.mark.more_after(9)
@pytest.mark.parametrize("log", LOGS)
def test_a_log_above_a_source_is_found(lake: Location, log: str, request: pytest.FixtureRequest) -> None:
    put(lake, f"t/{log}", request)
    found = above(lake.child("t/data/day=1"))
    assert found is not None and found == f"{LOGS[log]} ({lake.child('t')}/{log})"
    within = log.partition("/")[0]
    assert within == "state.lance" or above(lake.child(f"t/{within}")) is None, "a reader of the log means this table"


def test_a_directory_called_metadata_is_no_table(lake: Location, request: pytest.FixtureRequest) -> None:
    put(lake, "t/metadata/a.parquet", request)
    put(lake, "t/metadata/paper.metadata.json", request)
    assert above(lake.child("t/data")) is None


def test_a_page_names_the_table_that_a_link_leads_into(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("x")
    (tmp_path / "t" / "data").mkdir(parents=True)
    (tmp_path / "source").symlink_to(tmp_path / "in")
    marker(Location(str(tmp_path / "t")))
    pages = SourcePages(ObjectStore(Location(str(tmp_path / "source"))))

    def first() -> str | None:
        pages.begin()
        page = pages.read(8)
        assert page is not None
        return page.above

    assert first() is None
    (tmp_path / "source").unlink()
    (tmp_path / "source").symlink_to(tmp_path / "t" / "data")
    assert "the published table of view by_carrier" in (first() or "")
    (tmp_path / "source").unlink()
    (tmp_path / "source").symlink_to(tmp_path / "in")
    assert first() is None


def test_a_bucket_is_looked_at_once_and_again_while_a_table_is_found(s3: S3Server, bucket: str) -> None:
    lake = Location(f"s3://{bucket}/lake", s3.storage_options)
    s3.put(bucket, "lake/t/data/a.csv", b"x")
    log = s3.proxy()
    try:
        pages = SourcePages(ObjectStore(Location(f"s3://{bucket}/lake/t/data", log.storage_options)))

        def listed() -> tuple[str | None, int]:
            before = len(log.requests)
            pages.begin()
            page = pages.read(8)
            assert page is not None
            return page.above, len(log.requests) - before

        assert listed() == (None, 1 + 3 * 6), "the marker and five logs in each of three directories"
        assert listed() == (None, 1)
        marker(lake.child("t"))
        pages = SourcePages(ObjectStore(Location(f"s3://{bucket}/lake/t/data", log.storage_options)))
        assert listed()[0] is not None
        s3.client().delete_object(Bucket=bucket, Key=f"lake/t/{MARKER}")
        assert listed()[0] is None, "it was looked at again"
        assert listed() == (None, 1)
    finally:
        log.close()

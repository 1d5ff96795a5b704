"""The rows of a materialized source are read like a view, at any retained epoch, and are not called one."""

from __future__ import annotations

from pathlib import Path

import lance
import pytest

import slackwater as sw
from slackwater.testing.servers.s3_server import S3Server
from state.lance.lance_root import LanceRoot
from state.location import Location
from state.upkeep.housekeeping import Housekeeping
from state.upkeep.retention import RetentionSettings
from state.upkeep.tags import put_tag
from tests.slackwater.reading.stored_root import StoredRoot
from tests.slackwater.reading.written_root import RAW_SCHEMA, by_carrier


def made(root: Location, raw: Location) -> StoredRoot:
    """Four epochs: nothing, two rows, two more, and one of another file."""
    written = StoredRoot(root, raw)
    written.view("by_carrier", by_carrier({}))
    written.commit()
    written.ingest("a.csv", [0, 1], rows_read=2)
    written.ingest("a.csv", [2, 3], rows_read=4)
    written.ingest("b.csv", [0], rows_read=1)
    return written


@pytest.fixture(params=["local", "s3"])
def written(request: pytest.FixtureRequest, tmp_path: Path) -> StoredRoot:
    if request.param == "local":
        return made(Location(str(tmp_path / "a root% with")), Location(str(tmp_path / "raw")))
    server: S3Server = request.getfixturevalue("s3")
    place = f"s3://{request.getfixturevalue('bucket')}"
    return made(Location(f"{place}/root", server.storage_options), Location(f"{place}/raw", server.storage_options))


@pytest.fixture
def local(tmp_path: Path) -> StoredRoot:
    return made(Location(str(tmp_path / "root")), Location(str(tmp_path / "raw")))


def opened(written: StoredRoot) -> sw.Store:
    return sw.open(written.root.url, storage_options=dict(written.root.storage_options) or None)


def positions(snapshot: sw.Snapshot) -> list[tuple[str, int]]:
    rows = snapshot.rows("flights").lance().to_table()
    return sorted(zip(rows["__sw_path"].to_pylist(), rows["__sw_row"].to_pylist(), strict=True))


def test_rows_are_those_of_the_epoch_and_their_lineage_is_hidden(written: StoredRoot) -> None:
    store = opened(written)
    rows = store.snapshot(written.records[2].epoch).rows("flights")
    assert rows.schema == rows.to_arrow().schema == RAW_SCHEMA
    assert sorted(rows.to_arrow()["carrier"].to_pylist()) == ["c0", "c1", "c2", "c3"]
    assert positions(store.snapshot()) == [("a.csv", 0), ("a.csv", 1), ("a.csv", 2), ("a.csv", 3), ("b.csv", 0)]


def test_rows_are_no_view(local: StoredRoot) -> None:
    store = opened(local)
    snapshot = store.snapshot()
    assert snapshot.views == ("by_carrier",)
    with pytest.raises(sw.errors.ViewNotFoundError, match="the views are: by_carrier"):
        snapshot.view("flights.rows")
    assert store.views.table()["name"].to_pylist() == []
    assert {view["name"] for each in store.epochs()["views"].to_pylist() for view in each} == {"by_carrier"}


def test_rows_that_are_not_there_are_said_to_be(local: StoredRoot) -> None:
    store = opened(local)
    with pytest.raises(sw.errors.ViewNotFoundError, match="materialize=True"):
        store.snapshot(local.records[0].epoch).rows("flights")
    with pytest.raises(sw.errors.NotFoundError, match="the sources are: flights"):
        store.snapshot().rows("trains")


@pytest.mark.more_after(1)
def test_a_vacuum_leaves_tagged_and_retained_rows_and_takes_the_others(written: StoredRoot) -> None:
    put_tag(written.store, "audit", written.records[1].epoch)
    before = [opened(written).snapshot(record.epoch) for record in written.records]
    root = LanceRoot(written.root, written.clock)
    Housekeeping(root, written.clock, RetentionSettings(keep_s=0, keep_epochs=1)).run(written.store)
    store = opened(written)
    assert positions(store.snapshot("audit")) == [("a.csv", 0), ("a.csv", 1)]
    assert len(positions(store.snapshot())) == 5
    with pytest.raises(sw.errors.EpochExpiredError):
        before[2].rows("flights").to_arrow()
    written.ingest("c.csv", [0], rows_read=1)
    assert len(positions(opened(written).snapshot())) == 6


def test_a_plain_reader_finds_the_committed_rows_by_their_tag(local: StoredRoot) -> None:
    version = local.records[2].views["flights.rows"]
    LanceRoot(local.root, local.clock).tag_committed(version)
    dataset = lance.dataset(local.root.child(version.path).lance_uri, version="committed")
    assert dataset.count_rows() == 4

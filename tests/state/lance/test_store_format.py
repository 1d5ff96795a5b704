"""A store of format 1, written once, is read, taken over and continued by every later version."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import lance
import pytest

import slackwater as sw
from state.clock import ManualClock
from state.errors import RootMismatchError, SlackwaterError
from state.lance.lance_access import open_dataset
from state.lance.lance_root import LanceRoot
from state.lance.lance_store import LanceStateStore, dataset_location
from state.lance.store_format import check_format
from state.location import Location
from state.tables.catalog import Catalog
from state.tables.delta import DeltaBuilder
from state.tables.keys import encode_key
from state.tables.records import EpochCounts, EpochSeconds
from state.tables.tables import FORMAT_VERSION, TABLES
from state.vnode import vnode_of
from tests.state.lance.write_format_store import FILES, START, VERSION, write_store

CLOCK = ManualClock(START + timedelta(minutes=1))
EPOCHS = [115989597388800000, 115989597454336000, 115989597519872000]
VIEW = [
    [],
    [{"carrier": "AA", "n": 3}, {"carrier": "o'hare|1", "n": 1}],
    [{"carrier": "AA", "n": 903}, {"carrier": "o'hare|1", "n": 101}],
]
STATUSES = [["waiting", "waiting", "waiting"], ["done", "done", "waiting"], ["done", "done", "reading"]]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the store of format 1: a reader writes nothing, but a fault of a reader must not reach the original."""
    original = Path(__file__).parent / "stores" / "format-1"
    return Path(shutil.copytree(original, tmp_path_factory.mktemp("kept") / "root"))


@pytest.fixture
def root(kept: Path, tmp_path: Path) -> Location:
    """A copy to write to."""
    return Location(str(shutil.copytree(kept, tmp_path / "root")))


def latest(root: Location) -> lance.LanceDataset:
    return open_dataset(dataset_location(root))


def assert_first_epochs_are_readable(store: sw.Store) -> None:
    for epoch, rows, statuses in zip(EPOCHS, VIEW, STATUSES, strict=True):
        snapshot = store.snapshot(epoch=epoch)
        assert snapshot.view("by_carrier").to_arrow().to_pylist() == rows
        files = snapshot.files("flights").to_pylist()
        assert [file["path"] for file in files] == [f"s3://raw/flights/{path}" for path in FILES]
        assert [file["status"] for file in files] == statuses


def test_a_store_of_format_1_is_read(kept: Path) -> None:
    store = sw.open(str(kept))
    check_format(latest(Location(str(kept))).schema, Location(str(kept)))
    epochs = store.epochs().to_pylist()
    assert [(each["epoch"], each["term"], each["rows"], each["spark_s"]) for each in epochs] == [
        (EPOCHS[0], 1, 0, 1.0),
        (EPOCHS[1], 1, 4, 1.0),
        (EPOCHS[2], 1, 1_000, 1.0),
    ]
    assert_first_epochs_are_readable(store)
    assert store.tags() == {"monday": EPOCHS[1]}
    assert store.snapshot(epoch="monday").epoch == EPOCHS[1]
    *_, half_read = store.files("flights").to_pylist()
    assert (half_read["rows_read"], half_read["first_epoch"], half_read["last_modified"]) == (1_000, EPOCHS[2], START)
    [bad] = store.quarantine().to_pylist()
    assert (bad["row"], bad["raw"], bad["reason"], bad["epoch"]) == (2, b"x,y", "two fields", EPOCHS[1])
    [source] = store.sources().to_pylist()
    assert (source["schema"], source["listed_at"], source["left_out"][0]["column"]) == ("carrier string", START, "tail")
    [view] = store.views().to_pylist()
    assert (view["class"], view["key"], view["rows"]) == ("aggregate", ["carrier"], 2)
    assert [span.name for span in store.trace(EPOCHS[1]).spans if span.phase == "spark"] == ["by_carrier"]


def test_every_table_of_format_1_has_every_field(kept: Path) -> None:
    store = LanceStateStore.open(Location(str(kept)), CLOCK, read_only=True)
    for table, fields in TABLES.items():
        assert set(store.scan(table).schema.names) == {"key", "vnode", "epoch", *fields.names}
    catalog = Catalog.of(store.scan("catalog"))
    assert catalog.sources["flights"].declared_at == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert catalog.pipeline is not None and catalog.pipeline.name == "flights"


def test_a_store_of_format_1_is_taken_over_and_continued(root: Location) -> None:
    store = LanceStateStore.open(root, CLOCK)
    before = store.head
    store.take_over("run-2")
    restored = LanceRoot(root, CLOCK).restore(before.views["by_carrier"], store.head.term)
    delta = DeltaBuilder()
    delta.patch("queue", encode_key("flights", FILES[2], VERSION), vnode_of(FILES[2]), row_offset=2_000)
    epoch, counts = before.epoch + 1, EpochCounts(rows=1_000)
    views = {"by_carrier": restored}
    store.commit(epoch=epoch, delta=delta.build(), views=views, counts=counts, seconds=EpochSeconds())
    head = LanceStateStore.open(root, CLOCK).head
    assert (head.term, head.run, head.epoch, head.tags) == (before.term + 1, "run-2", epoch, {"monday": EPOCHS[1]})
    reader = sw.open(root.url)
    assert reader.epochs()["epoch"].to_pylist() == [*EPOCHS, epoch]
    assert [file["rows_read"] for file in reader.files("flights").to_pylist()] == [2, 3, 2_000]
    assert reader.snapshot().view("by_carrier").to_arrow().to_pylist() == VIEW[2]
    assert_first_epochs_are_readable(reader)


def test_this_version_writes_the_rows_of_format_1(kept: Path, tmp_path: Path) -> None:
    assert FORMAT_VERSION == 1, "a new format needs its own store in `stores`"
    fresh = Location(str(tmp_path))
    write_store(fresh)
    stored, written = (LanceStateStore.open(each, CLOCK) for each in (Location(str(kept)), fresh))
    assert stored.head == written.head
    for table in TABLES:
        assert stored.scan(table).sort_by("key").equals(written.scan(table).sort_by("key")), table


@pytest.mark.parametrize("found", [str(FORMAT_VERSION + 1), "0", None])
def test_a_store_of_another_format_is_refused_with_the_version_to_install(tmp_path: Path, found: str | None) -> None:
    root = Location(str(tmp_path))
    LanceStateStore.create(root, CLOCK)
    metadata = {"slackwater.format": found, "slackwater.version": "9.1.0"}
    given = {name: value for name, value in metadata.items() if value is not None}
    latest(root).update_schema_metadata(given, replace=True)
    shown = rf"has format {found or '.none.'} .*reads and writes format {FORMAT_VERSION}: install Slackwater 9\.1\.0"
    for read_only in (True, False):
        with pytest.raises(RootMismatchError, match=shown):
            LanceStateStore.open(root, CLOCK, read_only=read_only)
    with pytest.raises(SlackwaterError, match=r"9\.1\.0"):
        LanceStateStore.create_or_open(root, CLOCK)

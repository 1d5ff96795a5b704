"""The stored example of the present format is read and continued; roots of other formats are refused."""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import slackwater as sw
from state.clock import ManualClock
from state.errors import DamagedStoreError, RootMismatchError
from state.lance.branch_files import BranchFiles
from state.lance.lance_access import create_dataset, open_dataset
from state.lance.lance_root import LanceRoot
from state.lance.lance_store import LanceStateStore, dataset_location
from state.lance.store_format import check_format, stamped_schema
from state.location import Location
from state.tables.catalog import Catalog
from state.tables.delta import Delta, DeltaBuilder
from state.tables.keys import encode_key
from state.tables.records import EpochCounts, EpochSeconds
from state.tables.tables import FORMAT_VERSION, STATE_SCHEMA, TABLES
from state.upkeep.branches import branch_tag
from state.upkeep.tags import put_tag
from state.vnode import vnode_of
from tests.slackwater.cli.command import slackwater
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
    """A copy of the example: a reader writes nothing, but a fault of a reader must not reach the original."""
    original = Path(__file__).parent / "stores" / f"format-{FORMAT_VERSION}"
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


def test_the_example_of_this_format_is_read(kept: Path) -> None:
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
    *_, half_read = store.ledger.files("flights").to_pylist()
    assert (half_read["rows_read"], half_read["first_epoch"], half_read["last_modified"]) == (1_000, EPOCHS[2], START)
    [bad] = store.ledger.quarantine().to_pylist()
    assert (bad["row"], bad["raw"], bad["reason"], bad["epoch"]) == (2, b"x,y", "two fields", EPOCHS[1])
    [source] = store.ledger.sources().to_pylist()
    assert (source["schema"], source["listed_at"], source["left_out"][0]["column"]) == ("carrier string", START, "tail")
    [view] = store.views.table().to_pylist()
    assert (view["class"], view["key"], view["rows"]) == ("aggregate", ["carrier"], 2)
    assert [span.name for span in store.trace(EPOCHS[1]).spans if span.phase == "spark"] == ["by_carrier"]


def test_every_table_of_the_example_has_every_field(kept: Path) -> None:
    store = LanceStateStore.open(Location(str(kept)), CLOCK, read_only=True)
    for table, fields in TABLES.items():
        assert set(store.scan(table).schema.names) == {"key", "vnode", "epoch", *fields.names}
    catalog = Catalog.of(store.scan("catalog"))
    assert catalog.sources["flights"].declared_at == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert catalog.pipeline is not None and catalog.pipeline.name == "flights"


def test_the_example_is_taken_over_and_continued(root: Location) -> None:
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
    assert [file["rows_read"] for file in reader.ledger.files("flights").to_pylist()] == [2, 3, 2_000]
    assert reader.snapshot().view("by_carrier").to_arrow().to_pylist() == VIEW[2]
    assert_first_epochs_are_readable(reader)


def test_this_version_writes_the_rows_of_the_example(kept: Path, tmp_path: Path) -> None:
    schema = latest(Location(str(kept))).schema.remove_metadata()
    assert schema == STATE_SCHEMA, "write the example of this format again: tests/state/lance/write_format_store.py"
    fresh = Location(str(tmp_path))
    write_store(fresh)
    stored, written = (LanceStateStore.open(each, CLOCK) for each in (Location(str(kept)), fresh))
    assert stored.head == written.head
    for table in TABLES:
        assert stored.scan(table).sort_by("key").equals(written.scan(table).sort_by("key")), table


OWN = version("slackwater")


@pytest.mark.more_after(1)
@pytest.mark.parametrize(
    ("found", "shown"),
    [
        (
            str(FORMAT_VERSION - 1),
            rf"has format {FORMAT_VERSION - 1} and was written by Slackwater 9\.1\.0; this is Slackwater {OWN}, which "
            rf"reads and writes format {FORMAT_VERSION}: read the root with Slackwater 9\.1\.0, and give .*new",
        ),
        (
            str(FORMAT_VERSION + 1),
            rf"has format {FORMAT_VERSION + 1} and was written by Slackwater 9\.1\.0; this is Slackwater {OWN}, which "
            rf"reads and writes format {FORMAT_VERSION}: install Slackwater 9\.1\.0 or later",
        ),
        (None, rf"without a format number; this is Slackwater {OWN}, .* format {FORMAT_VERSION}: .*restore"),
        ("9" * 5_000, rf"without a format number; this is Slackwater {OWN}, .* format {FORMAT_VERSION}: .*restore"),
        ("-1", rf"without a format number; this is Slackwater {OWN}, .* format {FORMAT_VERSION}: .*restore"),
        ("two", rf"without a format number; this is Slackwater {OWN}, .* format {FORMAT_VERSION}: .*restore"),
    ],
)
def test_a_root_of_another_format_is_refused_with_both_versions_and_the_next_step(
    tmp_path: Path, found: str | None, shown: str
) -> None:
    root = Location(str(tmp_path / "root"))
    created = LanceStateStore.create(root, CLOCK)
    created.take_over("run-1")
    created.commit(epoch=7, delta=Delta(), views={}, counts=EpochCounts(), seconds=EpochSeconds())
    branch = BranchFiles(root, "try", CLOCK)
    put_tag(created, branch_tag("try"), 7)
    branch.make(7, Delta())
    metadata = {"slackwater.format": found, "slackwater.version": "9.1.0"}
    given = {name: value for name, value in metadata.items() if value is not None}
    for place in (root, branch.location):
        latest(place).update_schema_metadata(given, replace=True)
        before = files_of(place)
        for read_only in (True, False):
            with pytest.raises(RootMismatchError, match=shown):
                LanceStateStore.open(place, CLOCK, read_only=read_only)
        with pytest.raises(RootMismatchError, match=shown):
            LanceStateStore.create_or_open(place, CLOCK)
        with pytest.raises(RootMismatchError, match=shown):
            sw.open(place.url).epochs()
        assert files_of(place) == before, "a refusal writes nothing"


def files_of(root: Location) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in sorted(root.path.rglob("*")) if each.is_file()}


def test_a_root_that_lacks_a_field_of_its_format_is_refused(tmp_path: Path) -> None:
    fields = [each for each in stamped_schema() if each.name != "quarantine_row"]
    schema = pa.schema(fields, stamped_schema().metadata)
    create_dataset(dataset_location(Location(str(tmp_path))), schema.empty_table(), schema)
    with pytest.raises(RootMismatchError, match=rf"has format {FORMAT_VERSION} .* but the root lacks quarantine_row"):
        sw.open(str(tmp_path)).epochs()


def test_a_root_without_its_head_is_damaged(tmp_path: Path) -> None:
    root = Location(str(tmp_path))
    create_dataset(dataset_location(root), STATE_SCHEMA.empty_table(), stamped_schema())
    with pytest.raises(DamagedStoreError, match=rf"has format {FORMAT_VERSION}, but .* no head: .* from a copy"):
        LanceStateStore.open(root, CLOCK)


@pytest.mark.more_after(1)
@pytest.mark.parametrize(
    ("number", "step"),
    [
        (FORMAT_VERSION - 1, f"read the root with the build of Slackwater {OWN} that wrote it"),
        (FORMAT_VERSION + 1, f"install the build of Slackwater {OWN} that wrote it, or a later build"),
    ],
    ids=["older", "newer"],
)
def test_the_next_step_names_the_build_if_another_build_of_this_version_wrote_the_root(number: int, step: str) -> None:
    metadata = {"slackwater.format": str(number), "slackwater.version": OWN}
    with pytest.raises(RootMismatchError, match=re.escape(step)):
        check_format(stamped_schema().with_metadata(metadata), Location("/data/root"))


@pytest.mark.parametrize("arguments", [("status",), ("sql", "SELECT 1"), ("doctor", "--quick")])
def test_commands_refuse_a_root_of_another_format(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    root = Location(str(tmp_path / "root"))
    LanceStateStore.create(root, CLOCK)
    older = {"slackwater.format": str(FORMAT_VERSION - 1), "slackwater.version": "0.0.9"}
    latest(root).update_schema_metadata(older, replace=True)
    command, *more = arguments
    ended = slackwater(command, str(root), *more)
    shown = " ".join((ended.out + ended.err).split())
    assert ended.code != 0
    numbers = (f"format {FORMAT_VERSION - 1}", f"format {FORMAT_VERSION}")
    for part in (*numbers, "0.0.9", f"Slackwater {OWN}", "new root"):
        assert part in shown, shown

"""The stores that earlier versions have written are read, and upgraded by the next take-over."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import LanceOperation, Transaction
from lance.fragment import write_fragments

import slackwater as sw
from slackwater.testing.servers.s3_server import S3Server
from state.clock import ManualClock
from state.errors import (
    CommitRefusedError,
    FencedError,
    ProtocolError,
    RootMismatchError,
    SlackwaterError,
    StorageUnavailableError,
)
from state.lance.lance_access import lance_options, open_dataset
from state.lance.lance_store import LanceStateStore, dataset_location
from state.lance.store_format import check_format
from state.location import Location
from state.objects.object_client import object_client
from state.tables.catalog import Catalog
from state.tables.delta import Delta, DeltaBuilder
from state.tables.records import EpochCounts, EpochSeconds, Head
from state.tables.tables import FORMAT_VERSION, TABLES
from tests.slackwater.reading.told_root import QUEUE, handed_on, poisoned
from tests.slackwater.reading.written_root import START, write_root

CLOCK = ManualClock()
STORES = Path(__file__).parent / "stores"
FORMATS = sorted(int(path.name.removeprefix("format-")) for path in STORES.glob("format-*"))


def copied(format_version: int, tmp_path: Path) -> Location:
    return Location(str(shutil.copytree(STORES / f"format-{format_version}", tmp_path / "root")))


def content(root: Location) -> dict[str, Any]:
    """All that a reader is told, but for what only the place and the moment of writing decide."""
    store = sw.open(root.url, storage_options=dict(root.storage_options))
    epochs = store.epochs()["epoch"].to_pylist()
    return {
        "epochs": store.epochs().to_pylist(),
        "files": store.files("flights").to_pylist(),
        "views": [
            sorted(map(str, store.snapshot(epoch=epoch).view(view).to_arrow().to_pylist()))
            for epoch in epochs
            for view in ("by_carrier", "late")
        ],
        "files then": [store.snapshot(epoch=epoch).files("flights").to_pylist() for epoch in epochs],
    }


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What this version reads of a root that it has written itself."""
    root = Location(str(tmp_path_factory.mktemp("written")))
    write_root(root, Location("s3://raw/flights"))
    return content(root)


@pytest.fixture(params=["local", "s3"])
def old_root(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    """A store of format 1."""
    root = copied(1, tmp_path)
    if request.param == "local":
        return root
    server: S3Server = request.getfixturevalue("s3")
    remote = Location(f"s3://{request.getfixturevalue('bucket')}/root", server.storage_options)
    client = object_client(remote)
    for path in root.path.rglob("*"):
        if path.is_file():
            client.put(str(path.relative_to(root.path)), path.read_bytes())
    return remote


def latest(root: Location) -> lance.LanceDataset:
    return open_dataset(dataset_location(root))


def commit(store: LanceStateStore, delta: Delta) -> None:
    epoch = store.head.epoch + 1
    store.commit(epoch=epoch, delta=delta, views=store.head.views, counts=EpochCounts(), seconds=EpochSeconds())


def test_there_is_a_store_of_every_format() -> None:
    assert list(range(1, FORMAT_VERSION + 1)) == FORMATS


@pytest.mark.parametrize("format_version", FORMATS)
def test_a_reader_reads_every_format(format_version: int, tmp_path: Path, written: dict[str, Any]) -> None:
    root = copied(format_version, tmp_path)
    assert check_format(latest(root).schema, root) == format_version
    assert content(root) == written
    store = LanceStateStore.open(root, CLOCK, read_only=True)
    for table, fields in TABLES.items():
        assert {"key", "vnode", "epoch", *fields.names} == set(store.scan(table).column_names)


def test_the_take_over_upgrades_and_loses_nothing(old_root: Location, written: dict[str, Any]) -> None:
    before = latest(old_root)
    store = LanceStateStore.open(old_root, CLOCK)
    head = store.head
    with pytest.raises(ProtocolError, match="has format 1: take it over"):
        commit(store, Delta())
    assert store.take_over("ours") == Head(head.term + 1, head.epoch, head.views, "ours")
    assert latest(old_root).version == before.version + 1
    assert check_format(latest(old_root).schema, old_root) == FORMAT_VERSION
    assert content(old_root) == written
    delta = DeltaBuilder()
    delta.put("queue", b"after", 1, source="flights", path="after")
    commit(store, delta.build())
    fresh = LanceStateStore.open(old_root, CLOCK)
    assert fresh.head == store.head == Head(head.term + 1, head.epoch + 1, head.views, "ours")
    assert fresh.get("queue", b"after") == store.get("queue", b"after") is not None
    assert latest(old_root).count_rows("`table` = 'head'") == 1


@pytest.mark.parametrize("format_version", FORMATS)
def test_after_a_take_over_a_store_of_any_format_takes_what_is_new(
    format_version: int, tmp_path: Path, written: dict[str, Any]
) -> None:
    root = copied(format_version, tmp_path)
    (source,) = sw.open(root.url).sources().to_pylist()
    assert (source["listed_at"], source["queue"]) == (START, None)
    LanceStateStore.open(root, CLOCK).take_over("ours")
    assert check_format(latest(root).schema, root) == FORMAT_VERSION
    assert content(root) == written
    (source,) = sw.open(root.url).sources().to_pylist()
    assert (source["listed_at"], source["queue"]) == (START, None), "what was never said is not made up"
    handed_on(root)
    poisoned(root, ("m1", "{}"))
    (source,) = sw.open(root.url).sources().to_pylist()
    told = source["queue"]
    assert (told["url"], told["received"], told["poison"], told["found_by_listing"]) == (QUEUE, 40, 1, 2)
    assert sw.open(root.url).files("flights").to_pylist() == written["files"]


def test_a_program_of_format_1_finds_that_it_must_not_go_on(tmp_path: Path) -> None:
    root = copied(1, tmp_path)
    store = LanceStateStore.open(root, CLOCK)
    store.take_over()
    (pipeline,) = (row for row in store.rows("catalog") if row["kind"] == "pipeline")
    assert json.loads(pipeline["definition"]) == {"format_version": FORMAT_VERSION, "ansi": False}
    catalog = Catalog.of(store.scan("catalog"))
    assert catalog.pipeline is not None
    assert (catalog.pipeline.name, sorted(catalog.sources), sorted(catalog.views)) == (
        "flights",
        ["flights"],
        ["by_carrier", "late"],
    )


def test_of_many_who_upgrade_one_wins(old_root: Location) -> None:
    takers = [LanceStateStore.open(old_root, CLOCK) for _ in range(3)]
    takers[1].take_over("one")
    for loser in (takers[0], takers[2]):
        with pytest.raises(FencedError):
            loser.take_over("other")
    assert LanceStateStore.open(old_root, CLOCK).head.run == "one"


def test_what_a_program_of_format_1_has_in_flight_is_refused(old_root: Location) -> None:
    dataset = latest(old_root)
    head_id = max(fragment.fragment_id for fragment in dataset.get_fragments())
    rows = pa.table({"table": ["head"], "vnode": pa.array([0], pa.uint8()), "key": pa.array([b""], pa.binary())})
    update = LanceOperation.Update(removed_fragment_ids=[head_id], new_fragments=write_fragments(rows, dataset))
    in_flight = Transaction(dataset.version, update)
    store = LanceStateStore.open(old_root, CLOCK)
    store.take_over()
    with pytest.raises(OSError, match=r"conflict|incompatible"):
        lance.LanceDataset.commit(dataset, in_flight, max_retries=0)
    commit(store, Delta())


def test_a_commit_of_format_1_that_came_first_refuses_the_upgrade(old_root: Location) -> None:
    taker = LanceStateStore.open(old_root, CLOCK)
    dataset = latest(old_root)
    options = lance_options(old_root)
    rows = dataset.to_table(filter="`table` = 'queue'")
    new = write_fragments(rows, dataset_location(old_root).lance_uri, mode="append", storage_options=options)
    came_first = Transaction(dataset.version, LanceOperation.Update(removed_fragment_ids=[], new_fragments=new))
    lance.LanceDataset.commit(dataset, came_first, max_retries=0)
    with pytest.raises(CommitRefusedError, match="wrote nothing"):
        taker.take_over()
    assert check_format(latest(old_root).schema, old_root) == 1


@pytest.mark.parametrize("last_step", ["rows", "head", "commit"])
def test_an_upgrade_that_is_killed_leaves_the_store_as_it_was(
    last_step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: dict[str, Any]
) -> None:
    root = copied(1, tmp_path)
    steps = iter(["rows", "head"])
    real_write, real_commit = write_fragments, lance.LanceDataset.commit

    def write(*args: Any, **options: Any) -> Any:
        done = real_write(*args, **options)
        if next(steps) == last_step:
            raise OSError("killed")
        return done

    def cut_off(*args: Any, **options: Any) -> Any:
        monkeypatch.setattr(lance.LanceDataset, "commit", staticmethod(real_commit))
        raise OSError("killed")

    monkeypatch.setattr("state.lance.lance_store.write_fragments", write)
    if last_step == "commit":
        monkeypatch.setattr(lance.LanceDataset, "commit", staticmethod(cut_off))
    version = latest(root).version
    with pytest.raises((StorageUnavailableError, CommitRefusedError)):
        LanceStateStore.open(root, CLOCK).take_over()
    monkeypatch.undo()
    assert latest(root).version == version
    assert content(root) == written
    LanceStateStore.open(root, CLOCK).take_over()
    assert content(root) == written


def test_a_later_format_is_refused_with_the_version_that_is_needed(tmp_path: Path) -> None:
    root = Location(str(tmp_path))
    LanceStateStore.create(root, CLOCK)
    later = {"slackwater.format": str(FORMAT_VERSION + 1), "slackwater.version": "9.1.0"}
    latest(root).update_schema_metadata(later)
    for read_only in (True, False):
        with pytest.raises(RootMismatchError, match=rf"has format {FORMAT_VERSION + 1}.*written by Slackwater 9\.1\.0"):
            LanceStateStore.open(root, CLOCK, read_only=read_only)
    with pytest.raises(SlackwaterError, match=r"9\.1\.0"):
        LanceStateStore.create_or_open(root, CLOCK)

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from state.clock import ManualClock
from state.errors import CommitUnknownError, StorageFullError, StoreNotFoundError
from state.lance.dataset_files import DatasetFiles
from state.lance.lance_access import create_dataset, open_dataset
from state.lance.lance_root import LanceRoot
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.tables.delta import Delta
from state.tables.records import EpochCounts, EpochSeconds
from tests.cases import few

DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "footer alone": lambda content: content[-16:],
    "zeroes": lambda content: bytes(len(content)),
    "cut short": lambda content: content[:-1],
    "without its end": lambda content: content[: len(content) // 2],
    "without its first page": lambda content: bytes(4_096) + content[4_096:],
    "another file": lambda content: content + content[-16:],
}


def commit(store: LanceStateStore, epoch: int) -> None:
    store.commit(epoch=epoch, delta=Delta(), views={}, counts=EpochCounts(), seconds=EpochSeconds())


def root_with(place: Path, epochs: int) -> LanceRoot:
    root = LanceRoot(Location(str(place)), ManualClock())
    store = root.create_or_open()
    store.take_over()
    for epoch in range(1, epochs + 1):
        commit(store, epoch)
    return root


def manifest(place: Path, version: int) -> Path:
    return place / "state.lance" / "_versions" / f"{2**64 - 1 - version}.manifest"


@pytest.mark.more_after(1)
@pytest.mark.parametrize("damage", few(DAMAGE, "empty", "zeroes"))
def test_a_torn_newest_manifest_is_dropped_by_the_next_owner(damage: str, tmp_path: Path) -> None:
    root = root_with(tmp_path, epochs=60)
    newest = manifest(tmp_path, 62)
    assert newest.stat().st_size > 3 * 4_096
    newest.write_bytes(DAMAGE[damage](newest.read_bytes()))
    assert root.open(read_only=True).head.epoch == 59
    assert newest.exists(), "a reader changes nothing"
    store = root.create_or_open()
    assert (store.head.epoch, store.version) == (59, 61)
    assert Path(f"{newest}.torn").exists()
    store.take_over()
    commit(store, 60)
    assert [record.epoch for record in root.open(read_only=True).epochs()] == list(range(1, 61))


def test_an_older_manifest_is_never_dropped(tmp_path: Path) -> None:
    root = root_with(tmp_path, epochs=3)
    older = manifest(tmp_path, 4)
    older.write_bytes(b"")
    assert root.create_or_open().head.epoch == 3
    assert older.exists()


def test_a_store_whose_first_manifest_is_torn_was_never_there(tmp_path: Path) -> None:
    root = LanceRoot(Location(str(tmp_path)), ManualClock())
    LanceStateStore.create(root.location, root.clock)
    manifest(tmp_path, 1).write_bytes(b"")
    with pytest.raises(StoreNotFoundError, match="run a pipeline with this root"):
        root.open(read_only=True)
    store = root.create_or_open()
    store.take_over()
    commit(store, 1)


def test_only_torn_tags_are_dropped_by_the_next_owner(tmp_path: Path) -> None:
    root = root_with(tmp_path, epochs=1)
    tags = tmp_path / "state.lance" / "_refs" / "tags"
    tags.mkdir(parents=True, exist_ok=True)
    (tags / "torn.json").write_bytes(bytes(8))
    (tags / "notes.txt").write_bytes(b"of a user")
    (tmp_path / "notes.json").write_bytes(b"of a user")
    (tags / "linked.json").symlink_to(tmp_path / "notes.json")
    root.create_or_open()
    assert sorted(each.name for each in tags.iterdir()) == ["notes.txt"]
    assert (tmp_path / "notes.json").exists()


def test_manifests_of_many_fragments_with_an_index_are_whole(tmp_path: Path) -> None:
    location = Location(str(tmp_path / "v.lance"))
    create_dataset(location, pa.table({"key": [str(number) for number in range(100)]}))
    dataset = open_dataset(location)
    for number in range(40):
        dataset.insert(pa.table({"key": [f"new {number}"]}))
        dataset.create_scalar_index("key", "BTREE")
    files = DatasetFiles(location)
    assert dataset.version == 81 and all(files.is_whole(version) for version in range(1, 82))
    files.settle(acknowledged=1)
    assert open_dataset(location).version == 81


def test_a_disk_that_refuses_to_sync_acknowledges_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = root_with(tmp_path, epochs=1)
    store = root.create_or_open()
    store.take_over()

    def fails(number: int, on: str) -> None:
        def fsync(descriptor: int) -> None:
            if on in os.readlink(f"/proc/self/fd/{descriptor}"):
                raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "fsync", fsync)

    fails(errno.ENOSPC, "/data/")
    with pytest.raises(StorageFullError, match="make room"):
        commit(store, 2)
    assert root.open(read_only=True).head.epoch == 1
    fails(errno.EIO, ".manifest")
    with pytest.raises(CommitUnknownError, match="epoch 2 is committed, and may not survive a power cut"):
        commit(store, 2)
    fails(errno.EINVAL, "")  # a file system that cannot sync
    store = root.create_or_open()
    store.take_over()
    commit(store, 3)
    assert [record.epoch for record in root.open(read_only=True).epochs()] == [1, 2, 3]


def test_nothing_is_synced_when_the_process_alone_may_die(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    store = LanceRoot(Location(str(tmp_path), durability="process"), ManualClock()).create_or_open()
    store.take_over()
    commit(store, 1)
    assert synced == []


def test_an_owner_on_a_file_system_without_locks_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(fcntl, "flock", refuses)
    assert root_with(tmp_path, epochs=1).create_or_open().head.epoch == 1

"""The store on Lance: its files, simultaneous first starts, foreign writes, unreachable roots."""

from __future__ import annotations

import signal
import threading
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from slackwater.testing.servers.s3_server import S3Server
from state.clock import ManualClock
from state.errors import AccessDeniedError, BucketNotFoundError, CommitRefusedError, FencedError, ProtocolError
from state.lance.dataset_files import DatasetFiles
from state.lance.lance_access import create_dataset
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.tables.delta import Delta, DeltaBuilder
from state.tables.records import EpochCounts, EpochSeconds, Head

CLOCK = ManualClock()


def commit(store: LanceStateStore, epoch: int, delta: Delta | None = None) -> None:
    store.commit(epoch=epoch, delta=delta or Delta(), views={}, counts=EpochCounts(), seconds=EpochSeconds())


def data_files(root: Location) -> set[Path]:
    return set((root.path / "state.lance" / "data").iterdir())


def test_an_epoch_costs_two_files_and_one_commit_whatever_tables_it_changes(tmp_path: Path) -> None:
    root = Location(str(tmp_path))
    store = LanceStateStore.create(root, CLOCK)
    store.take_over()
    builder = DeltaBuilder()
    builder.put("queue", b"a", 1, path="a")
    builder.put("seen", b"0123456789abcdef", 1, version=b"12345678")
    builder.put("list_state", b"s", 0, source="s", pages=1)
    builder.put("ledger", b"a", 1, path="a", status="done")
    before, version = data_files(root), store.version
    commit(store, 1, builder.build())
    assert len(data_files(root) - before) == 2
    assert store.version == version + 1
    assert store.scan("seen").select(["key", "version"]).to_pylist() == [
        {"key": b"0123456789abcdef", "version": b"12345678"}
    ]


def test_the_hint_of_the_last_version_is_not_believed(tmp_path: Path) -> None:
    root = Location(str(tmp_path))
    store = LanceStateStore.create(root, CLOCK)
    store.take_over()
    hint = tmp_path / "state.lance" / "_versions" / "latest_version_hint.json"
    stale = hint.read_bytes()
    commit(store, 1)
    for content in (stale, b'{"version":99}', b""):
        hint.write_bytes(content)
        assert LanceStateStore.open(root, CLOCK).head == store.head


def test_the_head_is_one_row_after_any_number_of_commits(tmp_path: Path) -> None:
    root = Location(str(tmp_path))
    store = LanceStateStore.create(root, CLOCK)
    for epoch in range(1, 6):
        store.take_over()
        commit(store, epoch)
        assert lance.dataset(str(tmp_path / "state.lance")).count_rows("`table` = 'head'") == 1
        assert LanceStateStore.open(root, CLOCK).head == Head(epoch, epoch)


def test_a_writer_whose_version_another_owner_has_removed_before_it_was_synced_is_fenced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Location(str(tmp_path))
    frozen = LanceStateStore.create(root, CLOCK)
    frozen.take_over()
    sync = DatasetFiles.sync_version

    def late(files: DatasetFiles, version: int) -> None:
        monkeypatch.setattr(DatasetFiles, "sync_version", sync)
        taker = LanceStateStore.open(root, CLOCK)
        taker.take_over()
        lance.dataset(str(tmp_path / "state.lance")).cleanup_old_versions(older_than=timedelta(0))
        sync(files, version)

    monkeypatch.setattr(DatasetFiles, "sync_version", late)
    with pytest.raises(FencedError, match="this process stops; epoch 1 was committed before"):
        commit(frozen, 1)
    assert LanceStateStore.open(root, CLOCK).head == Head(2, 1)


def test_of_many_first_starts_at_once_all_get_the_same_store(tmp_path: Path) -> None:
    root = Location(str(tmp_path))
    stores: list[LanceStateStore] = []
    barrier = threading.Barrier(6)

    def start() -> None:
        barrier.wait()
        stores.append(LanceStateStore.create_or_open(root, CLOCK))

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stores) == 6
    winners = 0
    for store in stores:
        try:
            store.take_over()
            winners += 1
        except CommitRefusedError:
            raise AssertionError("a first start may lose the head only to a take-over") from None
        except Exception as error:
            assert "taken this root over" in str(error)
    assert winners == 1


def test_a_foreign_write_into_the_store_is_noticed(tmp_path: Path) -> None:
    store = LanceStateStore.create(Location(str(tmp_path)), CLOCK)
    store.take_over()
    foreign = pa.table({"table": ["queue"], "key": pa.array([b"x"], pa.binary())})
    lance.write_dataset(foreign, str(tmp_path / "state.lance"), mode="append")
    with pytest.raises(ProtocolError, match="something that is not Slackwater writes"):
        commit(store, 1)


def test_a_dataset_is_never_created_over_another(tmp_path: Path) -> None:
    location = Location(str(tmp_path / "views" / "v.lance"))
    create_dataset(location, pa.table({"a": [1]}))
    with pytest.raises(CommitRefusedError):
        create_dataset(location, pa.table({"a": [2]}))
    assert lance.dataset(location.lance_uri).to_table().to_pydict() == {"a": [1]}


@pytest.mark.more
def test_a_root_that_cannot_be_reached_is_told_in_one_line_without_secrets(s3: S3Server, bucket: str) -> None:
    options = {**s3.storage_options, "secret_access_key": "planted-secret-value"}
    cases = [
        (Location(f"s3://{bucket}/root", options), AccessDeniedError),
        (Location("s3://no-such-bucket/root", s3.storage_options), BucketNotFoundError),
    ]
    for root, kind in cases:
        for attempt in (LanceStateStore.open, LanceStateStore.create, LanceStateStore.create_or_open):
            with pytest.raises(kind) as raised:
                attempt(root, CLOCK)
            assert str(root) in str(raised.value)
            assert "\n" not in str(raised.value)
            for secret in (options["secret_access_key"], s3.storage_options["secret_access_key"]):
                assert secret not in str(raised.value)


def test_ctrl_c_in_a_read_is_an_interrupt_and_no_error_of_the_store(tmp_path: Path) -> None:
    store = LanceStateStore.create(Location(str(tmp_path)), CLOCK)

    def read_until_interrupted(after_s: float) -> None:
        # Python ignores an interrupt within a callback of the garbage collector: then a second interrupt follows.
        signal.setitimer(signal.ITIMER_REAL, after_s, 5)
        while True:
            store.reopen()

    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for attempt in range(100):
            with pytest.raises(KeyboardInterrupt):
                read_until_interrupted(0.001 + attempt / 20_000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

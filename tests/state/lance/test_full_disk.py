"""A full disk or store: a file is written completely or not at all, and the error says the next step.

A limit on the size of a file (`EFBIG`) makes the disk full at every point of a write: the system cuts a write short and
refuses the next one, as on a full disk.
"""

from __future__ import annotations

import random
import resource
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import lance
import obstore
import pyarrow as pa
import pytest
import structlog

from actors.telemetry.logging import configure
from slackwater.testing.proxies.fault_proxy import FaultProxy
from slackwater.testing.servers.s3_server import S3Server
from spark_bridge.datasets.view_table import ViewTable
from state.clock import ManualClock, SystemClock
from state.errors import CommitRefusedError, CommitUnknownError, SlackwaterError, StorageFullError
from state.lance import view_dataset
from state.lance.lance_root import LanceRoot
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.objects.object_client import object_client
from state.ownership.owner import Ownership
from state.tables.delta import Delta, DeltaBuilder
from state.tables.group_key import KEY_COLUMN
from state.tables.records import EpochCounts, EpochSeconds, ViewVersion
from tests.cases import few

_CLOCK = ManualClock()
_NO_ROOM = "has no room left"
_SAID = (StorageFullError, CommitRefusedError, CommitUnknownError)
_QUICK = {"read_timeout": "0.5s", "client_retry_timeout": "1"}


@contextmanager
def full_disk(max_bytes: int = 0) -> Iterator[None]:
    """Limits the size of every file."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (max_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, hard))


def points(place: Path, action: Callable[[], object]) -> list[int]:
    """Limits at which the disk becomes full within each file that the action writes, also within its last bytes."""
    before = set(place.rglob("*"))
    action()
    sizes = {path.stat().st_size for path in set(place.rglob("*")) - before if path.is_file()}
    return sorted({limit for size in sizes for limit in (0, size // 2, size - 300, size - 1) if limit >= 0})


def delta(epoch: int, rows: int = 1) -> Delta:
    builder = DeltaBuilder()
    for number in range(rows):
        builder.put("seen", f"{epoch}-{number}".encode(), 1, version=b"12345678")
    return builder.build()


def commit(store: LanceStateStore, epoch: int, changes: Delta | None = None) -> None:
    store.commit(epoch=epoch, delta=changes or delta(epoch), views={}, counts=EpochCounts(), seconds=EpochSeconds())


def committed(root: Location) -> tuple[list[int], list[str]]:
    """The epochs, and the rows of their deltas."""
    store = LanceStateStore.open(root, _CLOCK)
    return [record.epoch for record in store.epochs()], sorted(row["key"].decode() for row in store.rows("seen"))


def test_an_epoch_on_a_full_disk_is_not_committed_and_what_was_is_kept(tmp_path: Path) -> None:
    root = Location(str(tmp_path / "root"))
    store = LanceStateStore.create(root, _CLOCK)
    store.take_over()
    commit(store, 1)
    limits = points(root.path, lambda: commit(store, 2))
    assert len(limits) > 6
    done = [1, 2]
    for epoch, limit in enumerate(limits, start=3):
        try:
            with full_disk(limit):
                commit(store, epoch)
            done.append(epoch)
        except (StorageFullError, CommitRefusedError) as error:
            assert _NO_ROOM in str(error) and str(root) in str(error) and "make room" in str(error)
            store = LanceStateStore.open(root, _CLOCK)  # as recovery does: a new handle
            store.take_over()
        assert committed(root) == (done, sorted(f"{each}-0" for each in done)), f"full at {limit} bytes"
    assert len(done) < len(limits) / 2
    commit(store, 99)
    assert committed(root)[0] == [*done, 99]


@pytest.mark.more
def test_a_large_delta_is_staged_whole_or_not(tmp_path: Path) -> None:
    root = LanceRoot(Location(str(tmp_path / "root")), _CLOCK)
    store = root.create_or_open()
    changes = delta(1, rows=40_000)
    for limit in points(root.location.path, lambda: root.stage(changes, 1)):
        with full_disk(limit), pytest.raises(StorageFullError, match=_NO_ROOM):
            root.stage(changes, 1)
    commit(store, 1, root.stage(changes, 1))
    assert len(committed(root.location)[1]) == 40_000


def rows(start: int, count: int) -> pa.Table:
    """Rows whose keys are every third number from `start` on."""
    keys = pa.array([f"{number:06}" for number in range(start, start + 3 * count, 3)])
    schema = pa.schema([pa.field(KEY_COLUMN, pa.string(), False), ("n", pa.int64())])
    return pa.table([keys, pa.array(range(count))], schema=schema)


CHANGES: dict[str, Callable[[ViewTable], object]] = {
    "append": lambda view: view.append(rows(90_000, 300)),
    "upsert": lambda view: view.upsert(rows(0, 2_000)),
    "delete": lambda view: view.delete(rows(0, 9_000)[KEY_COLUMN].combine_chunks()),
    "tidy": lambda view: view.tidy(),
}


@pytest.mark.more
@pytest.mark.parametrize("change", few(CHANGES, "upsert", "tidy"))
def test_a_view_on_a_full_disk_gets_its_next_version_whole_or_the_run_recovers(tmp_path: Path, change: str) -> None:
    at, copy = Location(str(tmp_path / "view.lance")), Location(str(tmp_path / "copy.lance"))
    table = ViewTable.create(at, rows(0, 12_000))
    if change == "tidy":
        for number in range(16):
            table.append(rows(50_000 + number, 10))

    def fresh() -> ViewTable:
        """A second view, due for compaction."""
        shutil.rmtree(copy.path, ignore_errors=True)
        shutil.copytree(at.path, copy.path)
        view = ViewTable.open(copy, table.version)
        view._upkeep._commits = table._upkeep._commits
        return view

    def content() -> list[str]:
        """All rows, and some single rows by the index."""
        dataset = lance.dataset(copy.lance_uri)
        keys = sorted(dataset.to_table()[KEY_COLUMN].to_pylist())
        assert dataset.to_table(filter=f"{KEY_COLUMN} = '{keys[-1]}'").num_rows == 1
        return keys

    fresh()
    before = content()
    view = fresh()
    limits = points(copy.path, lambda: CHANGES[change](view))
    after = content()
    assert len(limits) > 6
    said = 0
    for limit in limits:
        view = fresh()
        try:
            with full_disk(limit):
                CHANGES[change](view)
            assert content() == after, f"full at {limit} bytes"
        except _SAID as error:
            assert _NO_ROOM in str(error)
            said += 1
            recorded = ViewVersion("view", "copy.lance", table.version)
            assert view_dataset.restore(Location(str(tmp_path)), recorded, term=2).version > table.version
            assert content() == before, f"full at {limit} bytes"
    assert said > len(limits) / 2


def test_a_first_start_on_a_full_disk_says_so_and_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    root = Location(str(tmp_path / "root"))
    for limit in (0, 1_000, 3_000):
        with full_disk(limit), pytest.raises(StorageFullError, match=_NO_ROOM):
            LanceStateStore.create_or_open(root, _CLOCK)
    with full_disk(), pytest.raises(StorageFullError, match=_NO_ROOM):
        Ownership(root, SystemClock(), run_id="r", pipeline="p").acquire()
    LanceStateStore.create_or_open(root, _CLOCK).take_over()


def test_a_log_without_room_loses_its_lines_and_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("SLACKWATER_LOG_LEVEL", "SLACKWATER_LOG_JSON"):
        monkeypatch.setenv(variable, "")  # so that it is taken back
    configure()
    with open(tmp_path / "log", "w") as log:
        monkeypatch.setattr(sys, "stderr", log)
        structlog.get_logger().warning("before")
        with full_disk():
            structlog.get_logger().warning("attempt failed", error="no room")
    assert "before" in (tmp_path / "log").read_text()


@pytest.fixture
def proxy(s3: S3Server) -> Iterator[FaultProxy]:
    with closing(s3.fault_proxy(random.Random(7))) as proxy:
        yield proxy


@pytest.mark.parametrize("pattern", few(["*/data/*", "*/_transactions/*", "*/_versions/*"], "*/_versions/*"))
def test_a_bucket_without_room_refuses_the_epoch_and_takes_it_when_it_has_some(
    s3: S3Server, bucket: str, proxy: FaultProxy, pattern: str
) -> None:
    root = Location(f"s3://{bucket}/root", s3.storage_options)
    faulty = Location(root.url, {**proxy.storage_options, **_QUICK})
    LanceStateStore.create(root, _CLOCK)
    store = LanceStateStore.open(faulty, _CLOCK)
    store.take_over()
    commit(store, 1)
    proxy.on("PUT", pattern).fill()
    with pytest.raises((StorageFullError, CommitRefusedError), match=_NO_ROOM) as said:
        commit(store, 2)
    assert proxy.met("fill") and root.url in str(said.value)
    assert committed(root)[0] == [1]
    proxy.heal()
    store = LanceStateStore.open(faulty, _CLOCK)
    store.take_over()
    commit(store, 2)
    assert committed(root) == ([1, 2], ["1-0", "2-0"])


def test_a_bucket_without_room_is_told_apart_from_one_that_refuses_the_credentials(
    s3: S3Server, bucket: str, proxy: FaultProxy
) -> None:
    root = Location(f"s3://{bucket}/root", proxy.storage_options)
    proxy.on("PUT").fill()
    with pytest.raises(StorageFullError, match=_NO_ROOM) as said:
        Ownership(root, SystemClock(), run_id="r", pipeline="p").acquire()
    assert isinstance(said.value, SlackwaterError)
    assert not list(obstore.list(object_client(Location(root.url, s3.storage_options))))

"""Folds: no fold changes the rows that a reader gets."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pytest

from slackwater.testing.servers.s3_server import S3Server
from state.clock import ManualClock
from state.errors import CommitRefusedError, FencedError, ProtocolError
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.store.head_swap import HeadSwapStore
from state.tables.delta import Delta, DeltaBuilder
from state.tables.records import EpochCounts, EpochSeconds
from state.tables.row_selection import Clue
from state.upkeep.fold import FoldSizes
from tests.cases import few
from tests.simulation.memory.memory_disk import MemoryDisk
from tests.simulation.memory.memory_store import MemoryStateStore

CLOCK = ManualClock()
TINY = {
    "state.lance.lance_store.LanceStateStore.fold_sizes": FoldSizes(log_fragments=1, small_rows=2, piece_rows=4),
    "state.runs.log_rows._ROWS_AT_ONCE": 3,
    "state.runs.piece_writer._INDEXED_ROWS": 2,
    "state.runs.piece_writer.BLOCK_ROWS": 2,
    "state.runs.sources.BLOCK_ROWS": 2,
    "state.runs.table_reader.BLOCK_ROWS": 2,
    "state.runs.table_reader.SLICE_ROWS": 3,
    "state.runs.table_reader._LOOKED_UP": 1,
    "state.runs.table_reader._FILES_OF_A_THREAD": 1,
    "state.runs.table_reader.MOST_ROWS": 3,
    "state.upkeep.fold.SLICE_ROWS": 3,
}
KEYS = b"abcdefghijkl"


def commit(store: HeadSwapStore, epoch: int, delta: Delta | None = None) -> int:
    record = store.commit(epoch=epoch, delta=delta or Delta(), views={}, counts=EpochCounts(), seconds=EpochSeconds())
    return record.state_version


def queued(key: str, **fields: Any) -> Delta:
    builder = DeltaBuilder()
    builder.put("queue", key.encode(), 1, source="s", path=key, **fields)
    return builder.build()


def paths(store: HeadSwapStore, state_version: int | None = None) -> list[str]:
    return sorted(store.scan("queue", state_version=state_version)["path"].to_pylist())


def fragments(root: Location) -> int:
    return len(lance.dataset(root.child("state.lance").lance_uri).get_fragments())


def physical(store: LanceStateStore) -> Counter[str]:
    """The number of stored rows of each table."""
    return Counter(store._dataset.to_table(columns=["table"])["table"].to_pylist())


def fold_all(store: HeadSwapStore) -> int:
    """Folds until no fold is due, and returns the number of folds."""
    times = 0
    while (fold := store.stage_fold()) is not None:
        store.commit_fold(fold)
        times += 1
    return times


@pytest.fixture(params=few(["local", "s3"], "local"))
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    if request.param == "local":
        return Location(str(tmp_path))
    server: S3Server = request.getfixturevalue("s3")
    return Location(f"s3://{request.getfixturevalue('bucket')}/root", server.storage_options)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folds, pieces, slices and blocks of a few rows."""
    for name, size in TINY.items():
        monkeypatch.setattr(name, size)


@pytest.fixture
def store(tmp_path: Path) -> LanceStateStore:
    """A store on a disk, taken over once."""
    made = LanceStateStore.create(Location(str(tmp_path)), CLOCK)
    made.take_over()
    return made


def test_many_epochs_become_few_fragments_and_stay_readable_each(root: Location) -> None:
    store = LanceStateStore.create(root, CLOCK)
    store.take_over()
    versions = []
    for epoch in range(1, 41):
        versions.append(commit(store, epoch, queued(f"file-{epoch:02}")))
        fold_all(store)
    every = [f"file-{epoch:02}" for epoch in range(1, 41)]
    for seen in (store, LanceStateStore.open(root, CLOCK)):
        assert paths(seen) == every
        assert [record.state_version for record in seen.epochs()] == versions
    assert paths(store, versions[19]) == every[:20]
    location = root.child("state.lance")
    dataset = lance.dataset(location.lance_uri, storage_options=dict(location.storage_options) or None)
    assert len(dataset.get_fragments()) <= 1 + 16


def test_a_fold_is_one_version_and_the_next_epoch_names_the_one_after(store: LanceStateStore) -> None:
    for epoch in range(1, 18):
        commit(store, epoch, queued(f"file-{epoch}"))
    before, head = store.version, store.head
    fold = store.stage_fold()
    assert fold is not None
    assert store.version == before, "staging is invisible"
    store.commit_fold(fold)
    assert (store.version, store.head) == (before + 1, head)
    assert commit(store, 18) == before + 2


def test_small_commits_of_this_process_are_folded_without_a_read(store: LanceStateStore, tmp_path: Path) -> None:
    data = tmp_path / "state.lance" / "data"
    for epoch in range(1, 18):
        commit(store, epoch, queued(f"file-{epoch:02}"))
    dataset = lance.dataset(str(tmp_path / "state.lance"))
    fixed = {store._fixed.head, store._fixed.directory}
    log = {each.metadata.files[0].path for each in dataset.get_fragments() if each.fragment_id not in fixed}
    for path in log:
        (data / path).rename(tmp_path / path)
    fold = store.stage_fold()
    assert fold is not None and len(fold.removed) == 16
    for path in log:
        (tmp_path / path).rename(data / path)
    store.commit_fold(fold)
    assert paths(store.reopen()) == [f"file-{epoch:02}" for epoch in range(1, 18)]


def test_a_row_that_was_put_and_deleted_is_dropped(store: LanceStateStore, tmp_path: Path) -> None:
    for epoch in range(1, 18):
        builder = DeltaBuilder()
        builder.put("queue", f"{epoch}".encode(), 1, path=f"{epoch}")
        builder.delete("queue", f"{epoch - 1}".encode(), 1)
        builder.patch("queue", b"missing", 1, attempts=1)
        commit(store, epoch, builder.build())
    assert fold_all(store) == 1
    assert paths(store) == ["17"]
    stored = lance.dataset(str(tmp_path / "state.lance")).to_table(columns=["epoch"], filter="`table` = 'queue'")
    # Epoch 17 is not folded yet: its put, its delete and its patch; of all the others the put that it deletes.
    assert sorted(stored["epoch"].to_pylist()) == [16, 17, 17, 17]


def test_commits_go_on_while_a_fold_is_staged(store: LanceStateStore) -> None:
    for epoch in range(1, 18):
        commit(store, epoch, queued(f"file-{epoch:02}"))
    staged: list[Any] = []
    thread = threading.Thread(target=lambda: staged.append(store.stage_fold()))
    thread.start()
    epoch = 17
    while thread.is_alive() or epoch < 20:
        epoch += 1
        commit(store, epoch, queued(f"file-{epoch:02}"))
    store.commit_fold(staged[0])
    expected = [f"file-{each:02}" for each in range(1, epoch + 1)]
    assert paths(store) == expected == paths(store.reopen())


def test_a_process_that_was_fenced_cannot_commit_its_fold(store: LanceStateStore) -> None:
    for epoch in range(1, 18):
        commit(store, epoch, queued(f"file-{epoch:02}"))
    fold = store.stage_fold()
    assert fold is not None
    taker = store.reopen()
    taker.take_over()
    with pytest.raises(FencedError):
        store.commit_fold(fold)
    with pytest.raises(ProtocolError, match="term 1 is not valid in term 2"):
        taker.commit_fold(fold)
    assert len(paths(taker.reopen())) == 17
    assert fold_all(taker) == 1
    assert len(paths(taker.reopen())) == 17


def test_a_fold_whose_fragments_are_gone_is_not_committed(store: LanceStateStore) -> None:
    for epoch in range(1, 18):
        commit(store, epoch, queued(f"file-{epoch:02}"))
    first, second = store.stage_fold(), store.stage_fold()
    assert first is not None and second is not None
    store.commit_fold(first)
    with pytest.raises(ProtocolError, match="no longer exist"):
        store.commit_fold(second)
    assert len(paths(store)) == 17 == len(paths(store.reopen()))


def test_a_refused_fold_loses_nothing(store: LanceStateStore) -> None:
    for epoch in range(1, 18):
        commit(store, epoch, queued(f"file-{epoch:02}"))
    stale = store.reopen()
    fold = stale.stage_fold()
    assert fold is not None
    commit(store, 18, queued("file-18"))
    with pytest.raises(CommitRefusedError):
        stale.commit_fold(fold)
    assert len(paths(store.reopen())) == 18


def test_amendments_of_one_epoch_keep_their_order_through_folds(store: LanceStateStore) -> None:
    commit(store, 1, queued("a", attempts=1))
    for attempts in (2, 3, 4):
        store.amend(queued("a", attempts=attempts))
    for epoch in range(2, 20):
        commit(store, epoch, queued(f"b-{epoch}"))
        fold_all(store)
    [row] = [row for row in store.rows("queue") if row["path"] == "a"]
    assert row["attempts"] == 4
    assert len(store.epochs()) == 19


def test_the_epoch_that_may_still_be_amended_is_not_folded(tiny: None, store: LanceStateStore) -> None:
    commit(store, 1, queued("a", attempts=1))
    commit(store, 2, queued("a", attempts=2))
    commit(store, 3, queued("a", attempts=3))
    fold = store.stage_fold()
    assert fold is not None
    store.amend(queued("a", attempts=4))
    store.commit_fold(fold)
    assert [row["attempts"] for row in store.rows("queue")] == [4]


def test_a_fold_keeps_a_change_of_a_row_before_it(tiny: None, store: LanceStateStore) -> None:
    commit(store, 1, Delta.merge([queued(key, attempts=1) for key in "abcdefgh"]))
    commit(store, 2)
    fold_all(store)
    change = DeltaBuilder()
    change.delete("queue", b"a", 1)
    change.patch("queue", b"b", 1, attempts=2)
    commit(store, 3, change.build())
    commit(store, 4)
    fold = store.stage_fold()
    assert fold is not None
    store.commit_fold(fold)
    assert physical(store)["queue"] == 8 + 2
    rows = {row["path"]: row["attempts"] for row in store.rows("queue")}
    assert rows == {"b": 2} | dict.fromkeys("cdefgh", 1)


def test_a_fold_in_memory_is_a_version_without_a_change() -> None:
    store = MemoryStateStore.create(MemoryDisk(), CLOCK)
    store.take_over()
    commit(store, 1, queued("a"))
    before = store.version
    fold = store.stage_fold()
    assert fold is not None
    store.commit_fold(fold)
    assert (store.version, paths(store), paths(store, before)) == (before + 1, ["a"], ["a"])
    with pytest.raises(ProtocolError, match="term"):
        store.commit_fold(replace(fold, term=7))


@pytest.mark.more
@pytest.mark.parametrize("seed", range(6))
def test_any_folds_of_any_history_give_the_rows_that_memory_has(seed: int, tiny: None, store: LanceStateStore) -> None:
    rng = random.Random(seed)
    memory_store = MemoryStateStore.create(MemoryDisk(), CLOCK)
    memory_store.take_over()
    fields = ["size", "path"]  # in another order than the table's
    for epoch in range(1, 61):
        delta = random_delta(rng)
        for each in (store, memory_store):
            commit(each, epoch, delta)
        fold = store.stage_fold() if rng.random() < 0.4 else None
        if fold is not None:
            store.commit_fold(fold)
        assert by_key(store) == by_key(memory_store)
        assert counts(store) == counts(memory_store)
        some = [bytes([rng.choice(KEYS)]) for _ in range(3)]
        for selection in ({"keys": some}, {"start": min(some), "end": max(some)}, {"where": [Clue("size", above=50)]}):
            rows = [each.scan("queue", fields=fields, **selection).sort_by("key") for each in (store, memory_store)]
            assert rows[0] == rows[1], selection
    assert len(store.epochs()) == 60
    assert store.scan("queue", fields=["size"]).num_rows == sum(part.num_rows for part in store.slices("queue"))


@pytest.mark.more
@pytest.mark.parametrize("pattern", ["drained", "trickle", "overwritten", "emptied"])
def test_dead_rows_are_at_most_half_of_the_live_ones(tiny: None, store: LanceStateStore, pattern: str) -> None:
    live: list[int] = []
    for epoch in range(1, 61):
        builder = DeltaBuilder()
        if pattern == "drained":
            if epoch == 1:
                live += range(300)
                for key in live:
                    builder.put("queue", f"{key:04}".encode(), 1)
            for _ in range(5 if epoch > 1 else 0):
                builder.delete("queue", f"{live.pop(0):04}".encode(), 1)
        elif pattern == "trickle":
            for key in range(5 * epoch, 5 * epoch + 5):
                builder.put("queue", f"{key:04}".encode(), 1)
                builder.delete("queue", f"{key - 5:04}".encode(), 1)
        elif pattern == "overwritten":
            for key in range(40):
                builder.put("queue", f"{key:04}".encode(), 1, attempts=epoch)
        else:
            for key in range(30):
                (builder.put if epoch < 30 else builder.delete)("queue", f"{key:04}".encode(), 1)
        commit(store, epoch, builder.build())
        fold_all(store)
        if epoch % 5:
            continue
        unfolded = 2 * 40 if pattern == "overwritten" else 2 * 30
        assert physical(store).get("queue", 0) <= 1.5 * store.scan("queue").num_rows + unfolded


def counts(store: HeadSwapStore) -> list[dict[str, Any]]:
    table = store.count_ledger().sort_by([("source", "ascending"), ("status", "ascending")])
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def random_delta(rng: random.Random) -> Delta:
    builder = DeltaBuilder()
    for _ in range(rng.randint(0, 2)):
        op, key = rng.choice(["put", "patch", "patch", "delete"]), bytes([rng.choice(KEYS)])
        if op == "delete":
            builder.delete("queue", key, 1)
            builder.delete("ledger", key, 1)
        else:
            write: Callable[..., None] = builder.put if op == "put" else builder.patch
            write("queue", key, 1, **{rng.choice(["size", "attempts"]): rng.randint(0, 99)})
            status = rng.choice(["done", "quarantined", "replaced"])
            write("ledger", key, 1, source="s", status=status, rows_read=rng.randint(0, 9), rows_bad=rng.randint(0, 1))
    return builder.build()


def by_key(store: HeadSwapStore) -> dict[bytes, dict[str, Any]]:
    return {row["key"]: row for row in store.rows("queue")}

"""The contract of the store: in memory, and on Lance on a disk and on S3."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import lance
import pytest

from slackwater.testing.servers.s3_server import S3Server
from state.clock import Clock, ManualClock
from state.errors import (
    CommitRefusedError,
    CommitUnknownError,
    EpochNotFoundError,
    FencedError,
    ProtocolError,
    StorageUnavailableError,
    StoreNotFoundError,
)
from state.lance.lance_root import LanceRoot
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.store.head_swap import HeadSwapStore
from state.store.root import Root
from state.tables.delta import Delta, DeltaBuilder
from state.tables.keys import encode_key
from state.tables.records import EpochCounts, EpochRecord, EpochSeconds, Head, ViewVersion
from state.tables.row_selection import Clue
from state.upkeep.housekeeping import Housekeeping
from state.upkeep.retention import RetentionSettings
from tests.cases import few
from tests.simulation.memory.memory_disk import MemoryDisk
from tests.simulation.memory.memory_root import MemoryRoot
from tests.simulation.memory.memory_store import MemoryStateStore

VIEW = ViewVersion("totals", "views/totals-1.lance", 3, "view_state/totals-1.lance", 2)
COUNTS = EpochCounts(files=1, rows=20, bytes=300, requests=4)
SECONDS = EpochSeconds(fetch=0.5, align=0.25, spark=1.5, collect=0.125)


class Place(ABC):
    """A place for a store, which can lose the next answer to a commit."""

    clock: Clock = ManualClock()
    root: Root

    @abstractmethod
    def create(self) -> HeadSwapStore: ...

    @abstractmethod
    def open(self, *, read_only: bool = False) -> HeadSwapStore: ...

    @abstractmethod
    def create_or_open(self) -> HeadSwapStore: ...

    @abstractmethod
    def lose_next_answer(
        self, when: str, patch: pytest.MonkeyPatch, meanwhile: Callable[[], object] = lambda: None
    ) -> None:
        """The next commit is cut off `before` it was applied, or `after`; others act meanwhile."""


class MemoryPlace(Place):
    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self.root = MemoryRoot(self.disk, self.clock)

    def create(self) -> HeadSwapStore:
        return MemoryStateStore.create(self.disk, self.clock)

    def open(self, *, read_only: bool = False) -> HeadSwapStore:
        return MemoryStateStore.open(self.disk, self.clock, read_only=read_only)

    def create_or_open(self) -> HeadSwapStore:
        return MemoryStateStore.create_or_open(self.disk, self.clock)

    def lose_next_answer(
        self, when: str, patch: pytest.MonkeyPatch, meanwhile: Callable[[], object] = lambda: None
    ) -> None:
        def fault(at: str) -> None:
            if at == when:
                self.disk.fault = None
                meanwhile()
                raise CommitUnknownError("the answer was cut off")

        self.disk.fault = fault


class LancePlace(Place):
    def __init__(self, location: Location) -> None:
        self.location = location
        self.root = LanceRoot(location, self.clock)

    def create(self) -> HeadSwapStore:
        return LanceStateStore.create(self.location, self.clock)

    def open(self, *, read_only: bool = False) -> HeadSwapStore:
        return LanceStateStore.open(self.location, self.clock, read_only=read_only)

    def create_or_open(self) -> HeadSwapStore:
        return LanceStateStore.create_or_open(self.location, self.clock)

    def lose_next_answer(
        self, when: str, patch: pytest.MonkeyPatch, meanwhile: Callable[[], object] = lambda: None
    ) -> None:
        commit = lance.LanceDataset.commit

        def cut_off(*args: Any, **options: Any) -> Any:
            patch.setattr(lance.LanceDataset, "commit", staticmethod(commit))
            if when == "after":
                commit(*args, **options)
            meanwhile()
            raise OSError("the answer was cut off")

        patch.setattr(lance.LanceDataset, "commit", staticmethod(cut_off))


# `make test` has S3 where the store itself decides, by a conditional write or a lost answer.
_also_on_s3 = pytest.mark.parametrize("place", ["memory", "lance", "lance-s3"], indirect=True)


@pytest.fixture(params=few(["memory", "lance", "lance-s3"], "memory", "lance"))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "memory":
        return MemoryPlace()
    if request.param == "lance":
        return LancePlace(Location(str(tmp_path / "a root% with")))
    server: S3Server = request.getfixturevalue("s3")
    return LancePlace(Location(f"s3://{request.getfixturevalue('bucket')}/root", server.storage_options))


@pytest.fixture
def store(place: Place) -> HeadSwapStore:
    """A store that was created and taken over once."""
    made = place.create()
    made.take_over("test")
    return made


def queued(*paths: str, **fields: Any) -> Delta:
    builder = DeltaBuilder()
    for path in paths:
        builder.put("queue", path.encode(), 1, source="s", path=path, **fields)
    return builder.build()


def commit(
    store: HeadSwapStore, epoch: int, delta: Delta | None = None, views: Mapping[str, ViewVersion] | None = None
) -> EpochRecord:
    return store.commit(epoch=epoch, delta=delta or Delta(), views=views or {}, counts=COUNTS, seconds=SECONDS)


def paths(store: HeadSwapStore, state_version: int | None = None) -> list[str]:
    return sorted(store.scan("queue", state_version=state_version)["path"].to_pylist())


@_also_on_s3
def test_a_store_is_created_once(place: Place) -> None:
    with pytest.raises(StoreNotFoundError):
        place.open()
    first = place.create()
    assert (first.head, first.epochs(), paths(first)) == (Head(0, 0), [], [])
    first.take_over()
    commit(first, 1, queued("a"))
    with pytest.raises(CommitRefusedError, match="exists"):
        place.create()
    assert paths(place.create_or_open()) == ["a"]


def test_create_or_open_makes_a_store_where_there_is_none(place: Place) -> None:
    assert place.create_or_open().head == Head(0, 0)
    assert place.open().head == Head(0, 0)


def test_a_take_over_starts_the_next_term_and_keeps_the_rest(place: Place, store: HeadSwapStore) -> None:
    commit(store, 7, queued("a"), {"totals": VIEW})
    taker = place.open()
    assert taker.take_over("other") == Head(2, 7, {"totals": VIEW}, "other")
    assert place.open().head == Head(2, 7, {"totals": VIEW}, "other")
    assert paths(place.open()) == ["a"]
    assert len(taker.epochs()) == 1


@_also_on_s3
def test_of_two_takers_one_wins(place: Place, store: HeadSwapStore) -> None:
    winner, loser = place.open(), place.open()
    winner.take_over()
    with pytest.raises(FencedError, match="another process has taken this root over"):
        loser.take_over()
    commit(winner, 1)
    assert place.open().head == Head(2, 1)


@_also_on_s3
def test_a_zombie_is_fenced_whatever_it_tries(place: Place, store: HeadSwapStore) -> None:
    place.open().take_over()
    with pytest.raises(FencedError, match="term is 2, ours was 1"):
        commit(store, 1, queued("a"))
    with pytest.raises(CommitRefusedError):
        commit(store, 2, queued("a"))
    with pytest.raises(CommitRefusedError):
        store.take_over()
    assert (place.open().head, paths(place.open())) == (Head(2, 0), [])


def test_a_stale_handle_of_the_same_term_is_refused_and_may_not_go_on(place: Place, store: HeadSwapStore) -> None:
    stale = place.open()
    commit(store, 1, queued("a"))
    with pytest.raises(CommitRefusedError, match="recover from epoch 1"):
        commit(stale, 2, queued("b"))
    with pytest.raises(CommitRefusedError, match="refused before"):
        commit(stale, 3, queued("b"))
    commit(store, 4, queued("c"))
    assert paths(place.open()) == ["a", "c"]


def test_an_epoch_is_visible_when_it_is_committed_and_as_a_whole(place: Place, store: HeadSwapStore) -> None:
    reader = place.open(read_only=True)
    record = commit(store, 1, queued("a", "b"), {"totals": VIEW})
    assert (paths(reader), reader.epochs(), reader.head.epoch) == ([], [], 0)
    fresh = reader.reopen()
    assert (paths(fresh), fresh.head) == (["a", "b"], Head(1, 1, {"totals": VIEW}, "test"))
    assert fresh.epochs() == [record] == store.epochs()
    assert record == EpochRecord(1, 1, place.clock.now(), fresh.version, COUNTS, SECONDS, {"totals": VIEW})


def test_an_epoch_record_names_the_version_that_shows_its_epoch(store: HeadSwapStore) -> None:
    records = [commit(store, epoch, queued(f"file-{epoch}")) for epoch in (1, 2, 3)]
    for epoch, record in enumerate(records, 1):
        assert paths(store, record.state_version) == [f"file-{each}" for each in range(1, epoch + 1)]
    with pytest.raises(EpochNotFoundError, match="not retained"):
        store.scan("queue", state_version=store.version + 5)


def test_patches_and_deletes_change_what_earlier_epochs_wrote(place: Place, store: HeadSwapStore) -> None:
    before = commit(store, 1, queued("a", "b", size=5, row_offset=0))
    change = DeltaBuilder()
    change.patch("queue", b"a", 1, row_offset=40)
    change.delete("queue", b"b", 1)
    commit(store, 2, change.build())
    (row,) = place.open().scan("queue").to_pylist()
    assert (row["path"], row["size"], row["row_offset"], row["epoch"]) == ("a", 5, 40, 2)
    assert paths(store, before.state_version) == ["a", "b"]


def test_epochs_must_grow(store: HeadSwapStore) -> None:
    commit(store, 5)
    for epoch in (5, 4):
        with pytest.raises(ProtocolError, match="does not follow"):
            commit(store, epoch)
    assert store.head.epoch == 5
    commit(store, 6)


def test_epochs_are_read_one_by_one_and_page_by_page(place: Place, store: HeadSwapStore) -> None:
    records = [commit(store, epoch) for epoch in (2, 3, 5, 8)]
    for reader in (store, place.open(read_only=True)):
        assert [reader.epoch(number) for number in (3, 8)] == [records[1], records[3]]
        assert [reader.epoch(number) for number in (0, 1, 4, 9)] == [None] * 4
        assert reader.epochs(last=2) == records[2:] and reader.epochs(last=9) == records
        assert reader.epochs(before=8, last=2) == records[1:3]
        assert reader.epochs(after=2) == records[1:] and reader.epochs(after=2, before=5) == records[1:2]
        assert reader.epochs(after=8) == reader.epochs(before=0) == reader.epochs(before=2, last=1) == []
        beyond = 1 << 70
        assert (reader.epoch(beyond), reader.epochs(after=beyond), reader.epochs(before=beyond)) == (None, [], records)
        times = [(row["epoch"], row["committed_at"]) for row in reader.epoch_times().to_pylist()]
        assert times == [(record.epoch, record.committed_at) for record in records]


def test_nothing_but_a_commit_makes_a_version(place: Place, store: HeadSwapStore) -> None:
    version = place.open().version
    store.scan("queue")
    store.epochs()
    place.open().scan("seen")
    place.create_or_open()
    assert place.open().version == version
    commit(store, 1)
    assert place.open().version == version + 1


def test_a_handle_for_reading_cannot_write(place: Place, store: HeadSwapStore) -> None:
    reader = place.open(read_only=True)
    with pytest.raises(ProtocolError, match="opened for reading"):
        commit(reader, 1)
    with pytest.raises(ProtocolError, match="opened for reading"):
        reader.take_over()


@_also_on_s3
def test_a_commit_whose_answer_was_lost_is_found_and_counts(
    place: Place, store: HeadSwapStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.lose_next_answer("after", monkeypatch)
    record = commit(store, 1, queued("a"))
    assert place.open().epochs() == [record]
    commit(store, 2, queued("b"))
    assert paths(place.open()) == ["a", "b"]


@_also_on_s3
def test_a_commit_that_never_arrived_is_refused(
    place: Place, store: HeadSwapStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.lose_next_answer("before", monkeypatch)
    with pytest.raises(CommitRefusedError, match="wrote nothing"):
        commit(store, 1, queued("a"))
    assert place.open().head == Head(1, 0, run="test")
    recovered = store.reopen()
    recovered.take_over()
    commit(recovered, 1, queued("b"))
    assert paths(place.open()) == ["b"]


def test_a_lost_answer_after_a_take_over_means_fenced(
    place: Place, store: HeadSwapStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.open().take_over()
    place.lose_next_answer("before", monkeypatch)
    with pytest.raises(FencedError, match="nothing of epoch 1 was written"):
        commit(store, 1, queued("a"))
    assert paths(place.open()) == []


def test_a_commit_that_another_process_has_built_on_counts(
    place: Place, store: HeadSwapStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.lose_next_answer("after", monkeypatch, lambda: place.open().take_over("other"))
    record = commit(store, 1, queued("a"))
    assert place.open().epochs() == [record]
    with pytest.raises(FencedError):
        commit(store, 2)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_fenced_process_does_not_claim_to_know_what_was_vacuumed(
    place: Place, store: HeadSwapStore, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    def another_goes_on() -> None:
        other = place.open()
        other.take_over("other")
        for epoch in (2, 3):
            commit(other, epoch)
        place.clock.sleep(1)  # a manual clock: the epochs are older than `keep_s` now
        retention = RetentionSettings(keep_s=0, keep_epochs=1)
        Housekeeping(place.root, place.clock, retention).run(other)  # type: ignore[arg-type]

    place.lose_next_answer(when, monkeypatch, another_goes_on)
    with pytest.raises(FencedError, match="it is not known whether epoch 1 was committed before") as fenced:
        commit(store, 1, queued("a"))
    assert "nothing" not in str(fenced.value)
    assert paths(place.open()) == (["a"] if when == "after" else [])


def test_a_take_over_whose_answer_was_lost_holds(
    place: Place, store: HeadSwapStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    taker = place.open()
    place.lose_next_answer("after", monkeypatch)
    assert taker.take_over().term == 2
    commit(taker, 1)
    assert place.open().head == Head(2, 1)


def test_a_store_that_cannot_be_read_back_leaves_the_outcome_unknown(
    place: Place, store: HeadSwapStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(version: int | None = None) -> HeadSwapStore:
        raise StorageUnavailableError("no route to host")

    place.lose_next_answer("after", monkeypatch)
    monkeypatch.setattr(store, "reopen", unreachable)
    with pytest.raises(CommitUnknownError, match="the outcome of the commit of epoch 1 is not known"):
        commit(store, 1, queued("a"))
    assert paths(place.open()) == ["a"]


def test_the_head_names_the_run_that_holds_the_term(place: Place, store: HeadSwapStore) -> None:
    commit(store, 1)
    assert (store.head.run, place.open().head.run) == ("test", "test")
    other = place.open()
    other.take_over("other")
    commit(other, 2)
    assert place.open().head == Head(2, 2, run="other")


def test_an_own_take_over_that_was_late_is_no_fence(place: Place, store: HeadSwapStore) -> None:
    first, second = place.open(), place.open()
    first.take_over("ours")  # its answer came after the process had opened the store again
    with pytest.raises(CommitRefusedError, match="recover"):
        second.take_over("ours")
    with pytest.raises(FencedError):
        commit(store, 1)


def test_one_row_is_got_by_its_key(place: Place, store: HeadSwapStore) -> None:
    before = commit(store, 1, queued("a", "a\x00", "b"))
    change = DeltaBuilder()
    change.patch("queue", b"a", 1, row_offset=7)
    change.delete("queue", b"b", 1)
    commit(store, 2, change.build())
    for handle in (store, place.open(read_only=True)):
        row = handle.get("queue", b"a")
        assert row is not None
        assert (row["path"], row["row_offset"], row["vnode"], row["epoch"]) == ("a", 7, 1, 2)
        assert handle.get("queue", b"b") is None
        assert handle.get("queue", b"") is None
        assert handle.get("seen", b"a") is None
        older = handle.get("queue", b"b", before.state_version)
        assert older is not None
        assert older["path"] == "b"
        assert sorted(handle.rows("queue"), key=str) == sorted(handle.scan("queue").to_pylist(), key=str)


def test_a_scan_takes_a_range_of_keys_and_a_set_of_vnodes(store: HeadSwapStore) -> None:
    keys = [encode_key("s", number) for number in range(-3, 4)] + [b"\xff'\x00"]
    builder = DeltaBuilder()
    for vnode, key in enumerate(keys):
        builder.put("queue", key, vnode, path="p", size=vnode)
    commit(store, 1, builder.build())
    change = DeltaBuilder()
    change.delete("queue", keys[2], 2)
    change.patch("queue", keys[3], 3, size=33)
    record = commit(store, 2, change.build())

    def sizes(**asked: Any) -> list[int]:
        return sorted(store.scan("queue", **asked)["size"].to_pylist())

    assert sizes() == [0, 1, 4, 5, 6, 7, 33]
    assert sizes(start=keys[1], end=keys[4]) == [1, 33]
    assert sizes(start=keys[6]) == [6, 7]
    assert sizes(end=keys[1]) == [0]
    assert sizes(start=keys[7]) == [7]
    assert sizes(vnodes=[0, 2, 5]) == [0, 5]
    assert sizes(vnodes=[]) == []
    assert sizes(start=keys[1], vnodes={1, 3, 0}) == [1, 33]
    assert sizes(end=keys[3], state_version=record.state_version - 1) == [0, 1, 2]
    assert sizes(keys=[keys[2], keys[3], keys[7], b"no key"]) == [7, 33]
    assert sizes(keys=[keys[3], keys[7]], end=keys[4]) == [33]
    assert sizes(keys=[]) == []


def test_a_scan_gives_the_fields_that_are_wanted_as_they_are_now(store: HeadSwapStore) -> None:
    builder = DeltaBuilder()
    builder.put("queue", b"a", 1, path="p", size=1, attempts=0)
    builder.put("queue", b"b", 1, path="q", size=2, attempts=0)
    commit(store, 1, builder.build())
    builder.patch("queue", b"a", 1, attempts=3)
    builder.delete("queue", b"b", 1)
    commit(store, 2, builder.build())
    rows = store.scan("queue", fields=["attempts", "error", "path"])
    assert rows.to_pylist() == [{"key": b"a", "vnode": 1, "epoch": 2, "attempts": 3, "error": None, "path": "p"}]
    assert store.scan("ledger", fields=["path"]).column_names == ["key", "vnode", "epoch", "path"]


@pytest.mark.more
def test_a_reader_waits_for_an_epoch(place: Place, store: HeadSwapStore, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = place.open(read_only=True)
    with pytest.raises(EpochNotFoundError, match="epoch 2 was not committed within 5 s: the last epoch is 0"):
        reader.wait_epoch(2, timeout_s=5)

    sleep = place.clock.sleep

    def commit_meanwhile(seconds: float) -> None:
        sleep(seconds)
        commit(store, store.head.epoch + 1, queued(f"file-{store.head.epoch + 1}"))

    monkeypatch.setattr(place.clock, "sleep", commit_meanwhile)
    seen = reader.wait_epoch(2, timeout_s=5)
    assert paths(seen) == ["file-1", "file-2"]
    assert paths(reader) == []
    with pytest.raises(ProtocolError, match="opened for reading"):
        commit(seen, 9)


@_also_on_s3
def test_rows_staged_by_an_actor_are_committed_with_their_epoch(place: Place, store: HeadSwapStore) -> None:
    staged = place.root.stage(queued("big-1", "big-2"), 5)
    assert not staged.is_empty
    assert paths(place.open()) == []
    traveled = pickle.loads(pickle.dumps(staged))
    with pytest.raises(ProtocolError, match="2 rows were staged for epoch 5, not for 4"):
        commit(store, 4, traveled)
    change = DeltaBuilder()
    change.put("seen", b"k", 3, version=b"12345678")
    commit(store, 5, Delta.merge([change.build(), traveled, queued("small")]))
    for handle in (store, place.open()):
        assert paths(handle) == ["big-1", "big-2", "small"]
        assert [row["epoch"] for row in handle.rows("queue")] == [5, 5, 5]
        assert len(handle.rows("seen")) == 1
    later = DeltaBuilder()
    later.delete("queue", b"big-1", 1)
    commit(store, 6, later.build())
    assert paths(place.open()) == ["big-2", "small"]


def test_staged_rows_without_a_commit_do_no_harm(place: Place, store: HeadSwapStore) -> None:
    place.root.stage(queued("orphan"), 1)
    commit(store, 1, queued("a"))
    recovered = place.open()
    recovered.take_over("next")
    again = place.root.stage(queued("orphan"), 2)
    commit(recovered, 2, again)
    assert paths(place.open()) == ["a", "orphan"]
    assert len(place.open().epochs()) == 2


def test_rows_that_a_fenced_process_staged_are_not_seen(place: Place, store: HeadSwapStore) -> None:
    staged = place.root.stage(queued("late"), 1)
    place.open().take_over("other")
    with pytest.raises(FencedError):
        commit(store, 1, staged)
    assert paths(place.open()) == []


def test_prefixes_and_keys_are_looked_up(store: HeadSwapStore) -> None:
    store.take_over()
    builder = DeltaBuilder()
    paths = ["a", "a b", "ab", "a\x00b", "b", "c"]
    for path in paths:
        for version in (b"version1", b"version2"):
            key = encode_key("s", path, version)
            builder.put("ledger", key, 1, source="s", path=path, version=version, rows_read=len(path) - 1)
    commit(store, 1, builder.build())

    def found(**selection: Any) -> list[str]:
        return sorted(store.scan("ledger", fields=["path"], **selection)["path"].to_pylist())

    assert found(prefixes=[encode_key("s", "a"), encode_key("s", "c"), encode_key("s", "d")]) == ["a", "a", "c", "c"]
    assert found(prefixes=[]) == found(keys=[]) == []
    assert found(keys=[encode_key("s", "b", b"version2"), b"none"]) == ["b"]
    assert found(where=[Clue("rows_read", equals=1)]) == ["ab", "ab"]
    assert found(where=[Clue("rows_read", above=0), Clue("path", contains="B")]) == found(
        prefixes=[encode_key("s", path) for path in ("a b", "ab", "a\x00b")]
    )
    assert found(where=[Clue("error", is_set=True)]) == []
    assert found(where=[Clue("error", is_set=False)]) == sorted(2 * paths)
    keys = [key for part in store.slices("ledger", fields=["path"]) for key in part["key"].to_pylist()]
    assert keys == sorted(keys) and len(keys) == 2 * len(paths)


@pytest.mark.parametrize("looked_up", [1, 10_000])
def test_slices_have_the_rows_that_fit_in_the_order_of_keys(
    store: HeadSwapStore, monkeypatch: pytest.MonkeyPatch, looked_up: int
) -> None:
    monkeypatch.setattr("state.lance.lance_store._LOOKED_UP", looked_up)
    store.take_over()
    builder = DeltaBuilder()
    for path in "fbdace":
        status = "done" if path in "abcd" else "quarantined"
        builder.put("ledger", encode_key("s", path), 1, source="s", path=path, status=status)
    commit(store, 1, builder.build())

    def found(start: bytes | None = None, **clue: Any) -> list[str]:
        parts = store.slices("ledger", start=start, where=[Clue("status", **clue)], fields=["path"])
        return [path for part in parts for path in part["path"].to_pylist()]

    assert found(equals="done") == [*"abcd"] and found(equals="quarantined") == [*"ef"] and found(equals="x") == []
    assert found(encode_key("s", "c"), equals="done") == [*"cd"]


def test_the_tag_of_the_gate_moves_with_the_commit_of_an_epoch(place: Place, store: HeadSwapStore) -> None:
    def published(epoch: int, at: int | None) -> dict[str, int]:
        store.commit(epoch=epoch, delta=Delta(), views={}, counts=COUNTS, seconds=SECONDS, published=at)
        return dict(place.open(read_only=True).head.tags)

    assert published(1, None) == {}
    store.amend(tags={"mine": 1})
    assert published(2, 2) == {"mine": 1, "published": 2}
    assert published(3, None) == {"mine": 1, "published": 2}
    assert published(4, 4) == {"mine": 1, "published": 4}
    assert published(5, 0) == {"mine": 1}
    assert published(6, 0) == {"mine": 1}

"""Rows in memory: those of the dataset before each epoch's changes, within a bound, or none at all."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from spark_bridge.changes import memory_tier
from spark_bridge.changes.cached_rows import CachedRows
from spark_bridge.changes.change_set import ChangeLog, ChangeSet, Parent
from spark_bridge.changes.memory_tier import KeptSize, MemoryTier
from state.tables.records import ViewVersion
from state.tables.stored_rows import FILE_FIELD, HASH_FIELD, JOIN_FIELD

NAMES = ["n", "__sw_join", "__sw_file"]
FILES = [bytes([number]) * 16 for number in range(40)]
# Files with the same first bytes are found by one number.
FILES += [file[:8] + b"of another" for file in FILES[:5]]


def rows(random: np.random.Generator, count: int) -> pa.Table:
    hashes = [None if each == 7 else int(each) for each in random.integers(-20, 20, count)]
    files = [FILES[each] for each in random.integers(0, len(FILES), count)]
    arrays = [random.integers(0, 1_000, count), pa.array(hashes, JOIN_FIELD.type), pa.array(files, FILE_FIELD.type)]
    return pa.table(arrays, schema=pa.schema([("n", pa.int64()), JOIN_FIELD, FILE_FIELD]))


def in_order(table: pa.Table) -> list[Any]:
    return sorted(table.to_pylist(), key=str)


@pytest.mark.more_after(1)
@pytest.mark.parametrize("key", ["__sw_file", "__sw_hash"])
def test_rows_are_found_and_leave_as_in_a_plain_table(key: str) -> None:
    random = np.random.default_rng(3)
    present = rows(random, 20_000).rename_columns(["n", "__sw_join", key])
    kept = CachedRows(present, key)
    for _ in range(60):
        keys = pc.unique(present.column(key).slice(int(random.integers(0, present.num_rows - 50)), 3).combine_chunks())
        is_gone = pc.is_in(present.column(key), value_set=keys)
        gone = None if key == "__sw_file" else present.filter(is_gone)
        new = rows(random, int(random.integers(0, 3_000))).rename_columns(present.column_names)
        kept.follow(keys, gone, new)
        present = pa.concat_tables([present.filter(pc.invert(is_gone)), new])
        hashes = pa.array(random.integers(-25, 25, 5), JOIN_FIELD.type)
        expected = present.filter(pc.is_in(present.column("__sw_join"), value_set=hashes))
        assert in_order(kept.with_keys("__sw_join", hashes, present.column_names)) == in_order(expected)
        if key == "__sw_file":
            files = pa.array([FILES[each] for each in random.integers(0, len(FILES), 2)], FILE_FIELD.type)
            of_files = present.filter(pc.is_in(present.column(key), value_set=files))
            assert in_order(kept.with_keys(key, files, ["n", "__sw_join"])) == in_order(of_files.drop_columns(key))
    assert kept.nbytes >= present.nbytes
    assert 0 < kept.dead_share < 1


def test_rows_that_expire_take_no_memory() -> None:
    schema = pa.schema([("at", pa.timestamp("us", "UTC")), JOIN_FIELD])

    def at(times: range) -> pa.Table:
        return pa.table([pa.array(times, schema.field(0).type), [each % 5 for each in times]], schema=schema)

    kept, nothing = CachedRows(at(range(10_000)), None), pa.nulls(0)
    for start in range(10_000, 60_000, 1_000):
        kept.follow(nothing, None, at(range(start, start + 1_000)))
        kept.expire("at", start - 4_000)
        found = kept.with_keys("__sw_join", pa.array([3], JOIN_FIELD.type), ["at"]).column("at").cast(pa.int64())
        assert sorted(found.to_pylist()) == [*range(start - 3_997, start + 1_000, 5)]
        assert kept.num_rows == 5_000
        assert kept.nbytes <= 2.1 * 5_000 * (at(range(1)).nbytes + 9)


def test_no_rows_are_found_in_no_rows() -> None:
    nothing = rows(np.random.default_rng(1), 0)
    kept = CachedRows(nothing, "__sw_file")
    assert kept.with_keys("__sw_join", pa.array([1], JOIN_FIELD.type), NAMES).num_rows == 0
    kept.follow(pa.array(FILES[:1], FILE_FIELD.type), None, nothing)
    assert (kept.nbytes, kept.dead_share) == (0, 0.0)


class _Now(Executor):
    """Runs the work when it is told to."""

    def __init__(self) -> None:
        self._work: list[Callable[[], None]] = []

    def submit(self, work: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def run() -> None:
            try:
                future.set_result(work(*arguments, **options))
            except Exception as error:
                future.set_exception(error)

        self._work.append(run)
        return future

    def run(self) -> None:
        for each in self._work:
            each()
        self._work = []


@dataclass
class _Dataset:
    """As much of a Lance dataset as is read."""

    table: pa.Table
    error: Exception | None = None

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def count_rows(self) -> int:
        return int(self.table.num_rows)

    def to_table(self, columns: list[str]) -> pa.Table:
        if self.error is not None:
            raise self.error
        return self.table.select(columns)


@dataclass
class _Plan:
    schema: pa.Schema


@dataclass
class _Side:
    plan: _Plan
    version: ViewVersion
    key_column: str = FILE_FIELD.name
    names_rows: bool = True


class Followed:
    """A side of a join whose changes are taken in each epoch."""

    def __init__(
        self, max_bytes: int = 1 << 20, *, beside: Followed | None = None, count: int = 100, path: str = "views/a"
    ) -> None:
        self.random = np.random.default_rng(5)
        self.dataset = _Dataset(rows(self.random, count))
        self.before = self.dataset.table
        self.thread: _Now = beside.thread if beside else _Now()
        self.tier: MemoryTier = beside.tier if beside else MemoryTier(max_bytes, self.thread)
        self.log = ChangeLog()
        self.log.is_kept = True
        self.side = _Side(_Plan(pa.schema([("n", pa.int64()), JOIN_FIELD])), ViewVersion("a", path, 1))
        self.reads = 0

    def is_kept(self) -> bool:
        return self.log.follower is not None

    def epoch(self, new: int, keys: pa.Array | None = None, gone: pa.Table | None = None) -> CachedRows | None:
        """The rows before an epoch with new rows; then its changes show."""
        self.change(new, keys, gone)
        return self.rows()

    def change(self, new: int, keys: pa.Array | None = None, gone: pa.Table | None = None) -> None:
        """The changes of an epoch."""
        changes = ChangeSet(pa.array([], FILE_FIELD.type) if keys is None else keys, gone, rows(self.random, new))
        self.log.note(changes)
        after = pa.concat_tables([self.dataset.table, changes.new])
        self.before, self.dataset.table = self.dataset.table, after
        assert self.log.take() is changes

    def rows(self) -> CachedRows | None:
        """A look-up: the rows before the epoch, if they are kept."""
        was_kept = self.is_kept()
        kept = self.tier.rows(self.log, cast(Parent, self.side), cast(Any, lambda: _Dataset(self.dataset.table)))
        self.reads += self.is_kept() and not was_kept
        if kept is not None:
            found = kept.with_keys("__sw_file", pa.array(FILES, FILE_FIELD.type), NAMES)
            assert in_order(found) == in_order(self.before.select(NAMES))
        return kept

    def look_up(self, epochs: int, times: int = 1) -> None:
        """So many epochs without changes, each with so many look-ups."""
        for _ in range(epochs):
            self.tier.begin_epoch()
            self.log.take()
            self.before = self.dataset.table
            for _ in range(times):
                self.rows()
            self.thread.run()


def test_cached_rows_are_those_before_the_epoch_whenever_they_were_read() -> None:
    view = Followed()
    assert view.epoch(10) is None
    view.thread.run()
    assert view.rows() is None, "they are those after the epoch, as long as it lasts"
    view = Followed()
    assert view.epoch(10) is None
    assert view.epoch(20) is None, "they are being read"
    view.thread.run()
    assert view.epoch(30) is not None
    assert view.epoch(40) is not None
    assert view.tier.nbytes > 0


def test_rows_that_no_other_view_reads_are_kept_no_longer() -> None:
    view = Followed()
    view.epoch(1)
    view.thread.run()
    assert view.epoch(1) is not None
    view.log.is_kept = False
    view.log.is_kept = True
    assert view.epoch(1) is None
    view.thread.run()
    assert view.epoch(1) is not None


@pytest.mark.parametrize("max_bytes", [0, 1_000])
def test_nothing_is_kept_beyond_the_bound(max_bytes: int) -> None:
    view = Followed(max_bytes)
    for _ in range(3):
        assert view.epoch(1) is None
        view.thread.run()
    assert view.tier.nbytes == 0


def test_rows_that_outgrow_the_bound_are_given_up() -> None:
    view = Followed(20_000)
    view.epoch(1)
    view.thread.run()
    assert view.epoch(1_000) is not None
    assert view.epoch(1) is not None, "they are complete"
    for _ in range(3):
        assert view.epoch(1) is None
        view.thread.run()
    assert view.tier.nbytes == 0


def test_rows_that_cannot_be_read_are_read_again() -> None:
    view = Followed()
    broken = _Dataset(view.dataset.table, OSError("the version is gone"))
    assert view.tier.rows(view.log, cast(Parent, view.side), cast(Any, lambda: broken)) is None
    view.thread.run()
    assert view.epoch(1) is None
    assert view.epoch(1) is None
    view.thread.run()
    assert view.epoch(1) is not None


def rows_before(view: Followed) -> CachedRows | None:
    return view.tier.rows(view.log, cast(Parent, view.side), cast(Any, lambda: _Dataset(view.dataset.table)))


def test_changes_that_do_not_name_the_rows_that_leave_are_not_followed() -> None:
    view = Followed()
    view.side.key_column = HASH_FIELD.name
    view.dataset.table = view.dataset.table.append_column(HASH_FIELD, view.dataset.table.column("n"))
    assert rows_before(view) is None
    view.thread.run()
    view.log.take()
    assert rows_before(view) is not None
    view.log.note(ChangeSet(pa.array([1], HASH_FIELD.type), None, view.dataset.table.slice(0, 0)))
    view.log.take()
    assert rows_before(view) is not None, "as before the changes"
    view.log.take()
    assert rows_before(view) is None


def test_a_view_that_is_no_side_of_a_join_is_not_kept() -> None:
    view = Followed()
    view.side.plan.schema = pa.schema([("n", pa.int64())])
    assert view.epoch(1) is None
    assert view.log.follower is None


ROOM_FOR_ONE = 9_500
"""A hundred rows take 6,152 bytes; before they are read, 4,500 are expected."""


@pytest.fixture
def costly(monkeypatch: pytest.MonkeyPatch) -> None:
    """To read a hundred rows takes as long as nine look-ups."""
    monkeypatch.setattr(memory_tier, "_BYTES_A_LOOK_UP", 500)


def pair() -> tuple[Followed, Followed]:
    """Two views, of which one has room, and has its rows in memory."""
    first = Followed(ROOM_FOR_ONE)
    first.look_up(2)
    assert first.tier.nbytes == 6_152
    return first, Followed(beside=first, path="views/b")


def take_turns(*times: tuple[Followed, int]) -> None:
    """One epoch in which each view is looked up so many times."""
    times[0][0].tier.begin_epoch()
    for view, count in times:
        view.log.take()
        view.before = view.dataset.table
        for _ in range(count):
            view.rows()
    times[0][0].thread.run()


def test_hot_rows_take_the_place_of_cold_ones(costly: None) -> None:
    cold, hot = pair()
    for _ in range(30):
        take_turns((cold, 1), (hot, 5))
    assert (cold.is_kept(), hot.is_kept(), hot.reads) == (False, True, 1)
    assert hot.tier.sizes == {"views/b": KeptSize(100, hot.tier.nbytes)}


def test_small_rows_take_the_place_of_large_ones_with_as_many_look_ups(costly: None) -> None:
    large = Followed(ROOM_FOR_ONE)
    small = Followed(beside=large, count=20)
    other = Followed(beside=large, count=30)
    large.dataset.table = pa.concat_tables([large.dataset.table, rows(large.random, 50)])
    for _ in range(30):
        take_turns((large, 1), (small, 1), (other, 1))
    assert (large.is_kept(), small.is_kept(), other.is_kept()) == (False, True, True)


@pytest.mark.more
def test_rows_that_are_equally_hot_do_not_change_places(costly: None) -> None:
    first, second = pair()
    for _ in range(300):
        take_turns((first, 2), (second, 2))
    assert (first.reads, second.reads) == (1, 0)


def test_rows_come_only_after_look_ups_as_long_as_their_reading(costly: None) -> None:
    _, hot = pair()
    hot.look_up(1, times=9)
    assert not hot.is_kept()
    hot.look_up(1)
    assert hot.is_kept()


def test_rows_that_are_being_read_are_not_pushed_out_at_once(costly: None) -> None:
    first = Followed(ROOM_FOR_ONE, count=180)
    small = Followed(beside=first, count=40)
    take_turns((first, 1), (small, 4))
    assert (first.is_kept(), small.is_kept()) == (True, False)


@pytest.mark.more
def test_rows_that_are_hot_by_turns_are_not_read_at_every_turn(costly: None) -> None:
    views = pair()
    for turn in range(200):
        views[turn % 2].look_up(4)
    assert views[0].reads + views[1].reads < 20


def test_rows_that_outgrow_the_bound_push_out_the_coldest() -> None:
    growing = Followed(20_000)
    cold = Followed(beside=growing)
    for _ in range(3):
        take_turns((growing, 4), (cold, 1))
    assert growing.is_kept() and cold.is_kept()
    growing.change(200)
    growing.rows()
    growing.change(1)
    assert growing.rows() is not None
    assert growing.is_kept() and not cold.is_kept()
    assert growing.tier.nbytes <= 20_000


def test_rows_without_room_come_when_others_have_left() -> None:
    first, second = pair()
    for _ in range(10):
        take_turns((first, 1), (second, 1))
    assert not second.is_kept()
    first.log.is_kept = False
    second.look_up(2)
    assert second.is_kept()


def test_rows_that_were_too_large_come_when_they_have_become_fewer() -> None:
    view = Followed(ROOM_FOR_ONE, count=1_000)
    view.look_up(5)
    assert not view.is_kept()
    view.dataset.table = view.dataset.table.slice(0, 50)
    view.look_up(2)
    assert view.is_kept()


def test_rows_that_take_more_than_estimated_are_not_read_again_and_again() -> None:
    view = Followed(ROOM_FOR_ONE)
    view.side.plan.schema = view.side.plan.schema.append(pa.field("text", pa.string()))
    view.dataset.table = view.dataset.table.append_column("text", pa.array(["x" * 1_000] * 100))
    view.look_up(20)
    assert (view.is_kept(), view.reads) == (False, 1)


def test_rows_that_leave_and_come_within_an_epoch_have_its_changes_once() -> None:
    first, other = pair()
    assert first.epoch(5) is not None
    while first.is_kept():
        other.rows()
    while not first.is_kept():
        first.rows()
    first.thread.run()
    assert first.epoch(3) is not None
    assert first.epoch(1) is not None


@pytest.mark.more
@pytest.mark.parametrize("seed", range(5))
def test_rows_in_memory_are_right_whichever_come_and_leave(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_tier, "_BYTES_A_LOOK_UP", 20_000)
    monkeypatch.setattr(memory_tier, "_HALF_LIFE_EPOCHS", 5)
    random = np.random.default_rng(seed)
    first = Followed(20_000, path="views/0")
    views = [first, *(Followed(beside=first, count=count, path=f"views/{count}") for count in (30, 60, 250))]
    found = 0
    for epoch in range(150):
        first.tier.begin_epoch()
        favourite = epoch // 30 % len(views)
        for view in views:
            view.change(int(random.integers(0, 2)))
        for at in random.permutation(np.repeat(np.arange(len(views)), 3)):
            if at == favourite or random.random() < 0.1:
                found += views[at].rows() is not None
                assert first.tier.nbytes <= 20_000
            if random.random() < 0.2:
                first.thread.run()
    assert found > 100
    assert sum(view.reads for view in views) > 4

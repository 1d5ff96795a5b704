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

from spark_bridge.changes.change_set import ChangeLog, ChangeSet, Parent
from spark_bridge.changes.kept_rows import KeptRows
from spark_bridge.changes.memory_tier import MemoryTier
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


@pytest.mark.parametrize("key", ["__sw_file", "__sw_hash"])
def test_rows_are_found_and_leave_as_in_a_plain_table(key: str) -> None:
    random = np.random.default_rng(3)
    present = rows(random, 20_000).rename_columns(["n", "__sw_join", key])
    kept = KeptRows(present, key)
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


def test_no_rows_are_found_in_no_rows() -> None:
    nothing = rows(np.random.default_rng(1), 0)
    kept = KeptRows(nothing, "__sw_file")
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
    key_column: str = FILE_FIELD.name
    names_rows: bool = True


class Followed:
    """A side of a join whose changes are taken in each epoch."""

    def __init__(self, max_bytes: int = 1 << 20) -> None:
        self.random = np.random.default_rng(5)
        self.dataset = _Dataset(rows(self.random, 100))
        self.thread = _Now()
        self.tier = MemoryTier(max_bytes, self.thread)
        self.log = ChangeLog()
        self.log.is_kept = True
        self.side = _Side(_Plan(pa.schema([("n", pa.int64()), JOIN_FIELD])))

    def epoch(self, new: int, keys: pa.Array | None = None, gone: pa.Table | None = None) -> KeptRows | None:
        """The rows before an epoch with new rows; then its changes show."""
        changes = ChangeSet(pa.array([], FILE_FIELD.type) if keys is None else keys, gone, rows(self.random, new))
        self.log.note(changes)
        after = pa.concat_tables([self.dataset.table, changes.new])
        before, self.dataset.table = self.dataset.table, after
        assert self.log.take() is changes
        kept = self.rows()
        if kept is not None:
            assert in_order(kept.with_keys("__sw_file", pa.array(FILES, FILE_FIELD.type), NAMES)) == in_order(before)
        return kept

    def rows(self) -> KeptRows | None:
        return self.tier.rows(self.log, cast(Parent, self.side), cast(Any, lambda: _Dataset(self.dataset.table)))


def test_kept_rows_are_those_before_the_epoch_whenever_they_were_read() -> None:
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


def test_changes_that_do_not_name_the_rows_that_leave_are_not_followed() -> None:
    view = Followed()
    view.side.key_column = HASH_FIELD.name
    view.dataset.table = view.dataset.table.append_column(HASH_FIELD, view.dataset.table.column("n"))
    assert view.rows() is None
    view.thread.run()
    view.log.take()
    assert view.rows() is not None
    view.log.note(ChangeSet(pa.array([1], HASH_FIELD.type), None, view.dataset.table.slice(0, 0)))
    view.log.take()
    assert view.rows() is not None, "as before the changes"
    view.log.take()
    assert view.rows() is None


def test_a_view_that_is_no_side_of_a_join_is_not_kept() -> None:
    view = Followed()
    view.side.plan.schema = pa.schema([("n", pa.int64())])
    assert view.epoch(1) is None
    assert view.log.follower is None

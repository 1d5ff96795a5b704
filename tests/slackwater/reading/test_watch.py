"""A view that is followed: its changes, one after the other, make the view at every epoch."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.commands.maintenance import run_as_owner, vacuum
from slackwater.reading.changes.view_changes import ViewChange
from slackwater.reading.store import Store
from slackwater.reading.view import View
from slackwater.testing.servers.s3_server import S3Server
from spark_bridge.datasets.dataset_paths import view_path
from spark_bridge.datasets.view_table import ViewTable
from state.clock import ManualClock
from state.lance import view_dataset
from state.location import Location
from state.tables.catalog import put_view
from state.tables.group_key import KEY_COLUMN, group_keys
from state.tables.record_rows import expiry_delta
from state.tables.records import CatalogView, ViewClass, ViewVersion
from state.upkeep.retention import RetentionSettings
from tests.slackwater.reading.written_root import RootWriter

EPOCHS = 200
LAST = RetentionSettings(keep_s=0, keep_epochs=1)
Row = tuple[Any, ...]


class NothingMoreError(Exception):
    """The follower waits for an epoch that does not come."""


class Waits(ManualClock):
    """Its pauses are when the next epochs come."""

    def __init__(self, epochs: Iterator[Any] = iter(())) -> None:
        super().__init__()
        self._epochs = epochs

    def sleep(self, seconds: float) -> None:
        for _ in self._epochs:
            return
        raise NothingMoreError


class Followed:
    """A root with one view that is written as the materializer does it."""

    def __init__(self, root: Location, *key: str) -> None:
        self.writer = RootWriter(root, Location("/nowhere"))
        self.key = key
        self.rows_at: dict[int, list[Row]] = {}
        self._path = ""
        self._table: ViewTable | None = None
        self.stored: dict[str, dict[str, Any]] = {}

    @property
    def table(self) -> ViewTable:
        assert self._table is not None
        return self._table

    def create(self, rows: pa.Table) -> None:
        """The view, or another one in its place."""
        self._path = view_path("v", self.writer.epoch)
        self._table = ViewTable.create(self.writer.root.child(self._path), rows)
        kind: ViewClass = "aggregate" if self.key else "append"
        put_view(self.writer.delta, CatalogView("v", kind, "SELECT", "plan", ("s",), self.key, self.writer.epoch))

    def commit(self) -> int:
        version = ViewVersion("v", self._path, self.table.version)
        self.writer.views["v"] = version
        self.writer.commit()
        store, epoch = self.writer.store, self.writer.records[-1].epoch
        if (fold := store.stage_fold()) is not None:
            store.commit_fold(fold)
        self.rows_at[epoch] = tuples(View(self.writer.root, version, self.key).to_arrow())
        return epoch

    def restore(self, term: int) -> None:
        """As a take-over does."""
        version = view_dataset.restore(self.writer.root, self.writer.views["v"], term)
        self._table = ViewTable.open(self.writer.root.child(self._path), version.version)

    def changes(self, epochs: Iterator[Any] = iter(()), since: int | None = None) -> Iterator[ViewChange]:
        """Every change until the follower waits in vain."""
        store = Store(self.writer.root, Waits(epochs))
        try:
            yield from store.watch("v", since=since, poll_s=0)
        except NothingMoreError:
            return


def tuples(table: pa.Table) -> list[Row]:
    """Its rows, so that what is the same is equal."""
    return [tuple(map(_comparable, row.values())) for row in table.to_pylist()]


def _comparable(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_comparable, value))
    return "nan" if isinstance(value, float) and math.isnan(value) else value


def groups(numbers: Mapping[int, int]) -> pa.Table:
    """Groups with values of several types, some of them null or NaN, and a partial that is not in the result."""
    carriers = pa.array([None if number % 10 == 0 else f"c{number % 10}|" for number in numbers], pa.string())
    days = pa.array([number // 10 for number in numbers], pa.int64())
    values = list(numbers.values())
    delays = [None if value % 3 == 0 else math.nan if value % 3 == 1 else value / 2 for value in values]
    seen = pa.array([[float(value % 2), math.nan] for value in values], pa.list_(pa.float64()))
    partials = pa.array(values, pa.int64())
    columns = {"carrier": carriers, "day": days, "n": partials, "delay": pa.array(delays, pa.float64()), "seen": seen}
    return pa.table({**columns, "__sw_partial_0": partials, KEY_COLUMN: group_keys([carriers, days])})


def grow_groups(followed: Followed, random: Random, *, width: int) -> Iterator[int]:
    """Epochs that change some groups, let some go and some come back, with all that happens in between."""
    for epoch in range(EPOCHS):
        some = random.sample(range(width), k=random.randint(1, 12))
        if random.random() < 0.5:
            followed.table.delete(groups(dict.fromkeys(some[:5], 0))[KEY_COLUMN].combine_chunks())
        if random.random() < 0.9:
            followed.table.upsert(groups({number: random.randint(0, 2) for number in some}))
        yield followed.commit()
        followed.table.tidy()
        if epoch % 70 == 69:
            followed.restore(epoch)


@pytest.mark.more
def test_the_changes_of_groups_make_the_view_at_every_epoch(tmp_path: Path) -> None:
    random = Random(7)
    followed = Followed(Location(str(tmp_path)), "carrier", "day")
    followed.create(groups(dict.fromkeys(range(0, 200, 2), 1)))
    first = followed.commit()
    state: dict[Row, Row] = {}
    seen = [first]
    for change in followed.changes(grow_groups(followed, random, width=200)):
        assert change.key == ("carrier", "day")
        removed, rows = tuples(change.removed), tuples(change.rows)
        assert change.epoch > seen[-1] or seen == [first]
        if change.epoch != first:
            for key in removed:
                del state[key]
            assert rows or removed
            assert all(state.get(row[:2]) != row for row in rows), "a row that has not changed"
            assert not set(removed) & {row[:2] for row in rows}
        state.update({row[:2]: row for row in rows})
        assert sorted(map(repr, state.values())) == sorted(map(repr, followed.rows_at[change.epoch]))
        seen.append(change.epoch)
    epochs = list(followed.rows_at)
    unlike = [b for a, b in itertools.pairwise(epochs) if Counter(followed.rows_at[a]) != Counter(followed.rows_at[b])]
    assert seen[2:] == unlike, "each epoch that changed the view, once and in order"
    assert followed.table._dataset.version > 1.4 * EPOCHS, "it was tidied in between"

    later = list(followed.changes(since=epochs[100]))
    assert [change.epoch for change in later] == [epoch for epoch in unlike if epoch > epochs[100]]


@pytest.mark.more
def test_a_view_in_a_bucket_is_followed(s3: S3Server, bucket: str) -> None:
    followed = Followed(Location(f"s3://{bucket}/root", s3.storage_options), "carrier", "day")
    followed.create(groups(dict.fromkeys(range(100), 1)))
    first = followed.commit()
    state = {row[:2]: row for row in followed.rows_at[first]}
    for number in range(3):
        followed.table.upsert(groups({1: number, 2: 2, 200 + number: 1}))
        followed.table.delete(groups({10 + number: 0})[KEY_COLUMN].combine_chunks())
        followed.commit()
    changes = list(followed.changes(since=first))
    for change in changes:
        for key in tuples(change.removed):
            del state[key]
        state.update({row[:2]: row for row in tuples(change.rows)})
        assert sorted(map(repr, state.values())) == sorted(map(repr, followed.rows_at[change.epoch]))
    assert [(change.rows.num_rows, change.removed.num_rows) for change in changes] == [(3, 1), (2, 1), (2, 1)]


def grow_rows(followed: Followed, random: Random, *, nested: bool, withdraw: bool) -> Iterator[int]:
    for _ in range(EPOCHS // 2):
        if withdraw and random.random() < 0.2:
            followed.table._dataset.delete(f"n = {random.randint(0, 4)}")
            followed._table = ViewTable.open(followed.table.location, followed.table._dataset.version)
        if random.random() < 0.9:
            followed.table.append(rows_of([random.randint(0, 4) for _ in range(random.randint(1, 6))], nested=nested))
        yield followed.commit()
        followed.table.tidy()


def rows_of(numbers: list[int], *, nested: bool) -> pa.Table:
    delays = pa.array(
        [None if number == 0 else math.nan if number == 1 else float(number) for number in numbers], pa.float64()
    )
    lists = pa.array([[math.nan, float(number)] for number in numbers])
    return pa.table({"n": numbers, "delay": delays, **({"seen": lists} if nested else {})})


@pytest.mark.more
@pytest.mark.parametrize(
    ("nested", "withdraw"),
    [(False, False), pytest.param(True, True, marks=pytest.mark.more)],
    ids=["only grows", "also shrinks"],
)
def test_the_changes_of_rows_without_a_key_make_the_view_at_every_epoch(
    tmp_path: Path, nested: bool, withdraw: bool
) -> None:
    followed = Followed(Location(str(tmp_path)))
    followed.create(rows_of([1, 2, 2], nested=nested))
    first = followed.commit()
    state: Counter[Row] = Counter()
    seen: list[int] = []
    for change in followed.changes(grow_rows(followed, Random(3), nested=nested, withdraw=withdraw)):
        assert change.key == ()
        state.subtract(tuples(change.removed))
        state.update(tuples(change.rows))
        assert +state == Counter(followed.rows_at[change.epoch]) and -state == Counter()
        assert withdraw or not change.removed.num_rows
        seen.append(change.epoch)
    epochs = list(followed.rows_at)
    unlike = [b for a, b in itertools.pairwise(epochs) if Counter(followed.rows_at[a]) != Counter(followed.rows_at[b])]
    assert seen == [first, *unlike]


def test_a_row_whose_group_is_not_in_the_result_is_replaced_as_a_whole(tmp_path: Path) -> None:
    def counts(**numbers: int) -> pa.Table:
        return pa.table({"n": list(numbers.values()), KEY_COLUMN: list(numbers)})

    followed = Followed(Location(str(tmp_path)))
    followed.create(counts(a=1, b=1))
    first = followed.commit()
    followed.table.upsert(counts(a=2, b=1, c=1))
    followed.commit()
    [change] = followed.changes(since=first)
    assert (change.removed.to_pydict(), sorted(change.rows["n"].to_pylist())) == ({"n": [1]}, [1, 2])


def test_a_view_that_replaces_another_comes_whole_and_the_old_keys_go(tmp_path: Path) -> None:
    followed = Followed(Location(str(tmp_path)), "carrier", "day")
    followed.create(groups({1: 1, 2: 1}))
    first = followed.commit()
    followed.create(groups({2: 1, 3: 1}))
    second = followed.commit()
    del followed.writer.views["v"]
    followed.writer.commit()
    replaced, dropped = followed.changes(since=first)
    assert (replaced.epoch, tuples(replaced.removed)) == (second, [("c1|", 0), ("c2|", 0)])
    assert [row[:2] for row in tuples(replaced.rows)] == [("c2|", 0), ("c3|", 0)]
    assert (dropped.rows.num_rows, tuples(dropped.removed)) == (0, [("c2|", 0), ("c3|", 0)])
    assert dropped.rows.schema == replaced.rows.schema


def test_an_empty_view_begins_with_no_rows(tmp_path: Path) -> None:
    followed = Followed(Location(str(tmp_path)), "carrier", "day")
    followed.create(groups({}))
    first = followed.commit()
    followed.writer.commit()
    [change] = followed.changes()
    assert change.epoch == followed.writer.records[-1].epoch > first
    assert (change.rows.num_rows, change.removed.column_names) == (0, ["carrier", "day"])


def test_what_cannot_be_followed_is_told(tmp_path: Path) -> None:
    followed = Followed(Location(str(tmp_path)), "carrier", "day")
    followed.create(groups({1: 1}))
    first = followed.commit()
    store = sw.open(str(tmp_path))
    with pytest.raises(sw.errors.ViewNotFoundError, match="the views are: v"):
        store.watch("w")
    with pytest.raises(sw.errors.UsageError, match="poll_s=-1"):
        store.watch("v", poll_s=-1)
    with pytest.raises(sw.errors.EpochNotFoundError):
        store.watch("v", since=first + 1)
    with pytest.raises(sw.errors.EpochExpiredError, match="watch without `since`"):
        store.watch("v", since=first - 1)


def vacuumed(followed: Followed) -> None:
    run_as_owner(followed.writer.root.url, {}, lambda store, root: vacuum(store, root, LAST))


def after(*steps: Callable[[], Any]) -> Iterator[None]:
    """One step at each pause."""
    for step in steps:
        step()
        yield


def test_a_follower_whose_epochs_have_expired_is_told_how_to_go_on(tmp_path: Path) -> None:
    followed = Followed(Location(str(tmp_path)), "carrier", "day")
    followed.create(groups({1: 1}))
    first = followed.commit()

    def fall_behind() -> None:
        for number in range(3):
            followed.table.upsert(groups({1: number}))
            followed.commit()
        vacuumed(followed)

    with pytest.raises(
        sw.errors.EpochExpiredError, match=f"since epoch {first} is no longer retained: begin again without"
    ):
        list(followed.changes(after(fall_behind), since=first))


def test_epochs_that_have_expired_are_not_skipped_while_their_files_are_still_there(tmp_path: Path) -> None:
    followed = Followed(Location(str(tmp_path)), "carrier", "day")
    followed.create(groups({1: 1}))
    first = followed.commit()

    def fall_behind() -> None:
        for number in range(3):
            followed.table.upsert(groups({1: number}))
            followed.commit()
        followed.writer.store.amend(expiry_delta(list(followed.rows_at)[:-1]))

    with pytest.raises(sw.errors.EpochExpiredError, match=f"since epoch {first} is no longer retained"):
        list(followed.changes(after(fall_behind), since=first))


def test_an_epoch_that_expires_under_a_view_that_does_not_change_is_not_missed(tmp_path: Path) -> None:
    followed = Followed(Location(str(tmp_path)), "carrier", "day")
    followed.create(groups({1: 1}))
    first = followed.commit()

    def others_change() -> None:
        for _ in range(3):
            followed.writer.commit()
        vacuumed(followed)

    assert list(followed.changes(after(others_change), since=first)) == []

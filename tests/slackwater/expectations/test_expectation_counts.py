"""The counts of violating rows are those of all rows of a view, whatever changed, at the cost of the changed rows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from slackwater.expectations.expectation_counts import ExpectationCounts
from slackwater.expectations.release import Release
from slackwater.expectations.view_rows import StoredRows
from spark_bridge.datasets.dataset_paths import view_path
from spark_bridge.datasets.view_table import ViewTable
from spark_bridge.plans.view_definition import ViewDefinition
from state.errors import DamagedStoreError, ViewFailedError
from state.location import Location
from state.tables.expectations import OnViolation, ViewExpectations
from state.tables.fingerprint import path_fingerprint
from state.tables.group_key import KEY_COLUMN, group_keys
from state.tables.records import ViewVersion
from state.tables.stored_rows import FILE_FIELD
from tests.slackwater.expectations.arrow_conditions import DuckDBConditions

POSITIVE, NAMED = "amount is positive", "it has a name"
EXPECT = {POSITIVE: "amount > 0", NAMED: "name IS NOT NULL"}


class CountedView:
    """A view `v` whose expectations are counted after each change of its dataset."""

    def __init__(self, root: Location, rows: pa.Table, *key: str, on_violation: OnViolation = "hold") -> None:
        self.root, self.key, self.epoch = root, key, 0
        self.columns = ["name", "amount"]
        self.conditions: list[DuckDBConditions] = []
        self.declared: dict[str, ViewDefinition] = {}
        self.expect(EXPECT, on_violation)
        self.release = Release()
        self.counts = ExpectationCounts(partial(StoredRows, root), {}, {}, self._make, self.release)
        self.create(rows)

    def create(self, rows: pa.Table) -> None:
        """Another dataset in place of the last one."""
        self.path = view_path("v", self.epoch)
        self.table = ViewTable.create(self.root.child(self.path), rows)

    def expect(self, expect: Mapping[str, str], on_violation: OnViolation = "hold") -> None:
        self.declared = {"v": ViewDefinition("v", query="SELECT", expect=expect, on_violation=on_violation)}

    def epoch_over(self) -> ViewExpectations:
        self.epoch += 1
        self.changed = self.counts.after_epoch(self.epoch, self.declared, self.versions, {"v": self.key})
        return self.counts.views["v"]

    def recovered(self, committed: ViewExpectations | None = None) -> None:
        """The counts of the next attempt.

        Args:
            committed: what the last commit has, if the epoch after it is lost; None for all that was counted.
        """
        known = self.counts.views if committed is None else {"v": committed}
        self.epoch -= committed is not None
        self.release.recover(self.epoch)
        self.counts = ExpectationCounts(partial(StoredRows, self.root), known, self.versions, self._make, self.release)

    @property
    def versions(self) -> dict[str, ViewVersion]:
        return {"v": ViewVersion("v", self.path, self.table.version)}

    @property
    def rows_computed(self) -> int:
        return sum(each.rows for each in self.conditions)

    def _make(self, view: str, schema: pa.Schema, conditions: Mapping[str, str]) -> DuckDBConditions:
        assert schema.names == self.columns, "hidden columns are not for conditions"
        self.conditions.append(DuckDBConditions(view, schema, conditions))
        return self.conditions[-1]


def payments(**files: list[int]) -> pa.Table:
    """Rows that name their file: a letter and its amounts; an amount of 13 has no name."""
    rows = [(letter, amount) for letter, amounts in files.items() for amount in amounts]
    return pa.table(
        {
            "name": pa.array([None if amount == 13 else letter for letter, amount in rows], pa.string()),
            "amount": pa.array([amount for _, amount in rows], pa.int64()),
            FILE_FIELD.name: pa.array([path_fingerprint("s", letter) for letter, _ in rows], FILE_FIELD.type),
        }
    )


def totals(**amounts: int) -> pa.Table:
    names = pa.array(list(amounts), pa.string())
    return pa.table(
        {"name": names, "amount": pa.array(list(amounts.values()), pa.int64()), KEY_COLUMN: group_keys([names])}
    )


def rows_of(found: ViewExpectations) -> dict[str, int]:
    return {name: each.rows for name, each in found.expectations.items()}


def file(letter: str) -> str:
    return path_fingerprint("s", letter).hex()


@pytest.fixture
def root(tmp_path: Path) -> Location:
    return Location(str(tmp_path / "root"))


def test_appended_rows_are_counted_and_nothing_else_is_read(root: Location) -> None:
    view = CountedView(root, payments(a=[1, -1, 13]))
    first = view.epoch_over()
    assert rows_of(first) == {POSITIVE: 1, NAMED: 1}
    assert (first.held_since, first.epochs, first.files) == (1, (1,), {file("a"): 2})
    view.table.append(payments(b=[2, 3, -4, -5]))
    before = view.rows_computed
    second = view.epoch_over()
    assert view.rows_computed - before == 4
    assert rows_of(second) == {POSITIVE: 3, NAMED: 1}
    assert (second.held_since, second.epochs) == (1, (1, 2))
    assert second.files == {file("a"): 2, file("b"): 2}


def test_an_epoch_without_a_change_writes_nothing(root: Location) -> None:
    view = CountedView(root, payments(a=[-1]))
    view.epoch_over()
    assert set(view.changed) == {"v"}
    before = view.rows_computed
    view.epoch_over()
    assert (view.changed, view.rows_computed) == ({}, before)


def test_the_gate_opens_when_the_rows_of_the_file_leave(root: Location) -> None:
    view = CountedView(root, payments(a=[1, 2]))
    assert view.epoch_over().held_since is None
    view.table.append(payments(b=[-1, 5]))
    assert view.epoch_over().holds_back
    view.table.delete_where("name = 'b'")
    after = view.epoch_over()
    assert rows_of(after) == {POSITIVE: 0, NAMED: 0}
    assert (after.holds_back, after.held_since, after.epochs, after.files) == (False, None, (), {})
    assert after.expectations[POSITIVE].came == 1


def test_groups_that_change_are_counted_as_they_are_now(root: Location) -> None:
    view = CountedView(root, totals(a=1, b=-1, c=3), "name")
    assert rows_of(view.epoch_over()) == {POSITIVE: 1, NAMED: 0}
    view.table.upsert(totals(a=-7, b=-2))
    found = view.epoch_over()
    assert rows_of(found) == {POSITIVE: 2, NAMED: 0}
    assert found.expectations[POSITIVE].came == 2, "b has violated before"
    view.table.upsert(totals(a=7, b=2))
    assert not view.epoch_over().is_violated


def test_a_release_accepts_what_violates_now_and_nothing_that_comes_later(root: Location) -> None:
    view = CountedView(root, payments(a=[-1, -2]))
    assert view.epoch_over().holds_back
    assert not view.counts.has_news(view.declared)
    view.counts.release()
    assert view.counts.has_news(view.declared)
    released = view.epoch_over()
    assert (released.holds_back, released.expectations[POSITIVE].accepted) == (False, 2)
    view.table.exchange_where(["amount = -1"], payments(b=[-3]))
    again = view.epoch_over()
    assert rows_of(again)[POSITIVE] == 2
    assert (again.holds_back, again.expectations[POSITIVE].accepted) == (True, 1), "one came as another left"
    assert again.held_since == 3


def test_a_release_whose_epoch_is_lost_is_in_the_first_epoch_of_the_next_attempt(root: Location) -> None:
    view = CountedView(root, payments(a=[-1, -2]))
    held = view.epoch_over()
    view.counts.release()
    view.epoch_over()
    view.recovered(held)
    assert view.counts.has_news(view.declared) and not view.release.is_committed(view.epoch)
    released = view.epoch_over()
    assert (released.holds_back, released.expectations[POSITIVE].accepted) == (False, 2)
    assert view.release.is_committed(view.epoch)
    view.recovered()
    assert not view.counts.has_news(view.declared), "it was committed"


def test_a_group_that_was_released_may_change(root: Location) -> None:
    view = CountedView(root, totals(a=-1), "name")
    view.epoch_over()
    view.counts.release()
    view.epoch_over()
    view.table.upsert(totals(a=-2))
    assert not view.epoch_over().holds_back
    view.table.upsert(totals(b=-1))
    assert view.epoch_over().holds_back


def test_rows_that_no_release_has_accepted_hold_when_accepted_ones_leave(root: Location) -> None:
    view = CountedView(root, payments(a=[-1, -2]))
    view.epoch_over()
    view.counts.release()
    view.epoch_over()
    view.table.append(payments(b=[-3, -4]))
    assert view.epoch_over().holds_back
    view.table.delete_where("amount = -1")
    left = view.epoch_over()
    assert (left.holds_back, left.expectations[POSITIVE].accepted) == (True, 1)
    view.recovered()
    view.table.delete_where("name = 'b'")
    gone = view.epoch_over()
    assert (gone.holds_back, gone.expectations[POSITIVE].accepted) == (False, 1), "those that were accepted stay so"


def test_groups_that_no_release_has_accepted_hold_when_accepted_ones_are_right(root: Location) -> None:
    view = CountedView(root, totals(a=-1, b=-1, c=1), "name")
    view.epoch_over()
    view.counts.release()
    view.epoch_over()
    view.table.upsert(totals(a=1, c=-1))
    assert view.epoch_over().holds_back
    view.table.upsert(totals(b=1))
    assert view.epoch_over().holds_back, "c waits"
    view.table.upsert(totals(c=1))
    assert not view.epoch_over().holds_back


def test_more_files_than_are_named_hold_until_the_last_has_left(root: Location) -> None:
    view = CountedView(root, payments(a=[-1, -2]))
    view.epoch_over()
    view.counts.release()
    view.epoch_over()
    view.table.append(payments(**{f"f{number}": [-1] for number in range(150)}))
    view.epoch_over()
    view.table.delete_where("name <> 'a' AND name <> 'f7'")
    assert view.epoch_over().holds_back
    view.table.delete_where("name = 'f7'")
    assert rows_of(view.epoch_over())[POSITIVE] == 2
    view.counts.release()
    assert not view.epoch_over().holds_back


def test_a_further_expectation_leaves_what_was_accepted_of_the_others(root: Location) -> None:
    view = CountedView(root, payments(a=[-1, 13]))
    view.expect({POSITIVE: "amount > 0"})
    view.epoch_over()
    view.counts.release()
    view.epoch_over()
    view.expect(EXPECT)
    found = view.epoch_over().expectations
    assert (found[POSITIVE].accepted, found[NAMED].rows, found[NAMED].accepted) == (1, 1, 0)


def test_a_view_that_is_rebuilt_has_nothing_accepted(root: Location) -> None:
    view = CountedView(root, payments(a=[-1, -2]))
    view.epoch_over()
    view.counts.release()
    view.epoch_over()
    view.create(payments(b=[-3, -4]))
    assert view.epoch_over().holds_back


@pytest.mark.more
def test_a_compaction_changes_no_count(root: Location) -> None:
    view = CountedView(root, payments(a=[-1, 1]))
    for number in range(4):
        view.table.append(payments(b=[-number, number]))
        found = view.epoch_over()
    view.table._dataset.optimize.compact_files()
    view.table = ViewTable.open(view.table.location, view.table._dataset.version)
    view.table.append(payments(c=[-9]))
    after = view.epoch_over()
    assert rows_of(after)[POSITIVE] == rows_of(found)[POSITIVE] + 1
    assert after.files == {**found.files, file("c"): 1}
    assert after.expectations[POSITIVE].came == found.expectations[POSITIVE].came + 1


def test_other_expectations_are_counted_over_all_rows(root: Location) -> None:
    view = CountedView(root, payments(a=[1, 2, 3]))
    view.epoch_over()
    view.expect({POSITIVE: "amount > 1"})
    assert view.counts.has_news(view.declared)
    assert rows_of(view.epoch_over()) == {POSITIVE: 1}
    assert not view.counts.has_news(view.declared)
    view.expect({POSITIVE: "amount > 1"}, "count")
    assert view.counts.has_news(view.declared)
    counted = view.epoch_over()
    assert (counted.is_violated, counted.holds_back, counted.held_since) == (True, False, None)
    view.declared = {}
    view.epoch += 1
    assert view.counts.after_epoch(view.epoch, {}, view.versions, {}) == {"v": None}


def test_a_view_that_is_rebuilt_is_counted_whole(root: Location) -> None:
    view = CountedView(root, payments(a=[-1, -2]))
    view.epoch_over()
    view.create(payments(a=[-1, 2]))
    assert rows_of(view.epoch_over())[POSITIVE] == 1


def test_the_next_attempt_goes_on_from_the_last_commit(root: Location) -> None:
    view = CountedView(root, payments(a=[-1, 2]))
    view.epoch_over()
    view.recovered()
    before = view.rows_computed
    view.table.append(payments(b=[-1]))
    assert rows_of(view.epoch_over())[POSITIVE] == 2
    assert view.rows_computed - before == 1


def test_an_expectation_that_fails_over_a_row_holds_until_it_can_be_computed(root: Location) -> None:
    view = CountedView(root, payments(a=[1, 2]))
    view.expect({"share": "12 // amount > 0 AND CAST(100 / amount AS TINYINT) > 0"})
    assert not view.epoch_over().is_violated
    view.table.append(payments(b=[1_000]))
    view.expect({"share": "CAST(amount AS TINYINT) > 0"})
    failed = view.epoch_over()
    assert failed.holds_back and failed.expectations["share"].error
    view.counts.release()
    assert view.epoch_over().holds_back, "nobody knows what would be accepted"
    view.table.delete_where("amount = 1000")
    assert not view.epoch_over().is_violated


@pytest.mark.parametrize(
    "error", [ViewFailedError("v", "over rows", "ArrowInvalid: too large"), DamagedStoreError("v.lance is damaged")]
)
def test_a_view_whose_expectations_cannot_be_computed_holds_alone(
    root: Location, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    view = CountedView(root, payments(a=[1, 2]))
    assert not view.epoch_over().is_violated
    view.table.append(payments(b=[3]))

    def failing(*_: object) -> Any:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(DuckDBConditions, "unfulfilled", failing)
        failed = view.epoch_over()
    assert failed.holds_back and {each.error for each in failed.expectations.values()} == {str(error)}
    view.table.append(payments(c=[4]))
    assert not view.epoch_over().is_violated


@pytest.mark.more_after(1)
@pytest.mark.parametrize("seed", range(5))
def test_counts_of_random_changes_are_those_of_all_rows(root: Location, seed: int) -> None:
    random = Random(seed)
    keyed = seed % 2 == 0
    view = CountedView(root, totals(z=1) if keyed else payments(z=[1]), *(["name"] if keyed else []))
    view.epoch_over()
    for _ in range(12):
        letters = random.sample("abcdefgh", 3)
        if keyed:
            view.table.upsert(totals(**{each: random.randint(-3, 3) for each in letters}))
        else:
            new = payments(**{each: [random.randint(-3, 13) for _ in range(3)] for each in letters})
            view.table.exchange_where([f"name = '{random.choice('abcdefgh')}'"], new)
        found = view.epoch_over()
        rows = view.table._dataset.to_table().to_pylist()
        wanted = sum(row["amount"] <= 0 for row in rows), sum(row["name"] is None for row in rows)
        assert tuple(rows_of(found).values()) == wanted
        if not keyed:
            bad = [row[FILE_FIELD.name].hex() for row in rows if row["amount"] <= 0 or row["name"] is None]
            assert found.files == {each: bad.count(each) for each in bad}


def test_rows_with_lists_are_told_apart_too(root: Location) -> None:
    def tagged(*rows: tuple[int, list[str]]) -> pa.Table:
        amounts, tags = zip(*rows, strict=True)
        return pa.table({"amount": pa.array(amounts, pa.int64()), "tags": pa.array(tags, pa.list_(pa.string()))})

    view = CountedView(root, tagged((1, ["a"]), (-1, ["b"])))
    view.expect({POSITIVE: "amount > 0"})
    view.columns = ["amount", "tags"]
    view.epoch_over()
    view.table.exchange_where(["amount = -1"], tagged((-1, ["c"]), (-1, ["b"])))
    found = view.epoch_over().expectations[POSITIVE]
    assert (found.rows, found.came) == (2, 2), "one of them was there before"

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.upkeep.fold_plan import due_runs, newest_to_merge, next_run, runs_to_merge

SIZES = st.lists(st.integers(0, 3_000), max_size=60)


def fold_all(sizes: list[int], *, floor: int = 10, full: int = 2_000) -> int:
    """Folds in place until no fold is due, and returns the size that was written."""
    written = 0
    while (run := next_run(sizes, floor=floor, full=full, factor=4)) is not None:
        total = sum(sizes[run.start : run.stop])
        sizes[run.start : run.stop] = [total]
        written += total
    return written


def test_nothing_is_folded_before_enough_are_there() -> None:
    assert next_run([1, 1, 1], floor=10, full=100, factor=4) is None
    assert next_run([1, 1, 1, 1], floor=10, full=100, factor=4) == range(4)


def test_smaller_ones_between_two_of_a_tier_go_with_them() -> None:
    assert next_run([50, 1, 50, 50, 1, 1, 50, 1], floor=10, full=1_000, factor=4) == range(7)


def test_what_is_older_than_a_larger_one_waits() -> None:
    assert next_run([1, 1, 500, 1, 1], floor=10, full=10_000, factor=4) is None
    assert next_run([1, 1, 500, 1, 1, 1, 1], floor=10, full=10_000, factor=4) == range(3, 7)


def test_what_has_shrunk_is_folded_though_larger_ones_follow() -> None:
    shrunk = [1, 2, 3, 4, 500, 60, 1, 1]
    assert next_run(shrunk, floor=10, full=10_000, factor=4) == range(4)
    assert next_run([1, 1, 1, 1, 6_000, 1], floor=10, full=10_000, factor=4) == range(4), "before one that stays"


def test_the_newest_pieces_do_not_make_shrunk_ones_wait() -> None:
    sizes = [1, 2, 3, 4, 500, 1, 1, 1, 1]
    assert due_runs(sizes, floor=10, full=10_000, factor=4) == [range(5, 9), range(4)]
    assert due_runs([50, 50, 500, 50, 50], floor=60, full=100, factor=2) == [range(3, 5), range(2)]
    assert due_runs([50, 60, 500, 50, 60] * 2, floor=70, full=120, factor=2) == [range(8, 10), range(3, 5)]


def test_each_of_the_pieces_that_are_merged_from_the_end_is_larger_than_the_newer_ones() -> None:
    def merged(sizes: list[int], full: int = 1_000, most: int = 99) -> int:
        return newest_to_merge(sizes, full=full, factor=3, most=most)

    assert merged([]) == merged([5]) == merged([1, 1]) == 0
    assert merged([1, 1, 1]) == 3
    assert merged([9, 1, 1, 1]) == 3, "the oldest is larger than the others together"
    assert merged([3, 1, 1, 1]) == 4
    assert merged([600, 500, 1, 1]) == 0, "together they are too large"
    assert merged([600, 500, 1, 1], most=3) == 4, "but there are too many"
    sizes, most, written = list[int](), 0, 0
    for _ in range(10_000):
        sizes.append(1)
        if count := merged(sizes, full=1 << 30):
            written += sum(sizes[-count:])
            sizes[-count:] = [sum(sizes[-count:])]
        most = max(most, len(sizes))
    assert (sum(sizes), most <= 2 + 14 + 3, written <= 10_000 * 14) == (10_000, True, True)


def test_a_long_history_is_folded_at_once_and_in_parts_that_are_not_too_large() -> None:
    assert next_run([1] * 5_000, floor=10, full=10_000, factor=4) == range(5_000)
    assert next_run([9] * 5_000, floor=10, full=900, factor=4) == range(100)


def test_what_is_nearly_too_large_does_not_keep_those_after_it_apart() -> None:
    assert next_run([60, 45, 45, 45, 45], floor=10, full=100, factor=4) == range(1, 3)


def test_the_work_of_a_long_life_is_n_log_n_and_few_pieces_are_left() -> None:
    sizes: list[int] = []
    written, most = 0, 0
    for _ in range(10_000):
        sizes.append(1)
        written += fold_all(sizes, floor=1, full=1 << 30)
        most = max(most, len(sizes))
    assert written <= 10_000 * 7  # log of 10,000 to the base 4
    assert most <= 3 * 7 + 1
    assert sum(sizes) == 10_000


@given(sizes=SIZES)
def test_folding_ends_keeps_what_there_is_and_makes_no_piece_that_is_too_large(sizes: list[int]) -> None:
    total, largest = sum(sizes), max([2_000, *sizes])
    fold_all(sizes)
    assert sum(sizes) == total
    assert max(sizes, default=0) <= largest


class TableModel:
    """The sizes of the runs of one table, as folds make them: rows and deletions of each, oldest first."""

    def __init__(self) -> None:
        self.runs: list[tuple[int, int]] = []
        self.live = self.written = self.came = 0

    def flush(self, puts: int, deletes: int) -> None:
        self.live += puts - deletes
        self.came += puts + deletes
        rows = puts + deletes
        while self.runs and self.runs[-1][0] <= max(SMALL, rows):
            before, gone = self.runs.pop()
            rows, deletes = rows + before, deletes + gone
        self._add(rows, deletes)
        while (run := runs_to_merge(self.runs, small=SMALL)) is not None:
            rows, deletes = (sum(each[part] for each in self.runs[run.start : run.stop]) for part in (0, 1))
            after = self.runs[run.stop :]
            del self.runs[run.start :]
            self._add(rows, deletes)
            self.runs += after

    def _add(self, rows: int, deletes: int) -> None:
        if not self.runs:
            # The oldest run has live rows only, less than those which newer runs delete.
            rows, deletes = min(self.live, rows), 0
        self.runs.append((rows, deletes))
        self.written += rows

    @property
    def stored(self) -> int:
        return sum(rows for rows, _ in self.runs)


SMALL = 256
FLUSHES_A_DAY = 86_400 // 16


@pytest.mark.parametrize("days", [7, pytest.param(365, marks=pytest.mark.more)])
def test_a_year_of_trickle_leaves_few_dead_rows_and_writes_each_row_few_times(days: int) -> None:
    tables = {"queue": TableModel(), "ledger": TableModel(), "epoch": TableModel()}
    for flush in range(days * FLUSHES_A_DAY):  # 5 files a second, an epoch a second, an hour of retained epochs
        tables["queue"].flush(80, 80)
        tables["ledger"].flush(80, 0)
        tables["epoch"].flush(16, 592 if flush > 225 and flush % 37 == 0 else 0)
        for name, table in tables.items():
            assert table.stored <= 1.5 * table.live + 2 * SMALL, name
    assert tables["ledger"].written <= 14 * tables["ledger"].came
    assert len(tables["ledger"].runs) <= 30


def test_bursts_leave_few_dead_rows() -> None:
    queue = TableModel()
    for burst in (1_000_000, 10_000, 300_000):
        queue.flush(burst, 0)
        while queue.live:
            queue.flush(0, min(queue.live, 2_000))
            assert queue.stored <= 1.5 * queue.live + 2_000 + SMALL

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from state.clock import ManualClock
from state.epoch import TERMS, epoch_time, next_epoch

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.more_after(3)
@pytest.mark.parametrize(("every_s", "epochs"), [(60.0, 1), (10.0, 1), (1.0, 16), (0.002, 64)])
def test_epochs_of_many_runs_stay_with_the_clock(every_s: float, epochs: int) -> None:
    clock, head = ManualClock(START), 0
    for term in range(1, 100_001):
        for _ in range(epochs if term % 100 == 0 else 1):
            following = next_epoch(clock, head, term)
            assert following > head
            head = following
        if term % 100 == 0:
            assert timedelta(0) <= epoch_time(head) - clock.now() <= timedelta(milliseconds=2)
        clock.advance(every_s)


def test_a_clock_that_stands_is_left_behind_by_a_millisecond_in_64_epochs() -> None:
    clock, head = ManualClock(START), 0
    for _ in range(64_000):
        head = next_epoch(clock, head, term=7)
    assert epoch_time(head) - clock.now() <= timedelta(seconds=1)


def test_a_head_that_is_ahead_of_the_clock_is_caught_up_with() -> None:
    clock = ManualClock(START)
    head = ahead = next_epoch(clock, 0, term=1) + (3_000 << 16)
    for _ in range(40):
        clock.advance(0.1)
        head = next_epoch(clock, head, term=1)
    assert head > ahead and epoch_time(head) == clock.now()


def test_no_two_of_many_terms_that_commit_nothing_make_the_same_epoch() -> None:
    clock = ManualClock(START)  # it stands, and every term begins with the same head
    for head in (0, next_epoch(clock, 0, term=5), (1 << 56) + 12_345):
        made: set[int] = set()
        for term in range(3, 3 + TERMS):
            epoch = head
            for _ in range(20):
                epoch = next_epoch(clock, epoch, term)
                assert epoch > head and epoch not in made
                made.add(epoch)

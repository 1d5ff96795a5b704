"""Tests of the guard of removals: the files that may go at once, and the ways out of a pause."""

from __future__ import annotations

import pytest

from actors.listing.removal_guard import RemovalGuard


@pytest.mark.parametrize(
    ("missing", "known", "paused"),
    [(0, 0, 0), (100, 200, 0), (101, 200, 101), (101, 505, 0), (102, 505, 102), (1, 1, 1), (2, 3, 0), (3, 3, 3)],
)
def test_many_files_and_a_large_share_of_them_pause_as_do_all_files(missing: int, known: int, paused: int) -> None:
    guard = RemovalGuard(0.2, 100)
    guard.decide(missing, known, 0.0)
    assert guard.paused == paused


@pytest.mark.parametrize(("share", "paused"), [(1.0, 0), (0.0, 500)])
def test_a_share_of_one_pauses_nothing_and_a_share_of_nothing_everything(share: float, paused: int) -> None:
    guard = RemovalGuard(share, 0)
    guard.decide(500, 500, 0.0)
    assert guard.paused == paused
    guard.decide(1, 500, 0.0)
    assert guard.paused == bool(paused)


def test_files_that_go_one_by_one_count_together_for_ten_minutes() -> None:
    guard = RemovalGuard(0.2, 100)
    for second in range(2):
        guard.decide(100, 1_000 - 100 * second, float(second))
        assert guard.paused == 0
        guard.on_removed(100, float(second))
    guard.decide(1, 800, 2.0)
    assert guard.paused == 1
    guard.decide(1, 800, 599.0)
    assert guard.paused == 1
    guard.decide(1, 800, 600.0)
    assert guard.paused == 0, "the first hundred is longer ago"


def test_the_files_that_are_paused_are_allowed_and_no_others() -> None:
    guard = RemovalGuard(0.2, 100)
    guard.decide(500, 1_000, 0.0)
    guard.allow()
    assert guard.paused == 500, "until the next listing"
    guard.decide(500, 1_000, 1.0)
    assert guard.paused == 0
    guard.on_removed(300, 1.0)
    guard.go_on(200)
    guard.decide(200, 700, 2.0)
    assert guard.paused == 0, "in portions"
    guard.on_removed(200, 2.0)
    guard.decide(101, 500, 3.0)
    assert guard.paused == 101


def test_what_is_back_is_not_allowed_to_go_again() -> None:
    guard = RemovalGuard(0.2, 100)
    guard.decide(500, 1_000, 0.0)
    guard.allow()
    guard.go_on(0)
    assert guard.paused == 0
    guard.decide(500, 1_000, 2.0)
    assert guard.paused == 500


def test_an_approval_without_a_pause_allows_nothing() -> None:
    guard = RemovalGuard(0.2, 100)
    guard.allow()
    guard.decide(500, 1_000, 0.0)
    assert guard.paused == 500

from __future__ import annotations

import random

import pytest

from actors.listing.listing_pace import ListingPace
from actors.listing.request_budget import RequestBudget


def most_in_an_hour(made: list[tuple[float, int]]) -> int:
    return max(sum(n for at, n in made if start <= at < start + 3_600.0) for start, _ in made)


@pytest.mark.parametrize("seed", range(5))
def test_no_hour_has_more_requests_than_agreed_and_a_wait_is_long_enough(seed: int) -> None:
    rng, now_s, made = random.Random(seed), 0.0, []
    budget = RequestBudget(50)
    for _ in range(400):
        now_s += rng.choice((0.0, 0.01, 0.7, 30.0, 400.0))
        wait_s = budget.wait_s(now_s)
        assert (wait_s > 0) == (budget.left(now_s, 8) == 0)
        now_s += wait_s
        requests = budget.left(now_s, rng.randint(1, 8))
        assert requests > 0
        budget.take(requests, now_s)
        made.append((now_s, requests))
    assert most_in_an_hour(made) <= 50
    assert sum(n for _, n in made) > 1.5 * 50, "and more than one hour was needed"


def test_a_wait_is_no_longer_than_needed() -> None:
    budget = RequestBudget(2)
    budget.take(1, 0.0)
    budget.take(1, 100.0)
    assert budget.wait_s(200.0) == pytest.approx(3_401.0)
    assert budget.left(3_601.0, 8) == 1


def test_who_goes_on_with_a_budget_keeps_it() -> None:
    made = [(0.0, 10), (1_000.0, 10), (3_500.0, 10)]
    first = RequestBudget(30)
    for at_s, requests in made:
        first.take(requests, at_s)
    # Another process has another clock.
    second = RequestBudget(30, first.spent(3_550.0), now_s=10.0)
    assert second.left(10.0, 8) == 0
    for at_s in (50.0, 130.0, 1_000.0, 2_500.0, 3_600.0):
        free = 30 - sum(n for made_s, n in made if made_s > at_s + 3_540.0 - 3_600.0)
        assert free - 10 <= second.left(at_s, 30) <= free
    assert second.left(3_700.0, 30) == 30, "a minute later at the latest"
    assert RequestBudget(30, first.spent(8_000.0)).left(0.0, 30) == 30


def test_without_a_limit_nothing_waits_and_all_is_counted() -> None:
    budget = RequestBudget(None)
    budget.take(10**6, 0.0)
    assert (budget.wait_s(0.0), budget.left(0.0, 8), budget.last_hour(0.0)) == (0.0, 8, 10**6)


def test_requests_that_were_not_made_are_given_back_at_once_or_never() -> None:
    budget = RequestBudget(10)
    budget.take(8, 0.0)
    budget.give_back(3, 0.5)
    assert budget.last_hour(1.0) == 5
    budget.give_back(3, 2.0)
    assert budget.last_hour(2.0) == 5, "an hour must not lose what it has used"


def listing(pace: ListingPace, began_s: float, ended_s: float, pages: int) -> None:
    pace.begin(began_s)
    for _ in range(pages):
        assert pace.ask(1, began_s) == 1
        pace.on_page(1, began_s)
    pace.end(ended_s)


def test_the_interval_counts_from_the_end_of_a_listing() -> None:
    pace = ListingPace(10.0, RequestBudget(3_600))
    listing(pace, 100.0, 102.0, pages=3)
    assert pace.next_s(105.0, is_listing=False) == 112.0
    assert (pace.period_s, pace.stretched_by) == (12.0, None)


def test_a_listing_of_n_requests_is_made_an_nth_as_often() -> None:
    pace = ListingPace(10.0, RequestBudget(600))
    listing(pace, 0.0, 1.0, pages=100)
    assert pace.next_s(5.0, is_listing=False) == 600.0
    assert (pace.period_s, pace.stretched_by) == (600.0, "max_requests_per_hour")


def test_a_listing_that_takes_longer_than_the_interval_says_so() -> None:
    pace = ListingPace(10.0, RequestBudget(None))
    listing(pace, 0.0, 25.0, pages=3)
    assert (pace.period_s, pace.stretched_by) == (35.0, "listing takes longer")


def test_the_pages_of_one_long_listing_wait() -> None:
    pace = ListingPace(10.0, RequestBudget(5))
    pace.begin(0.0)
    assert pace.ask(8, 0.0) == 5
    pace.on_page(5, 0.0)
    assert pace.next_s(1.0, is_listing=True) == pytest.approx(3_601.0)
    assert pace.ask(8, 3_601.0) == 5


def test_retries_are_paid_for() -> None:
    pace = ListingPace(10.0, RequestBudget(5))
    pace.begin(0.0)
    assert pace.ask(1, 0.0) == 1
    pace.on_page(4, 0.0)
    assert pace.budget.last_hour(0.0) == 4


def test_while_files_wait_listings_take_a_tenth_of_the_time_and_no_longer_than_they_wait() -> None:
    pace = ListingPace(1.0, RequestBudget(None))
    pace.begin(0.0)
    pace.end(2.0, is_busy=True)
    assert (pace.period_s, pace.stretched_by) == (20.0, "files wait to be read")
    assert pace.next_s(5.0, is_listing=False, is_busy=True) == 20.0
    assert pace.next_s(5.0, is_listing=False) == 5.0, "the files were read meanwhile"
    pace.begin(5.0)
    pace.end(5.05, is_busy=True)
    assert pace.period_s == pytest.approx(1.05) and pace.stretched_by is None, "a short one costs little"


def test_a_second_look_at_settling_files_does_not_wait_for_readers() -> None:
    pace = ListingPace(10.0, RequestBudget(None))
    pace.begin(0.0)
    pace.end(3.0, 1.0, is_busy=True)
    assert pace.next_s(3.5, is_listing=False, is_busy=True) == 4.0

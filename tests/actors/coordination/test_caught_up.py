"""Marks: reached when everything listed up to them is finished and committed."""

from __future__ import annotations

from actors.coordination.caught_up import CaughtUp
from actors.protocol.reports import CollectReport

LISTS = {"list-s": "s", "list-t": "t"}


def over(
    made: CaughtUp,
    epoch: int,
    marks: tuple[int, int],
    since: dict[str, int] | None = None,
    closed: frozenset[str] = frozenset(),
) -> int:
    reports = {
        "list-s": CollectReport("list-s", epoch, complete_mark=marks[0]),
        "list-t": CollectReport("list-t", epoch, complete_mark=marks[1]),
        "fetch-0": CollectReport("fetch-0", epoch, unfinished_since=since or {}),
    }
    made.on_epoch_over(epoch, reports, closed)
    return made.reached


def test_a_mark_is_reached_when_all_lists_are_complete_and_what_they_found_is_finished() -> None:
    made = CaughtUp(LISTS)
    assert over(made, 1, (1, 0)) == 0, "one list is not complete"
    assert over(made, 2, (1, 1), {"s": 1}) == 0, "a file that was listed before is not finished"
    assert over(made, 3, (1, 1), {"s": 2}) == 0, "nor is one of the epoch in which the listing ended"
    assert over(made, 4, (1, 1), {"s": 3}) == 1, "what came later does not matter"


def test_it_is_reached_under_steady_arrivals() -> None:
    made = CaughtUp(LISTS)
    reached = [over(made, epoch, (1, 1), {"s": epoch - 1, "t": epoch}) for epoch in range(1, 5)]
    assert reached == [0, 0, 1, 1]


def test_a_closed_source_does_not_hold_a_mark_up() -> None:
    made = CaughtUp(LISTS)
    assert over(made, 1, (0, 1), {"s": 1}, frozenset({"s"})) == 1


def test_a_source_that_opens_is_waited_for() -> None:
    made = CaughtUp(LISTS)
    assert over(made, 1, (0, 1), {"t": 1}, frozenset({"s"})) == 0
    assert over(made, 2, (0, 1), {"s": 2}) == 0, "its listing is not complete"
    assert over(made, 3, (1, 1), {"s": 2}) == 0
    assert over(made, 4, (1, 1)) == 1


def test_a_mark_that_was_reached_stays_reached() -> None:
    made = CaughtUp(LISTS)
    assert over(made, 1, (0, 1), closed=frozenset({"s"})) == 1
    assert over(made, 2, (0, 1), {"s": 2}) == 1
    assert over(made, 3, (0, 1)) == 1


def test_a_later_mark_is_reached_later() -> None:
    made = CaughtUp(LISTS)
    assert over(made, 1, (1, 1)) == 1
    assert over(made, 2, (2, 1)) == 1
    assert over(made, 3, (2, 2), {"t": 3}) == 1
    assert over(made, 4, (2, 2)) == 2


def test_when_every_source_is_refused_no_mark_waits() -> None:
    made = CaughtUp(LISTS)
    made.make_mark()
    assert over(made, 1, (0, 0), {"s": 1}, closed=frozenset({"s", "t"})) == 2


def test_the_list_actors_name_the_refused_sources() -> None:
    reports = {
        "list-s": CollectReport("list-s", 1, is_refused=True),
        "list-t": CollectReport("list-t", 1),
        "fetch-0": CollectReport("fetch-0", 1),
    }
    assert CaughtUp(LISTS).refused(reports) == {"s"}

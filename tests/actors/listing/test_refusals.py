"""A source whose store or queue refuses its requests pauses, tries again, and goes on by itself."""

from __future__ import annotations

from typing import Any

from actors.listing.instructions import FindDeleted, ReadPage, ReportPause
from actors.listing.list_executor import ListExecutor
from actors.notifications.event_feed import EventFeed
from actors.notifications.event_watch import EventWatch
from actors.notifications.instructions import Receive
from actors.protocol.instructions import WakeAt
from actors.protocol.messages import NewFiles
from actors.sources.path_filter import PathFilter
from state.errors import AccessDeniedError
from tests.actors.flow import AT, INITIAL, barrier, delta_rows, lister, of, page, report, sent

DENIED = AccessDeniedError("s3://raw: access is denied (403 AccessDenied); check the credentials and the permissions")
REASON = f"its listing failed: {DENIED}; it is tried again, at the latest every 60 s, and the source continues then"


def began(**options: Any) -> ListExecutor:
    made = lister(**options)
    made.on_barrier(INITIAL, 0.0)
    return made


def test_a_refused_listing_pauses_the_source_and_is_tried_again_with_growing_pauses() -> None:
    executor = began()
    now_s, pauses = 0.0, []
    for number in range(9):
        instructions = executor.on_refused("listing", DENIED, now_s)
        assert of(ReportPause, instructions) == ([ReportPause(REASON)] if number == 0 else []), (
            "the pause is reported once"
        )
        (wake,) = of(WakeAt, instructions)
        pauses.append(wake.monotonic_s - now_s)
        now_s = wake.monotonic_s
        assert of(ReadPage, executor.on_time(now_s)) == [ReadPage(first=True, most=8)]
    assert pauses == [10.0, 10.0, 10.0, 10.0, 16.0, 32.0, 60.0, 60.0, 60.0], "a listing is due every 10 s"
    assert executor.progress().paused == REASON


def test_a_wait_is_not_held_up_by_the_interval_and_makes_no_further_requests() -> None:
    executor = began()
    executor.on_refused("listing", DENIED, 0.0)
    assert of(ReadPage, executor.on_mark(2, 3.0, at_once=True)) == [], "the pause is kept"
    assert of(ReadPage, executor.on_time(10.0)) == [ReadPage(first=True, most=8)]
    now_s, pauses = 10.0, []
    for _ in range(3):
        (wake,) = of(WakeAt, executor.on_refused("listing", DENIED, now_s))
        pauses.append(wake.monotonic_s - now_s)
        now_s = wake.monotonic_s
        executor.on_time(now_s)
    assert pauses == [2.0, 4.0, 8.0]


def test_a_listing_that_succeeds_ends_the_pause() -> None:
    executor = began()
    executor.on_refused("listing", DENIED, 0.0)
    executor.on_time(10.0)
    found = executor.on_page(page("a.csv"), 10.0)
    assert of(ReportPause, found) == [ReportPause(None)] and executor.progress().paused is None
    assert [each.path for message in sent(found) if isinstance(message, NewFiles) for each in message.files] == [
        "a.csv"
    ]


def test_the_pause_and_its_end_are_each_recorded_in_an_epoch() -> None:
    executor = began()
    before = executor.progress().activity
    executor.on_refused("listing", DENIED, 0.0)
    assert executor.progress().activity > before, "an epoch begins"
    assert delta_rows(executor.on_barrier(barrier(1), 0.0), "list_state")
    executor.on_time(10.0)
    executor.on_page(page(), 10.0)
    assert delta_rows(executor.on_barrier(barrier(2), 10.0), "list_state")


def test_a_listing_that_was_refused_after_some_pages_removes_no_file() -> None:
    executor = began(removes=True)
    executor.on_page(page("a.csv", "b.csv"), 0.0)
    executor.on_listing_end(0.0, AT)
    executor.on_barrier(barrier(1), 0.0)
    now_s = 10.0
    for _ in range(4):
        executor.on_time(now_s)
        executor.on_page(page("a.csv"), now_s)
        instructions = executor.on_refused("listing", DENIED, now_s)
        assert of(FindDeleted, instructions) == []
        now_s += 100.0
    executor.on_time(now_s)
    executor.on_page(page("a.csv", "b.csv"), now_s)
    assert of(FindDeleted, executor.on_listing_end(now_s, AT)) == []


def test_a_source_that_is_refused_three_times_in_a_row_is_not_waited_for() -> None:
    executor, told = began(), []
    for epoch in range(1, 4):
        executor.on_refused("listing", DENIED, 0.0)
        told.append(report(executor.on_barrier(barrier(epoch), 0.0)).is_refused)
    assert told == [False, False, True]
    executor.on_time(1_000.0)
    executor.on_page(page(), 1_000.0)
    assert not report(executor.on_barrier(barrier(4), 1_000.0)).is_refused


def test_a_refused_queue_pauses_the_source_until_it_answers() -> None:
    feed = EventFeed(
        queue="q", bucket="raw", prefix="", path_filter=PathFilter("**"), visibility_s=60, most_messages=100
    )
    executor = lister(events=EventWatch(feed, 1))
    receive = of(Receive, executor.on_barrier(INITIAL, 0.0))[0]
    told = executor.on_refused("queue", DENIED, 0.0)
    assert [each.reason for each in of(ReportPause, told)] == [REASON.replace("listing", "queue")]
    assert executor.retry_s == 1.0
    executor.on_refused("queue", DENIED, 1.0)
    assert executor.retry_s == 2.0
    assert of(ReportPause, executor.on_messages(receive, [], None, 3.0)) == [ReportPause(None)]

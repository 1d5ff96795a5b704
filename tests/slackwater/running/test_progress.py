"""Tests of the progress of sources over several attempts, and of the discovery of their files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from actors.protocol.counters import SourceProgress
from actors.protocol.reports import FetchProgress, ListProgress, MessageProgress
from actors.protocol.run_state import Recovered, RunState
from slackwater.running.progress import RunProgress
from slackwater.status.run_status import MessageStatus, SourceStatus
from state.clock import ManualClock
from state.tables.discovery_progress import DiscoveryProgress, QueueProgress
from tests.slackwater.reading.notified_root import QUEUE
from tests.slackwater.reading.written_root import START

NOW_S = START.timestamp()
LISTED = START - timedelta(hours=3)


def progress() -> RunProgress:
    """A source with a queue and one without; an attempt has begun."""
    made = RunProgress(["told", "listed"], ManualClock(START), {"told": QUEUE})
    made.begin(recovered(), RunState(0, "starting", 0, 0))
    return made


def recovered(finished: Mapping[str, SourceProgress] | None = None) -> Recovered:
    return Recovered(1, 0, None, {}, {}, {}, frozenset(), finished or {})


def state(*lists: ListProgress) -> RunState:
    return RunState(1, "running", 1, 0, lists=lists)


def told(messages: MessageProgress | None, **fields: object) -> ListProgress:
    known: dict[str, object] = {"period_s": 60.0, "listed_at": LISTED, "found": 4, **fields}
    return ListProgress("list-told", "told", messages=messages, **known)  # type: ignore[arg-type]


def listed(**fields: object) -> ListProgress:
    return ListProgress("list-listed", "listed", period_s=10.0, **fields)  # type: ignore[arg-type]


BUSY = MessageProgress(received=9, redelivered=2, poison=1, deleted=6, tracked=3, oldest_sent_s=NOW_S - 12)


def test_a_source_with_a_queue_tells_of_its_messages_and_another_does_not() -> None:
    sources = progress().sources(state(told(BUSY), listed(listed_at=START, found=7)))
    assert sources["told"].messages == MessageStatus(QUEUE, 3, 12.0, received=9, redelivered=2, poison=1, deleted=6)
    assert (sources["told"].listed_at, sources["told"].found) == (LISTED, 4)
    assert sources["listed"].messages is None
    assert (sources["listed"].listed_at, sources["listed"].found) == (START, 7)
    idle = progress().sources(state(told(MessageProgress(received=9, deleted=9)))).get("told")
    assert idle is not None and idle.messages == MessageStatus(QUEUE, received=9, deleted=9)


def test_the_messages_of_all_attempts_are_added_up_but_for_those_that_are_being_worked_on() -> None:
    made, failed = progress(), state(told(BUSY))
    made.begin(recovered(), failed)
    starting = made.sources(state(ListProgress("list-told", "told")))["told"].messages
    assert starting == MessageStatus(QUEUE, received=9, redelivered=2, poison=1, deleted=6)
    second = state(told(MessageProgress(received=4, redelivered=3, deleted=1, tracked=3, oldest_sent_s=NOW_S - 40)))
    again = made.sources(second)["told"].messages
    assert again == MessageStatus(QUEUE, 3, 40.0, received=13, redelivered=5, poison=1, deleted=7)
    made.begin(recovered(), second)
    third = made.sources(state(told(BUSY)))["told"].messages
    assert third is not None and (third.received, third.deleted, third.in_flight) == (22, 13, 3)


def test_the_last_listing_is_that_of_any_attempt() -> None:
    made = progress()
    made.begin(recovered(), state(told(BUSY, listed_at=START, found=0)))
    # The new list actor knows the store, where nothing is written of a listing that found nothing.
    now = made.sources(state(told(None, listed_at=LISTED, found=4)))["told"]
    assert (now.listed_at, now.found) == (START, 0)
    later = made.sources(state(told(None, listed_at=START + timedelta(hours=1), found=2)))["told"]
    assert (later.listed_at, later.found) == (START + timedelta(hours=1), 2)


def test_others_are_told_what_list_actors_have_said_and_nothing_before() -> None:
    made = progress()
    assert made.discovery(state(ListProgress("list-told", "told"), listed())) == {
        "listed": DiscoveryProgress(None, 0, 10.0, None)
    }
    queue = QueueProgress(QUEUE, 3, START - timedelta(seconds=12), received=9, redelivered=2)
    assert made.discovery(state(told(BUSY)))["told"] == DiscoveryProgress(LISTED, 4, 60.0, queue)


def test_paused_removals_stay_paused_until_a_new_attempt_has_listed_twice() -> None:
    made = progress()
    made.begin(recovered(), state())
    made.begin(recovered(), state(listed(listings=9, paused_removals=7)))
    (source,) = (lister.source for lister in state(listed()).lists)
    for listings, paused in ((1, 7), (2, 0)):
        now = state(listed(listings=listings))
        assert made.sources(now)[source].paused_removals == made.discovery(now)[source].paused_removals == paused


def test_a_source_stays_paused_until_a_new_attempt_has_listed_it() -> None:
    made = progress()
    made.begin(recovered(), state())
    made.begin(recovered(), state(listed(listings=9, paused="a table")))
    (source,) = (lister.source for lister in state(listed()).lists)
    for lister, paused in (
        (listed(listings=0), "a table"),
        (listed(listings=0, paused="another table"), "another table"),
        (listed(listings=1), None),
    ):
        assert made.sources(state(lister))[source].paused == made.discovery(state(lister))[source].paused == paused


def test_the_counts_are_those_of_the_ledger_and_of_what_the_attempt_adds() -> None:
    made = RunProgress(["told", "listed"], ManualClock(START), {})
    found = SourceProgress(done=40, quarantined=1, rows=400, rows_bad=3)
    made.begin(recovered({"listed": found}), RunState(0, "starting", 0, 0))
    assert made.sources(state())["listed"] == SourceStatus(done=40, quarantined=1, rows=400, rows_bad=3, before=found)
    # The quarantined file is read after all.
    retried = FetchProgress("fetch-0", sources={"listed": SourceProgress(done=1, quarantined=-1, rows=10, requests=1)})
    running = replace(state(listed(requests=2)), fetchers=(retried,))
    now = made.sources(running)["listed"]
    assert (now.done, now.quarantined, now.rows, now.rows_bad, now.requests) == (41, 0, 410, 3, 3)
    # The next attempt finds what that one has committed; requests were made.
    made.begin(recovered({"listed": SourceProgress(done=41, rows=410, rows_bad=3)}), running)
    again = made.sources(state(listed(requests=1)))["listed"]
    assert (again.done, again.quarantined, again.rows, again.requests) == (41, 0, 410, 4)
    made.begin(recovered({"listed": SourceProgress(done=41, rows=410, rows_bad=3)}), state(listed(requests=1)))
    assert made.sources(state(listed(requests=5)))["listed"].requests == 9
    assert again.before == found

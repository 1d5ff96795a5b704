"""Discovery of a source's files as readers of a root are told it, with a queue of events and without."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from slackwater.reading.store import Store
from state.clock import ManualClock
from tests.slackwater.reading.notified_root import DAY_S, QUEUE, RunningRun, handed_on, poisoned, said
from tests.slackwater.reading.written_root import START, WrittenRoot

UNSEEN, NEVER = "day=3/unseen.csv", "day=9/none.csv"
NOBODY = "and no pipeline runs on this root now"


def opened(written: WrittenRoot, *, hours: float = 0.0) -> Store:
    """The store as it is read so many hours after the start."""
    return Store(written.root, ManualClock(START + timedelta(hours=hours)))


def row(store: Store) -> dict[str, Any]:
    (source,) = store.ledger.sources().to_pylist()
    known: dict[str, Any] = source
    return known


def test_a_source_without_a_queue_tells_nothing_of_one(written: WrittenRoot) -> None:
    handed_on(written.root, **dict.fromkeys(("queue", "messages", "redelivered", "poison", "tracked")))
    assert row(opened(written))["queue"] is None
    text = opened(written).ledger.why(UNSEEN).text
    assert text.endswith(
        f"but no listing has found it yet; the last listing ended at 2026-01-31 12:00:00 UTC, {NOBODY}."
    )


def test_what_a_run_says_counts_while_it_runs(written: WrittenRoot) -> None:
    handed_on(written.root)
    poisoned(written.root, ("m1", "{}"))
    with RunningRun(written.root, said()):
        told = row(opened(written, hours=2.01))
    assert told["listed_at"] == START + timedelta(hours=2)
    assert told["queue"] == {
        "url": QUEUE,
        "in_flight": 3,
        "oldest_s": pytest.approx(36),
        "received": 90,
        "redelivered": 6,
        "poison": 1,
        "found_by_listing": 0,
    }


def test_nobody_works_on_messages_when_nobody_runs(written: WrittenRoot) -> None:
    handed_on(written.root)
    told = row(opened(written))
    assert told["queue"] == {
        "url": QUEUE,
        "in_flight": 0,
        "oldest_s": None,
        "received": 40,
        "redelivered": 5,
        "poison": 0,
        "found_by_listing": 2,
    }
    with RunningRun(written.root, said()):
        pass
    told = row(opened(written, hours=3))
    assert (told["queue"]["in_flight"], told["queue"]["oldest_s"], told["queue"]["received"]) == (0, None, 90)
    assert told["listed_at"] == START + timedelta(hours=2), "what the last run has said is still known"


def test_what_an_owner_has_not_said_the_store_knows(written: WrittenRoot) -> None:
    """A run that was killed may have said it before its last commit."""
    handed_on(written.root, listed_at=START + timedelta(hours=5), found=8)
    with RunningRun(written.root, said()):
        told = row(opened(written, hours=6))
        assert (told["listed_at"], told["queue"]["found_by_listing"]) == (START + timedelta(hours=5), 8)


def test_a_queue_is_known_before_the_first_listing_has_ended(written: WrittenRoot) -> None:
    handed_on(written.root, queue=None, listed_at=None, found=0)
    told = row(opened(written))
    assert told["queue"]["url"] is None and told["queue"]["received"] == 40
    text = opened(written).ledger.why(UNSEEN).text
    assert f"; nothing was listed yet, {NOBODY}; 0 messages of its queue are in flight, 5 came again." in text


@pytest.mark.parametrize(
    ("path", "status", "begins"),
    [
        (UNSEEN, "not_listed", "but neither a listing nor an event has named it yet; the last listing ended at"),
        (NEVER, "absent", "was never listed, no event has named it, and it is not there now; the last listing ended"),
    ],
)
def test_what_was_not_found_is_told_with_the_last_listing_the_next_one_and_the_messages(
    written: WrittenRoot, path: str, status: str, begins: str
) -> None:
    handed_on(written.root)
    with RunningRun(written.root, said()):
        history = opened(written, hours=2.01).ledger.why(path)
    assert history.status == status and begins in history.text
    assert history.text.endswith(
        "the last listing ended at 2026-01-31 14:00:00 UTC, and the next one begins at 2026-02-01 14:00:00 UTC at the "
        "latest; 3 messages of its queue are in flight, the oldest was sent 36 s ago, 6 came again."
    )


def test_poison_is_told_since_it_may_be_the_event_of_the_file(written: WrittenRoot) -> None:
    handed_on(written.root, redelivered=0)
    poisoned(written.root, ("m1", "{}"), ("m2", "[]"))
    with RunningRun(written.root, said(1)):
        assert "1 message of its queue is in flight, " in (text := opened(written).ledger.why(UNSEEN).text)
        assert text.endswith("6 came again, 2 are in quarantine as poison.")


@pytest.mark.more_after(1)
@pytest.mark.parametrize(
    ("hours", "runs", "told"),
    [
        (1, False, f"the next one is due at 2026-02-01 12:00:00 UTC, {NOBODY}; 0 messages"),
        (25, False, f"the next one begins with the next run, {NOBODY}; 0 messages"),
        (27, True, "and the next one is due now; 3 messages"),
    ],
)
def test_the_next_listing_is_told_as_far_as_it_is_known(
    written: WrittenRoot, hours: float, runs: bool, told: str
) -> None:
    handed_on(written.root)
    if not runs:
        assert told in opened(written, hours=hours).ledger.why(UNSEEN).text
        return
    with RunningRun(written.root, said()):
        assert told in opened(written, hours=hours).ledger.why(UNSEEN).text


def test_a_period_that_was_not_recorded_is_not_made_up(written: WrittenRoot) -> None:
    handed_on(written.root, period_s=None)
    assert "next one" not in opened(written).ledger.why(UNSEEN).text


def test_the_listings_of_one_source_say_nothing_of_another(written: WrittenRoot) -> None:
    handed_on(written.root)
    run = RunningRun(written.root, said())
    with run as ownership:
        ownership.update(sources={"other": said(9, listed_at=START + timedelta(days=9))})
        ownership.renew()
        assert "ended at 2026-01-31 14:00:00 UTC" in opened(written, hours=3).ledger.why(UNSEEN).text
    assert row(opened(written))["period_s"] == DAY_S

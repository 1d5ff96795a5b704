"""Poison messages among the bad records: in the table, over time, and when they are cleared."""

from __future__ import annotations

import pytest

import slackwater as sw
from state.clock import ManualClock
from state.lance.lance_store import LanceStateStore
from state.upkeep.quarantine import clear_quarantine, poison_messages
from tests.slackwater.reading.bad_records import DONE, quarantine, rows_bad
from tests.slackwater.reading.notified_root import OTHER_BUCKET, QUEUE, poisoned
from tests.slackwater.reading.written_root import WrittenRoot

BODY = '{"Records": "häh"}'


def test_a_message_has_its_queue_for_a_path_and_its_body_and_no_row(written: WrittenRoot) -> None:
    first = quarantine(written, DONE, (1, b"AA", "1 column"))
    second = poisoned(written.root, ("m2", ""), ("m1", BODY))
    store = sw.open(written.root.url)
    record, *messages = sorted(store.ledger.quarantine("flights").to_pylist(), key=lambda row: row["row"] is None)
    assert (record["path"], record["row"], record["epoch"]) == (f"{written.raw.url}/{DONE}", 1, first)
    assert messages == [
        {
            "source": "flights",
            "path": f"{QUEUE}#{message_id}",
            "row": None,
            "raw": body,
            "reason": OTHER_BUCKET,
            "epoch": second,
        }
        for message_id, body in (("m1", BODY.encode()), ("m2", b""))
    ]
    assert store.snapshot(first).quarantine().num_rows == 1, "a snapshot has those of its moment"


def test_the_ledger_knows_nothing_of_messages(written: WrittenRoot) -> None:
    before = sw.open(written.root.url).ledger.files().to_pylist()
    poisoned(written.root, ("m1", BODY))
    store = sw.open(written.root.url)
    assert store.ledger.files().to_pylist() == before
    assert rows_bad(before)["b.csv"] == 1
    assert store.ledger.why(DONE).first_bad == ""
    assert store.ledger.why(f"{QUEUE}#m1").status == "outside"


def test_nothing_is_left_of_a_message_that_is_cleared_and_of_a_record_its_place(written: WrittenRoot) -> None:
    quarantine(written, DONE, (1, b"AA", "1 column"))
    last = poisoned(written.root, ("m1", BODY), ("m2", BODY))
    later = poisoned(written.root, ("m3", BODY))
    owner = LanceStateStore.open(written.root, ManualClock())
    assert clear_quarantine(owner, "other", later) == 0
    assert clear_quarantine(owner, None, last) == 3, "later ones stay"
    owner = owner.reopen()
    assert poison_messages(owner, "flights")["path"].to_pylist() == [f"{QUEUE}#m3"]
    assert clear_quarantine(owner, "flights", later) == 1
    kept = owner.reopen().scan("quarantine").select(["path", "row", "raw", "reason"]).to_pylist()
    assert [tuple(row.values()) for row in kept] == [(DONE, 1, None, None)]
    store = sw.open(written.root.url)
    assert store.ledger.quarantine().num_rows == 0
    assert store.snapshot(later).quarantine().num_rows == 4, "time travel keeps what was"


def test_a_message_that_comes_again_after_that_is_kept_again(written: WrittenRoot) -> None:
    owner = LanceStateStore.open(written.root, ManualClock())
    clear_quarantine(owner, None, poisoned(written.root, ("m1", BODY)))
    assert clear_quarantine(owner.reopen(), None, owner.reopen().head.epoch) == 1
    poisoned(written.root, ("m1", BODY))
    assert sw.open(written.root.url).ledger.quarantine()["raw"].to_pylist() == [BODY.encode()]


@pytest.mark.more_after(1)
@pytest.mark.parametrize("path", ["http/a.csv", "https:/a.csv", f"{QUEUE}"])
def test_a_record_of_a_file_that_is_called_like_a_queue_is_no_message(written: WrittenRoot, path: str) -> None:
    quarantine(written, path, (0, b"AA", "1 column"))
    poisoned(written.root, ("m1", BODY), source="fligh")
    store = LanceStateStore.open(written.root, ManualClock())
    assert poison_messages(store, "flights").num_rows == 0
    assert poison_messages(store, "fligh").num_rows == 1
    shown = sw.open(written.root.url).ledger.quarantine("flights")["path"].to_pylist()
    assert shown == [f"{written.raw.url}/{path}"]

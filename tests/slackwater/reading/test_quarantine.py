"""Bad records as a table, at the latest epoch and at earlier ones, before and after they are cleared."""

from __future__ import annotations

import pyarrow as pa
import pytest

import slackwater as sw
from state.clock import ManualClock
from state.errors import NotFoundError
from state.lance.lance_store import LanceStateStore
from state.upkeep.quarantine import clear_quarantine
from tests.slackwater.reading.bad_records import BIG, DONE, quarantine, rows_bad
from tests.slackwater.reading.written_root import WrittenRoot

SCHEMA = pa.schema(
    [
        ("source", pa.string()),
        ("path", pa.string()),
        ("row", pa.int64()),
        ("raw", pa.binary()),
        ("reason", pa.string()),
        ("epoch", pa.int64()),
    ]
)


def test_each_bad_record_is_a_row_with_the_epoch_that_quarantined_it(written: WrittenRoot) -> None:
    store = sw.open(written.root.url)
    assert store.ledger.quarantine().schema == SCHEMA and store.ledger.quarantine().num_rows == 0
    first = quarantine(written, BIG, (300, b"\xff", "no UTF-8"), (7, b"x,1", "x is no date"), table="queue")
    second = quarantine(written, DONE, (1, b"AA", "1 column"))
    assert store.ledger.quarantine().schema == SCHEMA
    assert [tuple(row.values()) for row in store.ledger.quarantine("flights").to_pylist()] == [
        ("flights", f"{written.raw.url}/{DONE}", 1, b"AA", "1 column", second),
        ("flights", f"{written.raw.url}/{BIG}", 7, b"x,1", "x is no date", first),
        ("flights", f"{written.raw.url}/{BIG}", 300, b"\xff", "no UTF-8", first),
    ]
    with pytest.raises(NotFoundError, match="no source 'flight'; the sources are: flights"):
        store.ledger.quarantine("flight")


def test_files_count_the_bad_records_of_a_half_read_file_too(written: WrittenRoot) -> None:
    quarantine(written, BIG, (7, b"x", "y"), (8, b"x", "y"), table="queue")
    files = sw.open(written.root.url).ledger.files().to_pylist()
    assert rows_bad(files) == {"a.csv": 0, "b.csv": 1, "big.csv": 2, "bad.csv": 0, "new.csv": None}


def test_a_snapshot_has_the_records_of_its_moment(written: WrittenRoot) -> None:
    first = quarantine(written, BIG, (7, b"x,1", "x is no date"), table="queue")
    second = quarantine(written, DONE, (1, b"AA", "1 column"))
    store = sw.open(written.root.url)
    counts = [store.snapshot(epoch).quarantine("flights").num_rows for epoch in (written.epochs[-1], first, second)]
    assert counts == [0, 1, 2]
    with pytest.raises(NotFoundError, match="no source 'x'"):
        store.snapshot().quarantine("x")


def test_what_is_cleared_is_gone_but_for_its_place_and_its_number(written: WrittenRoot) -> None:
    first = quarantine(written, BIG, (7, b"x,1", "x is no date"), table="queue")
    second = quarantine(written, DONE, (1, b"AA", "1 column"))
    owner = LanceStateStore.open(written.root, ManualClock())
    assert clear_quarantine(owner, "other", second) == 0
    assert clear_quarantine(owner, None, first) == 1, "later ones stay"
    store = sw.open(written.root.url)
    assert store.ledger.quarantine()["row"].to_pylist() == [1]
    assert clear_quarantine(owner, "flights", second) == 1
    assert clear_quarantine(owner, "flights", second) == 0
    assert store.ledger.quarantine().num_rows == 0
    assert rows_bad(store.ledger.files().to_pylist())["big.csv"] == 1
    assert store.snapshot(second).quarantine().num_rows == 2, "time travel keeps what was"
    kept = owner.reopen().scan("quarantine").select(["path", "row", "raw", "reason"]).to_pylist()
    assert sorted(tuple(row.values()) for row in kept) == [(DONE, 1, None, None), (BIG, 7, None, None)]


@pytest.mark.more
def test_the_history_of_a_file_has_its_first_bad_record(written: WrittenRoot) -> None:
    store = sw.open(written.root.url)
    quarantine(written, DONE, (2, b"y", "late one"), (1, b"AA", "1 column"))
    quarantine(written, BIG, (7, b"x,1", "x is no date"), table="queue")
    done, half = store.ledger.why(DONE), store.ledger.why(BIG)
    assert (done.rows_bad, done.first_bad) == (2, "row 1: 1 column")
    assert done.text.endswith(
        "3 rows, 2 of them quarantined. The first bad record, counted from 0, is row 1: 1 column."
    )
    assert "its first 1,000 rows are in the views, except 1 of them, which are quarantined." in half.text
    assert half.text.endswith("The first bad record, counted from 0, is row 7: x is no date.")
    owner = LanceStateStore.open(written.root, ManualClock())
    clear_quarantine(owner, None, owner.head.epoch)
    assert (store.ledger.why(DONE).rows_bad, store.ledger.why(DONE).first_bad) == (2, "")
    assert store.ledger.why(DONE).text.endswith("3 rows, 2 of them quarantined.")
    assert store.ledger.why("day=1/a.csv").first_bad == ""

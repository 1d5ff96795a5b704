"""Tests of replacements: all rows of a file in one epoch, when all are stored, and never beside the old ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.fetching.file_progress import Ending
from actors.fetching.instructions import CloseFile, StagePiece
from actors.files import ForgottenFile, Vanished
from actors.notifications.event_feed import PoisonMessage
from actors.notifications.message_tracker import QueueMessage
from actors.protocol.barrier import Barrier, Pause, Resume
from actors.protocol.blocks import BadRecords, Correction
from actors.protocol.instructions import Send
from actors.protocol.messages import ForgottenFiles, NewFiles, RereadFiles
from actors.protocol.reports import CorrectedFile
from actors.recovery.committed_files import _progress, num_ignored
from actors.rows import BadRecord, Rows
from actors.sources.source import OnChange
from state.tables.delta import DeltaBuilder
from tests.actors.fetching.replacing import STORED, Store, changed, corrections, ended, piece, staged, started
from tests.actors.flow import barrier, delta_rows, emitted, file, files, of, reads, report, rows


def test_nothing_of_a_replacing_file_is_emitted_before_its_end_whatever_epochs_pass() -> None:
    fetch = started()
    later = file("a", "2")
    assert reads(fetch.on_message(changed("a"), 0.0)) == [("a", 0)]
    first = piece(fetch, later, rows(3), last=False)
    assert len(of(StagePiece, first)) == 1 and emitted(first) == [] and reads(first) == []
    sealed = fetch.on_message(barrier(1), 0.0)
    assert corrections(sealed) == [] and report(sealed).counts.rows == 0
    (queued,) = delta_rows(sealed, "queue")
    assert (queued["row_offset"], queued["replaces"]) == (0, True), "no offset is kept of it"
    assert reads(staged(fetch, later)) == [("a", 3)], "it is read on when its rows are stored"
    last = piece(fetch, later, rows(4, 3))
    assert corrections(last) == []
    fetch.on_message(barrier(2), 0.0)
    assert corrections(staged(fetch, later)) == [Correction("s", "a", later.version, (STORED, STORED))]
    sealed = fetch.on_message(barrier(3), 0.0)
    (row,) = delta_rows(sealed, "ledger")
    assert row | {"status": "done", "rows_read": 7, "first_epoch": 3, "done_epoch": 3, "replaces": True} == row
    assert report(sealed).counts.rows == 7 and report(sealed).counts.files == 1
    assert report(sealed).corrected == (CorrectedFile("s", "a", later.version, "replaced"),)


def test_others_go_on_meanwhile_and_an_empty_version_takes_the_old_rows_out() -> None:
    fetch = started()
    fetch.on_message(changed("a"), 0.0)
    piece(fetch, file("a", "2"), rows(3), last=False)
    fetch.on_message(files("b"), 0.0)
    assert emitted(piece(fetch, file("b"), rows(2))) == [] and emitted(fetch.on_message(barrier(1), 0.0)) == [2]
    fetch.on_message(changed("c"), 0.0)
    empty = ended(fetch, file("c", "2"), Ending("done"))
    assert corrections(empty) == [Correction("s", "c", file("c", "2").version)]


def test_a_crash_in_the_middle_reads_the_file_again() -> None:
    fetch = started()
    fetch.on_message(changed("a"), 0.0)
    piece(fetch, file("a", "2"), rows(3), last=False)
    sealed = fetch.on_message(barrier(1), 0.0)
    (row,) = delta_rows(sealed, "queue")
    again = started(_progress(row))
    assert [each.key for each in again._queue.pending] == []
    piece(again, file("a", "2"), rows(5))
    assert corrections(staged(again, file("a", "2"))) == [Correction("s", "a", file("a", "2").version, (STORED,))]


def test_what_cannot_be_read_leaves_the_old_rows_and_the_version_after_it_replaces_them() -> None:
    fetch = started()
    fetch.on_message(changed("a"), 0.0)
    piece(fetch, file("a", "2"), rows(3), last=False)
    staged(fetch, file("a", "2"))
    bad = ended(fetch, file("a", "2"), Ending("quarantined", "row 4: bad"))
    assert corrections(bad) == []
    sealed = fetch.on_message(barrier(1), 0.0)
    row = next(row for row in delta_rows(sealed, "ledger") if row["etag"] == "2")
    assert row | {"status": "quarantined", "rows_read": 0, "rows_bad": 0, "error": "row 4: bad"} == row
    assert report(sealed).corrected == (CorrectedFile("s", "a", file("a", "2").version, "kept"),)
    fetch.on_message(changed("a", "2", "3"), 0.0)
    piece(fetch, file("a", "3"), rows(2))
    assert len(corrections(staged(fetch, file("a", "3")))) == 1


def test_a_version_that_has_vanished_and_comes_as_a_new_file_replaces_too() -> None:
    for fetch in (started(), started(held=[("s", "a")])):
        if not fetch._files.held:
            fetch.on_message(changed("a"), 0.0)
            ended(fetch, file("a", "2"), Ending("vanished", "deleted"))
        fetch.on_message(NewFiles((file("a", "2"),)), 0.0)
        assert emitted(piece(fetch, file("a", "2"), rows(2))) == []
        assert len(corrections(staged(fetch, file("a", "2")))) == 1


@pytest.mark.parametrize("is_deleted", [False, True])
@pytest.mark.parametrize("on_change", ["replace", "append"])
def test_a_vanished_version_notes_that_its_object_is_deleted_only_where_no_rows_have_to_leave(
    *, is_deleted: bool, on_change: OnChange
) -> None:
    fetch = started(on_change=on_change, held=[("s", "a")])
    fetch.on_message(NewFiles((file("a", "2"),)), 0.0)
    piece(fetch, file("a", "2"), rows(1), last=False)
    staged(fetch, file("a", "2"))
    ended(fetch, file("a", "2"), Ending("vanished", "deleted", is_deleted=is_deleted))
    sealed = fetch.on_message(barrier(1), 0.0)
    (row,) = delta_rows(sealed, "ledger")
    assert (row["deleted_epoch"] is not None) == (is_deleted and on_change == "append")
    assert report(sealed).vanished == (Vanished("s", "a", file("a", "2").version, replaces=on_change == "replace"),)


def test_of_a_corrected_object_no_other_row_comes_in_the_same_epoch() -> None:
    fetch = started()
    fetch.on_message(changed("a"), 0.0)
    piece(fetch, file("a", "2"), rows(1))
    staged(fetch, file("a", "2"))
    assert reads(fetch.on_message(changed("a", "2", "3"), 0.0)) == []
    assert reads(fetch.on_message(barrier(1), 0.0)) == [("a", 0)]


def test_a_paused_source_shows_no_correction_until_it_goes_on() -> None:
    fetch = started()
    fetch.on_message(changed("a"), 0.0)
    piece(fetch, file("a", "2"), rows(1))
    fetch.on_message(barrier(1, Pause()), 0.0)
    assert corrections(staged(fetch, file("a", "2"))) == []
    assert len(corrections(fetch.on_message(barrier(2, Resume()), 0.0))) == 1


def test_bad_records_are_kept_when_the_file_is_shown() -> None:
    fetch = started()
    fetch.on_message(changed("a"), 0.0)
    bad = Rows(rows(2).table, 0, (BadRecord(2, b"x", "no number"),))
    piece(fetch, file("a", "2"), bad, last=False)
    assert delta_rows(fetch.on_message(barrier(1), 0.0), "quarantine") == []
    staged(fetch, file("a", "2"))
    piece(fetch, file("a", "2"), rows(1, 3))
    staged(fetch, file("a", "2"))
    sealed = fetch.on_message(barrier(2), 0.0)
    assert [row["row"] for row in delta_rows(sealed, "quarantine")] == [2]
    (row,) = delta_rows(sealed, "ledger")
    assert (row["rows_read"], row["rows_bad"], report(sealed).counts.rows) == (4, 1, 3)
    told = [each.message for each in of(Send, sealed)]
    counted = told.index(BadRecords({"s": 1}))
    assert isinstance(told[counted + 1], Barrier), "they are of the epoch that ends"
    assert not any(isinstance(each.message, BadRecords) for each in of(Send, fetch.on_message(barrier(3), 0.0)))


def test_a_half_read_file_is_forgotten_with_what_is_read_of_it_just_now() -> None:
    fetch = started(on_change="ignore")
    fetch.on_message(files("a"), 0.0)
    piece(fetch, file("a"), rows(3), last=False)
    fetch.on_message(barrier(1), 0.0)
    told = fetch.on_message(ForgottenFiles((ForgottenFile("s", "a"),)), 0.0)
    assert corrections(told) == [Correction("s", "a")]
    late = piece(fetch, file("a"), rows(2, 3))
    assert emitted(late) == [] and len(of(CloseFile, late)) == 1
    sealed = fetch.on_message(barrier(2), 0.0)
    assert emitted(sealed) == [], "rows that were read and wait are deleted, too"
    (row,) = delta_rows(sealed, "ledger")
    assert (row["status"], row["rows_read"]) == ("forgotten", 3)
    assert report(sealed).corrected == (CorrectedFile("s", "a", None, "forgotten"),)
    progress = fetch.progress().sources["s"]
    assert (progress.waiting, progress.reading) == (0, 0)


def test_a_half_read_file_is_read_again_from_its_beginning_and_its_rows_stay_until_then() -> None:
    fetch = started(on_change="ignore")
    fetch.on_message(files("a"), 0.0)
    piece(fetch, file("a"), rows(3), last=False)
    fetch.on_message(barrier(1), 0.0)
    assert reads(fetch.on_message(RereadFiles((file("a"),)), 0.0)) == [], "a read of it is on its way"
    assert reads(piece(fetch, file("a"), rows(2, 3))) == [("a", 0)]
    sealed = fetch.on_message(barrier(2), 0.0)
    (row,) = delta_rows(sealed, "ledger")
    assert (row["status"], row["rows_read"]) == ("quarantined", 3)
    piece(fetch, file("a"), rows(6))
    assert len(corrections(staged(fetch, file("a")))) == 1
    (row,) = delta_rows(fetch.on_message(barrier(3), 0.0), "ledger")
    assert (row["status"], row["rows_read"]) == ("done", 6)


def test_a_file_is_read_again_in_another_version_than_the_one_that_is_being_read() -> None:
    fetch = started(on_change="ignore")
    fetch.on_message(files("a"), 0.0)
    fetch.on_message(RereadFiles((file("a", "2"),)), 0.0)
    assert emitted(piece(fetch, file("a"), rows(1))) == []
    piece(fetch, file("a", "2"), rows(4))
    staged(fetch, file("a", "2"))
    ledger = delta_rows(fetch.on_message(barrier(1), 0.0), "ledger")
    assert {(row["etag"], row["status"], row["rows_read"]) for row in ledger} == {
        ("1", "vanished", 0),
        ("2", "done", 4),
    }


def test_the_commit_says_which_versions_were_replaced_and_forgotten(tmp_path: Path) -> None:
    store, fetch = Store(tmp_path / "root"), started()
    fetch.on_message(files("a"), 0.0)
    bad = Rows(rows(2).table, 0, (BadRecord(2, b"x", "no number"),))
    piece(fetch, file("a"), bad)
    store.commit(1, fetch.on_message(barrier(1), 0.0))
    fetch.on_message(changed("a"), 0.0)
    piece(fetch, file("a", "2"), rows(4))
    staged(fetch, file("a", "2"))
    store.commit(2, fetch.on_message(barrier(2), 0.0))
    assert store.ledger() == {"1": ("replaced", 3, 2, None), "2": ("done", 4, None, None)}
    assert len(store.store.rows("quarantine")) == 1, "bad input is kept"

    fetch.on_message(RereadFiles((file("a", "2"),)), 0.0)
    store.commit(3, fetch.on_message(barrier(3), 0.0))
    ended(fetch, file("a", "2"), Ending("vanished", "deleted", is_deleted=True))
    store.commit(4, fetch.on_message(barrier(4), 0.0))
    assert store.ledger()["2"] == ("done", 4, None, "deleted"), "its earlier rows stay"
    assert store.store.rows("queue") == []

    fetch.on_message(ForgottenFiles((ForgottenFile("s", "a"),)), 0.0)
    store.commit(5, fetch.on_message(barrier(5), 0.0))
    assert store.ledger() == {"1": ("replaced", 3, 2, None), "2": ("forgotten", 4, 5, "deleted")}
    assert store.store.rows("quarantine") == []


@pytest.mark.parametrize("count", [1, 40])
def test_no_correction_touches_a_poison_message(tmp_path: Path, count: int) -> None:
    """The same for few files, looked up one by one, and for many, looked up among all of their source."""
    names = [f"f{number:02}" for number in range(count)]
    store, fetch = Store(tmp_path / "root"), started()
    fetch.on_message(files(*names), 0.0)
    for name in names:
        piece(fetch, file(name), Rows(rows(2).table, 0, (BadRecord(2, b"x", "no number"),)))
    delta = DeltaBuilder()
    PoisonMessage(QueueMessage("m1", "r", "[]", 0.0), "https://sqs/raw", "no event").quarantine(delta, "s")
    store.commit(1, fetch.on_message(barrier(1), 0.0), delta.build())
    assert len(store.store.rows("quarantine")) == count + 1
    fetch.on_message(ForgottenFiles(tuple(ForgottenFile("s", name) for name in names)), 0.0)
    store.commit(2, fetch.on_message(barrier(2), 0.0))
    assert {row["status"] for row in store.store.rows("ledger")} == {"forgotten"}
    assert [row["path"] for row in store.store.rows("quarantine")] == ["https://sqs/raw#m1"]


def test_what_is_replaced_and_forgotten_in_one_epoch_is_forgotten(tmp_path: Path) -> None:
    store, fetch = Store(tmp_path / "root"), started()
    fetch.on_message(files("a"), 0.0)
    piece(fetch, file("a"), rows(2))
    store.commit(1, fetch.on_message(barrier(1), 0.0))
    fetch.on_message(changed("a"), 0.0)
    piece(fetch, file("a", "2"), rows(4))
    staged(fetch, file("a", "2"))
    fetch.on_message(ForgottenFiles((ForgottenFile("s", "a"),)), 0.0)
    store.commit(2, fetch.on_message(barrier(2), 0.0))
    assert store.ledger() == {"1": ("forgotten", 2, 2, None), "2": ("forgotten", 4, 2, None)}


def test_a_version_that_is_kept_and_then_replaced_in_one_epoch_is_replaced(tmp_path: Path) -> None:
    store, fetch = Store(tmp_path / "root"), started(on_change="ignore")
    fetch.on_message(files("a"), 0.0)
    piece(fetch, file("a"), rows(2))
    store.commit(1, fetch.on_message(barrier(1), 0.0))
    fetch.on_message(RereadFiles((file("a"),)), 0.0)
    store.commit(2, fetch.on_message(barrier(2), 0.0))
    ended(fetch, file("a"), Ending("vanished", "changed"))
    fetch.on_message(changed("a"), 0.0)
    piece(fetch, file("a", "2"), rows(4))
    (correction,) = corrections(staged(fetch, file("a", "2")))
    assert correction.version == file("a", "2").version, "its rows replace those of the first version"
    store.commit(3, fetch.on_message(barrier(3), 0.0))
    assert store.ledger() == {"1": ("replaced", 2, 3, "changed"), "2": ("done", 4, None, None)}


def test_ignored_changes_are_counted(tmp_path: Path) -> None:
    store, fetch = Store(tmp_path / "root"), started(on_change="ignore")
    fetch.on_message(files("a", "b"), 0.0)
    piece(fetch, file("a"), rows(2))
    piece(fetch, file("b"), rows(2))
    store.commit(1, fetch.on_message(barrier(1), 0.0))
    fetch.on_message(changed("a"), 0.0)
    store.commit(2, fetch.on_message(barrier(2), 0.0))
    assert fetch.progress().sources["s"].changes_ignored == 1
    assert num_ignored(store.store) == {"s": 1}
    fetch.on_message(RereadFiles((file("a", "2"),)), 0.0)
    store.commit(3, fetch.on_message(barrier(3), 0.0))
    assert num_ignored(store.store) == {}

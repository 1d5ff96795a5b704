"""A quarantined file goes back into the queue, exactly at a barrier, and repeats no row."""

from __future__ import annotations

import pytest

from actors.exchange.dispatch_executor import DispatchExecutor
from actors.fetching.fetch_executor import FetchExecutor
from actors.fetching.file_progress import Ending, FileProgress
from actors.fetching.read_outcomes import FileEnded, PieceRead, StoreUnavailable
from actors.files import ChangedFile, FileVersion, RetriedFile, Vanished
from actors.protocol.barrier import Barrier, Retry
from actors.protocol.instructions import Send
from actors.protocol.messages import ChangedFiles, RetriedFiles
from actors.protocol.vnode_mapping import VnodeMapping, fetcher_names
from state.errors import StorageUnavailableError
from state.tables.keys import encode_key
from state.tables.tables import DELETE, PUT
from tests.actors.flow import INITIAL, barrier, delta_rows, emitted, fetcher, file, files, of, reads, report, rows


def retried(version: FileVersion, rows_read: int = 0, attempts: int = 0) -> RetriedFile:
    return RetriedFile(version, rows_read, 0, 1, 1 if rows_read else None, attempts, requests=2, bytes_read=30)


def started(**options: object) -> FetchExecutor:
    executor = fetcher(**options)  # type: ignore[arg-type]
    executor.on_message(INITIAL, 0.0)
    return executor


def read(executor: FetchExecutor, version: FileVersion, count: int, first_row: int = 0) -> list[int]:
    return emitted(
        executor.on_read([PieceRead(version, rows(count, first_row), last=True, requests=1, bytes_read=10)], 0.0)
    )


def key(version: FileVersion) -> bytes:
    return encode_key(version.source, version.path, version.version)


def test_each_owner_gets_its_files_right_behind_the_barrier() -> None:
    paths = [f"f{number}" for number in range(20)]
    mapping = VnodeMapping.even(fetcher_names(0, 3))
    dispatch = DispatchExecutor(actor="dispatcher", edges=["list-s"], mapping=mapping)
    dispatch.on_message("list-s", INITIAL)
    message = barrier(1, Retry(tuple(retried(file(path)) for path in paths)))
    passed, *behind = of(Send, dispatch.on_message("list-s", message))
    assert (passed.message, passed.to) == (message, mapping.owners)
    assert all(isinstance(each.message, RetriedFiles) for each in behind)
    owners = {each.path: send.to for send in behind for each in send.message.files}
    assert owners == {path: (mapping.owner_of("s", path),) for path in paths}


def test_the_ledger_row_goes_and_the_file_is_queued_in_one_epoch() -> None:
    executor = started()
    executor.on_message(barrier(1), 0.0)
    executor.on_message(RetriedFiles((retried(file("bad"), rows_read=5, attempts=2),)), 0.0)
    sealed = executor.on_message(barrier(2), 0.0)
    assert report(sealed).activity > 0, "there is something to commit"
    (deleted,) = report(sealed).delta.tables["ledger"].to_pylist()
    assert (deleted["op"], deleted["key"]) == (DELETE, key(file("bad")))
    (queued,) = delta_rows(sealed, "queue")
    assert queued | {"op": PUT, "row_offset": 5, "listed_epoch": 1, "first_epoch": 1} == queued
    assert queued | {"attempts": 3, "requests": 2, "bytes_read": 30} == queued, "what it has cost is kept"


def test_a_retried_half_read_file_goes_on_at_its_row() -> None:
    executor = started()
    assert reads(executor.on_message(RetriedFiles((retried(file("half"), rows_read=5),)), 0.0)) == [("half", 5)]
    assert read(executor, file("half"), 3, 5) == [3]
    sealed = executor.on_message(barrier(1), 0.0)
    (row,) = delta_rows(sealed, "ledger")
    assert row | {"op": PUT, "status": "done", "rows_read": 8, "first_epoch": 1, "error": None} == row
    assert row | {"requests": 3, "bytes_read": 40, "attempts": 1} == row
    assert delta_rows(sealed, "queue") == []
    assert report(sealed).counts.rows == 3, "the rows of the first try are not counted again"


def test_a_retried_file_that_is_as_bad_as_before_is_quarantined_again() -> None:
    executor = started()
    executor.on_message(RetriedFiles((retried(file("bad"), attempts=1),)), 0.0)
    executor.on_read([FileEnded(file("bad"), Ending("quarantined", "still"), requests=1, bytes_read=0)], 0.0)
    (row,) = delta_rows(executor.on_message(barrier(1), 0.0), "ledger")
    assert row | {"status": "quarantined", "error": "still", "attempts": 2} == row
    assert executor.progress().sources["s"].quarantined == 0, "it is the same file as before"


def test_a_crash_before_the_commit_forgets_the_retry_and_after_it_keeps_it() -> None:
    before = started(without_rows=[(file("bad").source, "bad", file("bad").version)])
    before.on_message(RetriedFiles((retried(file("bad")),)), 0.0)
    again = started(without_rows=[(file("bad").source, "bad", file("bad").version)])
    assert reads(again.on_message(files("other"), 0.0)) == [("other", 0)], "what no commit has, is not read"

    sealed = before.on_message(barrier(1), 0.0)
    (row,) = delta_rows(sealed, "queue")
    kept = FileProgress(file("bad"), listed_epoch=1, row_offset=0, attempts=row["attempts"], stored=True)  # type: ignore[arg-type]
    after = fetcher(unfinished=[kept])
    assert reads(after.on_message(INITIAL, 0.0)) == [("bad", 0)]
    read(after, file("bad"), 2)
    ended = after.on_message(barrier(1), 0.0)
    assert [each["op"] for each in delta_rows(ended, "queue")] == [DELETE]
    assert [each["attempts"] for each in delta_rows(ended, "ledger")] == [1]


def test_a_retried_version_that_is_deleted_ends_vanished_and_its_successor_is_read() -> None:
    executor = started(without_rows=[("s", "bad", file("bad").version)])
    executor.on_message(RetriedFiles((retried(file("bad")),)), 0.0)
    later = file("bad", etag="2")
    executor.on_message(ChangedFiles((ChangedFile(file("bad").version, later),)), 0.0)
    ending = Ending("vanished", "it changed")
    instructions = executor.on_read([FileEnded(file("bad"), ending, requests=1, bytes_read=0)], 0.0)
    assert reads(instructions) == [("bad", 0)]
    assert read(executor, later, 4) == [4]
    ledger = delta_rows(executor.on_message(barrier(1), 0.0), "ledger")
    assert {(row["etag"], row["status"], row["rows_read"]) for row in ledger} == {
        ("1", "vanished", 0),
        ("2", "done", 4),
    }


@pytest.mark.parametrize("is_deleted", [False, True], ids=["changed", "deleted"])
def test_a_retried_version_with_rows_keeps_the_note_that_its_object_has_changed(is_deleted: bool) -> None:
    executor = started()
    executor.on_message(RetriedFiles((retried(file("bad"), rows_read=5),)), 0.0)
    ending = Ending("vanished", "it changed", is_deleted=is_deleted)
    executor.on_read([FileEnded(file("bad"), ending, requests=1, bytes_read=0)], 0.0)
    (ended,) = delta_rows(executor.on_message(barrier(1), 0.0), "ledger")
    assert (ended["changed_epoch"] is None, ended["deleted_epoch"] is None) == (is_deleted, not is_deleted)


def test_a_retried_version_that_is_deleted_and_not_listed_again_yet_is_new_when_it_is() -> None:
    executor = started()
    executor.on_message(RetriedFiles((retried(file("bad")),)), 0.0)
    executor.on_read([FileEnded(file("bad"), Ending("vanished", "deleted"), requests=1, bytes_read=0)], 0.0)
    sealed = executor.on_message(barrier(1), 0.0)
    assert report(sealed).vanished == (Vanished("s", "bad", file("bad").version),)


def test_a_version_whose_object_has_changed_since_the_retry_was_asked_for_stays_quarantined() -> None:
    executor = started()
    executor.on_message(ChangedFiles((ChangedFile(file("bad").version, file("bad", etag="2")),)), 0.0)
    assert reads(executor.on_message(RetriedFiles((retried(file("bad"), rows_read=5),)), 0.0)) == []
    sealed = executor.on_message(barrier(1), 0.0)
    (noted,) = report(sealed).delta.tables["ledger"].to_pylist()
    assert (noted["key"], noted["op"] == DELETE) == (key(file("bad")), False)
    assert noted["row"]["changed_epoch"] is not None
    assert delta_rows(sealed, "queue") == []


def test_a_path_that_is_read_in_another_version_is_not_read_in_the_old_one_too() -> None:
    executor = started()
    executor.on_message(files("a"), 0.0)
    assert reads(executor.on_message(RetriedFiles((retried(file("a", etag="0")),)), 0.0)) == []
    executor.on_message(RetriedFiles((retried(file("a")),)), 0.0)  # nor twice in one version
    read(executor, file("a"), 1)
    ledger = report(executor.on_message(barrier(1), 0.0)).delta.tables["ledger"]
    assert ledger["key"].to_pylist() == [key(file("a"))], "the old version's row stays as it is"


def test_the_tries_of_before_a_retry_do_not_use_up_those_after_it() -> None:
    executor = started()
    executor.on_message(RetriedFiles((retried(file("bad"), attempts=50),)), 0.0)
    instructions = executor.on_read(
        [StoreUnavailable(file("bad"), StorageUnavailableError("slow"), requests=1, bytes_read=0)], 0.0
    )
    assert reads(executor.on_time(60.0)) == [("bad", 0)], instructions
    (row,) = delta_rows(executor.on_message(barrier(1), 60.0), "queue")
    assert row["attempts"] == 52


def test_a_mark_waits_for_what_is_retried() -> None:
    executor = started()
    executor.on_message(RetriedFiles((retried(file("bad")),)), 0.0)
    assert report(executor.on_message(barrier(1), 0.0)).unfinished_since == {"s": 1}


def test_a_retry_does_nothing_at_the_fetch_actor_before_its_files_come() -> None:
    executor = started()
    message = Barrier(barrier(1).epoch, mutation=Retry((retried(file("bad")),)))
    assert reads(executor.on_message(message, 0.0)) == []

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from actors.fetching.fetch_executor import FetchExecutor
from actors.fetching.file_progress import Ending, FileProgress, FileStatus
from actors.fetching.instructions import EmitBlock, FetchInstruction, InferSchema, ReadFiles, ReadPiece
from actors.fetching.read_outcomes import ColumnsFound, FileEnded, PieceRead, SourceRefused, StoreUnavailable
from actors.files import ChangedFile, FileVersion, ForgottenFile, Vanished
from actors.protocol.barrier import Pause, Resume, Stop
from actors.protocol.instructions import Fail, ProposeColumns, ProposeSchema, WakeAt
from actors.protocol.messages import ChangedFiles, ForgottenFiles, NewFiles
from actors.rows import Rows
from actors.settings import FetchSettings
from state.errors import ProtocolError, StorageUnavailableError
from state.tables.records import UnmatchedColumn
from state.tables.tables import DELETE, PATCH, PUT
from tests.actors.flow import INITIAL, barrier, delta_rows, emitted, fetcher, file, files, of, reads, report, rows

X = pa.schema([("x", pa.int64())])


def piece(executor: FetchExecutor, version: FileVersion, table: Rows, *, last: bool = True) -> list[FetchInstruction]:
    return executor.on_read([PieceRead(version, table, last=last, requests=1, bytes_read=100)], 0.0)


def started(**options: object) -> FetchExecutor:
    executor = fetcher(**options)  # type: ignore[arg-type]
    executor.on_message(INITIAL, 0.0)
    return executor


def test_a_file_is_read_once_and_ends_in_the_ledger_with_what_it_cost() -> None:
    executor = started()
    assert reads(executor.on_message(files("a"), 0.0)) == [("a", 0)]
    assert emitted(piece(executor, file("a"), rows(3))) == [3]
    sealed = executor.on_message(barrier(1), 0.0)
    (row,) = delta_rows(sealed, "ledger")
    expected = {"op": PUT, "status": "done", "rows_read": 3, "listed_epoch": 1, "first_epoch": 1, "done_epoch": 1}
    assert row | expected | {"requests": 1, "bytes_read": 100} == row
    assert delta_rows(sealed, "queue") == [], "a file that ends in its first epoch was never in the queue"
    counts = report(sealed).counts
    assert (counts.files, counts.rows, counts.bytes, counts.requests) == (1, 3, 100, 1)


def test_an_unread_file_is_in_the_queue_at_the_barrier_and_leaves_it_when_it_ends() -> None:
    executor = started()
    executor.on_message(files("a"), 0.0)
    (row,) = delta_rows(executor.on_message(barrier(1), 0.0), "queue")
    assert row | {"op": PUT, "path": "a", "row_offset": 0, "listed_epoch": 1} == row
    piece(executor, file("a"), rows(3))
    sealed = executor.on_message(barrier(2), 0.0)
    assert [row["op"] for row in delta_rows(sealed, "queue")] == [DELETE]
    assert [row["done_epoch"] for row in delta_rows(sealed, "ledger")] == [2]


def test_a_change_of_a_file_that_has_ended_in_the_same_epoch_is_in_its_row() -> None:
    executor = started()
    executor.on_message(files("a", "b"), 0.0)
    piece(executor, file("a"), rows(3))
    piece(executor, file("b"), rows(3))
    executor.on_message(ChangedFiles((ChangedFile(file("a").version, file("a", "2")),)), 0.0)
    ended = delta_rows(executor.on_message(barrier(1), 0.0), "ledger")
    assert {row["path"]: (row["op"], row["rows_read"], row["changed_epoch"]) for row in ended} == {
        "a": (PUT, 3, 1),
        "b": (PUT, 3, None),
    }


def test_the_offset_moves_when_rows_are_emitted_not_when_they_are_read() -> None:
    executor = started(credit_bytes=1)
    executor.on_message(files("a", "b"), 0.0)
    assert emitted(piece(executor, file("a"), rows(3))) == []
    assert emitted(piece(executor, file("b"), rows(5))) == [8], "an empty edge takes a block of any size"
    executor.on_message(barrier(1), 0.0)
    executor.on_message(files("c"), 0.0)
    assert emitted(piece(executor, file("c"), rows(7))) == [], "the credit is taken"
    sealed = executor.on_message(barrier(2), 0.0)
    assert emitted(sealed) == []
    assert [row["row_offset"] for row in delta_rows(sealed, "queue")] == [0]
    assert emitted(executor.on_grant(8 * 8, 0.0)) == [7]
    sealed = executor.on_message(barrier(3), 0.0)
    assert [(row["rows_read"], row["first_epoch"]) for row in delta_rows(sealed, "ledger")] == [(7, 3)]


def test_a_large_file_moves_by_pieces_and_its_queue_row_says_how_far() -> None:
    executor = started()
    executor.on_message(files("a"), 0.0)
    instructions = piece(executor, file("a"), rows(3), last=False)
    assert reads(instructions) == [("a", 3)]
    sealed = executor.on_message(barrier(1), 0.0)
    assert emitted(sealed) == [3], "the barrier takes along what was read"
    assert [(row["row_offset"], row["first_epoch"]) for row in delta_rows(sealed, "queue")] == [(3, 1)]


def test_a_restart_goes_on_at_the_row_of_the_queue() -> None:
    half_read = FileProgress(file("a"), listed_epoch=1, first_epoch=1, row_offset=3, stored=True)
    executor = fetcher(unfinished=[half_read])
    assert reads(executor.on_message(INITIAL, 0.0)) == [("a", 3)]
    piece(executor, file("a"), rows(4, first_row=3))
    sealed = executor.on_message(barrier(1), 0.0)
    assert [row["rows_read"] for row in delta_rows(sealed, "ledger")] == [7]
    assert [row["op"] for row in delta_rows(sealed, "queue")] == [DELETE]


def test_small_files_leave_as_one_block() -> None:
    executor = started()
    executor.on_message(files("a", "b", "c"), 0.0)
    assert emitted(piece(executor, file("a"), rows(1))) == []
    assert emitted(piece(executor, file("b"), rows(2))) == []
    assert emitted(piece(executor, file("c"), rows(3))) == [6]


def test_blocks_are_cut_near_their_size() -> None:
    executor = started(settings=FetchSettings(piece_bytes=80, concurrency=2))
    executor.on_message(files("a", "b", "c"), 0.0)
    assert emitted(piece(executor, file("a"), rows(6))) == []
    assert emitted(piece(executor, file("b"), rows(6))) == [6], "two of 48 bytes are more than 80"


def test_reading_waits_while_the_buffers_are_full() -> None:
    executor = started(settings=FetchSettings(piece_bytes=80, concurrency=50), credit_bytes=1)
    first = executor.on_message(files(*(f"f{n:02}" for n in range(60)), size=10), 0.0)
    assert len(reads(first)) == 32, "four pieces of 80 bytes, files of 10"


def test_small_files_are_read_together_and_a_large_one_by_itself() -> None:
    executor = started()
    small = [file(f"f{n:03}", size=10) for n in range(200)]
    instructions = executor.on_message(NewFiles((small[0], file("large"), *small[1:])), 0.0)
    assert [each.file.path for each in of(ReadPiece, instructions)] == ["large"]
    batches = [[each.file.path for each in batch.reads] for batch in of(ReadFiles, instructions)]
    assert [len(batch) for batch in batches] == [64, 64, 64]
    assert [path for batch in batches for path in batch] == [each.path for each in small[:192]]


def test_the_files_of_a_batch_end_each_for_itself() -> None:
    executor = started(settings=FetchSettings(max_attempts=3))
    good, bad, slow, wide = (file(path, size=10) for path in ("good", "bad", "slow", "wide"))
    executor.on_message(NewFiles((good, bad, slow, wide)), 0.0)
    cost = {"requests": 1, "bytes_read": 10}
    columns = pa.schema([("y", pa.int64())])
    instructions = executor.on_read(
        [
            PieceRead(good, rows(3), last=True, **cost),
            FileEnded(bad, Ending("quarantined", "row 1: not a number"), **cost),
            StoreUnavailable(slow, StorageUnavailableError("no answer"), **cost),
            ColumnsFound(wide, columns, **cost),
        ],
        0.0,
    )
    assert emitted(instructions) == [3]
    assert of(ProposeColumns, instructions) == [ProposeColumns("s", columns)]
    sealed = executor.on_message(barrier(1), 0.0)
    assert {(row["path"], row["status"]) for row in delta_rows(sealed, "ledger")} == {
        ("good", "done"),
        ("bad", "quarantined"),
    }
    assert {(row["path"], row["requests"], row["attempts"]) for row in delta_rows(sealed, "queue")} == {
        ("slow", 1, 1),
        ("wide", 1, 0),
    }
    assert reads(executor.on_schema("s", 0.0)) == [("wide", 0)]
    assert reads(executor.on_time(60.0)) == [("slow", 0)]


def test_a_batch_is_no_larger_than_a_mebibyte() -> None:
    executor = started()
    quarter = [file(f"f{n}", size=256 << 10) for n in range(5)]
    batch, alone = executor.on_message(NewFiles(tuple(quarter)), 0.0)
    assert isinstance(batch, ReadFiles) and len(batch.reads) == 4
    assert isinstance(alone, ReadPiece)


def test_an_unreadable_file_is_quarantined_with_its_reason_and_the_others_go_on() -> None:
    executor = started()
    executor.on_message(files("bad", "good"), 0.0)
    ending = Ending("quarantined", "row 7: not a number")
    executor.on_read([FileEnded(file("bad"), ending, requests=1, bytes_read=5)], 0.0)
    piece(executor, file("good"), rows(2))
    ledger = delta_rows(executor.on_message(barrier(1), 0.0), "ledger")
    assert {(row["path"], row["status"], row["error"]) for row in ledger} == {
        ("bad", "quarantined", "row 7: not a number"),
        ("good", "done", None),
    }


def test_the_rows_before_a_bad_one_stay() -> None:
    executor = started()
    executor.on_message(files("a"), 0.0)
    piece(executor, file("a"), rows(3), last=False)
    executor.on_read([FileEnded(file("a"), Ending("quarantined", "bad"), requests=0, bytes_read=0)], 0.0)
    (row,) = delta_rows(executor.on_message(barrier(1), 0.0), "ledger")
    assert (row["status"], row["rows_read"]) == ("quarantined", 3)


def test_a_silent_store_is_asked_again_after_a_pause_and_then_ends_the_run() -> None:
    executor = started(settings=FetchSettings(max_attempts=2))
    executor.on_message(files("a"), 0.0)
    error = StorageUnavailableError("s3://b did not answer")
    again = executor.on_read([StoreUnavailable(file("a"), error, requests=1, bytes_read=0)], 0.0)
    assert reads(again) == []
    (wake,) = of(WakeAt, again)
    assert reads(executor.on_time(wake.monotonic_s)) == [("a", 0)]
    assert executor.on_read([StoreUnavailable(file("a"), error, requests=1, bytes_read=0)], 9.0) == [Fail(error)]


def test_files_of_a_refused_source_wait_with_growing_pauses_and_those_of_others_are_read() -> None:
    executor = started(known_schemas=["s", "t"], settings=FetchSettings(max_attempts=2))
    executor.on_message(files("a"), 0.0)
    now_s, pauses = 0.0, []
    for number in range(9):
        refused = executor.on_read([SourceRefused(file("a"), requests=1, bytes_read=0)], now_s)
        assert reads(refused) == [] and of(Fail, refused) == []
        assert reads(executor.on_message(files(f"late-{number}"), now_s)) == [], "nothing of the source is asked for"
        other = file(f"other-{number}", source="t")
        assert reads(executor.on_message(NewFiles((other,)), now_s)) == [(f"other-{number}", 0)]
        piece(executor, other, rows(1))
        (wake,) = of(WakeAt, executor.on_time(now_s))
        pauses.append(wake.monotonic_s - now_s)
        now_s = wake.monotonic_s
        assert ("a", 0) in reads(executor.on_time(now_s))
        executor.on_read(
            [SourceRefused(file(f"late-{each}"), requests=1, bytes_read=0) for each in range(number + 1)], now_s
        )
    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]


def test_a_refused_source_is_read_on_when_it_has_access_again() -> None:
    executor = started()
    executor.on_message(files("a"), 0.0)
    executor.on_read([SourceRefused(file("a"), requests=1, bytes_read=0)], 0.0)
    assert reads(executor.on_time(0.5)) == [("a", 0)]
    assert emitted(piece(executor, file("a"), rows(3))) == [3]
    assert report(executor.on_message(barrier(1), 1.0)).counts.files == 1


def test_the_first_file_of_a_source_shows_its_schema_and_is_read_when_that_is_decided() -> None:
    executor = started(known_schemas=[])
    assert [each.file.path for each in of(InferSchema, executor.on_message(files("a"), 0.0))] == ["a"]
    schema = rows(0).table.schema
    assert executor.on_inferred(file("a"), schema, 0.0) == [ProposeSchema("s", "a", schema, 0)]
    assert reads(executor.on_schema("s", 0.0)) == [("a", 0)]


def test_a_file_that_shows_a_schema_after_it_was_decided_is_read_too() -> None:
    executor = started(known_schemas=[])
    executor.on_message(files("a", "b"), 0.0)
    executor.on_inferred(file("a"), rows(0).table.schema, 0.0)
    assert reads(executor.on_schema("s", 0.0)) == [("a", 0)]
    assert reads(executor.on_inferred(file("b"), rows(0).table.schema, 0.0)) == [("b", 0)]


def test_a_file_whose_source_is_undecided_holds_nobody_up() -> None:
    executor = started(known_schemas=[], settings=FetchSettings(concurrency=1))
    files_of_two = NewFiles((file("a"), file("b", source="t")))
    assert [each.file.source for each in of(InferSchema, executor.on_message(files_of_two, 0.0))] == ["s"]
    instructions = executor.on_inferred(file("a"), rows(0).table.schema, 0.0)
    assert [each.file.source for each in of(InferSchema, instructions)] == ["t"]


def test_a_first_file_that_cannot_be_read_lets_the_next_one_show_the_schema() -> None:
    executor = started(known_schemas=[])
    executor.on_message(files("a"), 0.0)
    instructions = executor.on_read([FileEnded(file("a"), Ending("quarantined", "bad"), requests=1, bytes_read=0)], 0.0)
    assert of(ProposeSchema, instructions) == [ProposeSchema("s", "a", None, 0)]


def test_a_first_file_that_is_forgotten_lets_the_next_one_show_the_schema() -> None:
    executor = started(known_schemas=[])
    executor.on_message(files("a"), 0.0)
    forgotten = ForgottenFiles((ForgottenFile("s", "a"),))
    assert of(ProposeSchema, executor.on_message(forgotten, 0.0)) == [ProposeSchema("s", "a", None, 0)]
    assert of(ProposeSchema, executor.on_inferred(file("a"), rows(0).table.schema, 0.0)) == []


def test_a_file_of_a_sample_tells_how_large_that_is() -> None:
    executor = started(known_schemas=[])
    executor.on_message(NewFiles((file("a"),), sample=5), 0.0)
    assert executor.on_inferred(file("a"), X, 0.0) == [ProposeSchema("s", "a", X, 5)]


def test_a_file_with_new_columns_waits_until_its_source_has_them() -> None:
    executor = started()
    executor.on_message(files("a", "b"), 0.0)
    piece(executor, file("a"), rows(3), last=False)
    columns = pa.schema([("y", pa.string())])
    instructions = executor.on_read([ColumnsFound(file("a"), columns, requests=1, bytes_read=5)], 0.0)
    assert of(ProposeColumns, instructions) == [ProposeColumns("s", columns)]
    assert reads(piece(executor, file("b"), rows(1))) == []
    assert reads(executor.on_schema("s", 0.0)) == [("a", 3)]
    (row,) = delta_rows(executor.on_message(barrier(1), 0.0), "queue")
    assert (row["path"], row["row_offset"], row["requests"]) == ("a", 3, 1 + 1)


def test_columns_that_are_left_out_missing_or_renamed_are_told_once_with_the_epoch_of_their_rows() -> None:
    executor = started()
    executor.on_message(files("a", "b"), 0.0)
    others = (pa.field("y", pa.null()),)
    piece(executor, file("a"), replace(rows(1), others=others))
    renamed = ("", "_c0"), ("", "y")
    piece(executor, file("b"), replace(rows(1), others=others, missing=("x",), renamed=renamed))
    assert report(executor.on_message(barrier(1), 0.0)).unmatched == (
        UnmatchedColumn("s", "y", "a", 1),
        UnmatchedColumn("s", "x", "b", 1, is_missing=True),
        UnmatchedColumn("s", "_c0", "b", 1, was=""),
    )
    executor.on_message(files("c"), 0.0)
    piece(executor, file("c"), replace(rows(1), others=others, missing=("x",)))
    assert report(executor.on_message(barrier(2), 0.0)).unmatched == ()


def changed(path: str, before: str, now: str) -> ChangedFiles:
    return ChangedFiles((ChangedFile(file(path, before).version, file(path, now)),))


def test_a_change_of_a_file_that_was_read_is_noted_and_not_read() -> None:
    executor = started()
    executor.on_message(files("a"), 0.0)
    piece(executor, file("a"), rows(1))
    executor.on_message(barrier(1), 0.0)
    assert reads(executor.on_message(changed("a", "1", "2"), 0.0)) == []
    (row,) = delta_rows(executor.on_message(barrier(2), 0.0), "ledger")
    assert (row["op"], row["changed_epoch"], row["status"]) == (PATCH, 2, None)


@pytest.mark.parametrize("status", ["done", "quarantined", "vanished"])
def test_a_version_without_a_row_never_blocks_its_successor(status: FileStatus) -> None:
    executor = started()
    executor.on_message(files("a"), 0.0)
    if status == "done":
        piece(executor, file("a"), rows(0))
    else:
        executor.on_read([FileEnded(file("a"), Ending(status, "x"), requests=1, bytes_read=0)], 0.0)
    executor.on_message(barrier(1), 0.0)
    assert reads(executor.on_message(changed("a", "1", "2"), 0.0)) == [("a", 0)]


def test_the_same_holds_after_a_restart() -> None:
    executor = fetcher(without_rows=[("s", "a", file("a").version)])
    executor.on_message(INITIAL, 0.0)
    assert reads(executor.on_message(changed("a", "1", "2"), 0.0)) == [("a", 0)]


def test_a_change_while_the_file_waits_is_kept_until_it_is_known_whether_rows_came() -> None:
    executor = started(settings=FetchSettings(concurrency=1))
    executor.on_message(files("busy", "a"), 0.0)
    executor.on_message(changed("a", "1", "2"), 0.0)
    executor.on_message(changed("a", "2", "3"), 0.0)
    queued = delta_rows(executor.on_message(barrier(1), 0.0), "queue")
    assert sorted((row["path"], row["etag"]) for row in queued) == [("a", "1"), ("a", "3"), ("busy", "1")]
    assert reads(piece(executor, file("busy"), rows(1))) == [("a", 0)]
    deleted = executor.on_read([FileEnded(file("a"), Ending("vanished", "changed"), requests=1, bytes_read=0)], 0.0)
    assert reads(deleted) == [("a", 0)]
    piece(executor, file("a", "3"), rows(2))
    ledger = delta_rows(executor.on_message(barrier(2), 0.0), "ledger")
    found = {(row["path"], row["etag"], row["status"], row["rows_read"]) for row in ledger}
    assert found == {("busy", "1", "done", 1), ("a", "1", "vanished", 0), ("a", "3", "done", 2)}


def test_an_object_that_is_its_first_version_again_is_read_once() -> None:
    executor = started()
    executor.on_message(files("a"), 0.0)
    piece(executor, file("a"), rows(3), last=False)
    executor.on_message(changed("a", "1", "2"), 0.0)
    executor.on_message(changed("a", "2", "1"), 0.0)
    queued = delta_rows(executor.on_message(barrier(1), 0.0), "queue")
    assert [(row["etag"], row["row_offset"]) for row in queued] == [("1", 3)]
    piece(executor, file("a"), rows(2, first_row=3))
    ledger = delta_rows(executor.on_message(barrier(2), 0.0), "ledger")
    assert [(row["etag"], row["rows_read"]) for row in ledger] == [("1", 5)]


def test_after_a_restart_the_version_with_rows_is_the_one_that_is_read_on() -> None:
    with_rows = FileProgress(file("a", "1"), listed_epoch=2, first_epoch=2, row_offset=3, stored=True)
    without = FileProgress(file("a", "2"), listed_epoch=1, stored=True)
    executor = fetcher(unfinished=[without, with_rows])
    assert reads(executor.on_message(INITIAL, 0.0)) == [("a", 3)]


def test_a_version_that_vanished_before_its_first_row_is_reported_and_may_come_again() -> None:
    executor = started()
    executor.on_message(files("a"), 0.0)
    executor.on_read([FileEnded(file("a"), Ending("vanished", "deleted"), requests=1, bytes_read=0)], 0.0)
    sealed = executor.on_message(barrier(1), 0.0)
    assert report(sealed).vanished == (Vanished("s", "a", file("a").version),)
    assert reads(executor.on_message(files("a"), 0.0)) == [("a", 0)]
    piece(executor, file("a"), rows(2))
    sealed = executor.on_message(barrier(2), 0.0)
    assert report(sealed).vanished == ()
    assert [(row["status"], row["rows_read"]) for row in delta_rows(sealed, "ledger")] == [("done", 2)]


def test_a_report_says_since_when_something_is_unfinished() -> None:
    executor = started(settings=FetchSettings(concurrency=1))
    executor.on_message(files("a"), 0.0)
    executor.on_message(barrier(1), 0.0)
    executor.on_message(files("b"), 0.0)
    assert report(executor.on_message(barrier(2), 0.0)).unfinished_since == {"s": 1}
    piece(executor, file("a"), rows(1))
    assert report(executor.on_message(barrier(3), 0.0)).unfinished_since == {"s": 2}
    piece(executor, file("b"), rows(1))
    assert report(executor.on_message(barrier(4), 0.0)).unfinished_since == {}


def test_of_two_versions_in_the_queue_the_later_waits_for_the_earlier_after_a_restart() -> None:
    earlier = FileProgress(file("a", "1"), listed_epoch=1, stored=True)
    later = FileProgress(file("a", "2"), listed_epoch=2, stored=True)
    executor = fetcher(unfinished=[later, earlier])
    executor.on_message(INITIAL, 0.0)
    piece(executor, file("a", "1"), rows(4))
    sealed = executor.on_message(barrier(1), 0.0)
    (row,) = delta_rows(sealed, "ledger")
    assert (row["etag"], row["rows_read"], row["changed_epoch"]) == ("1", 4, 2)
    assert [row["op"] for row in delta_rows(sealed, "queue")] == [DELETE, DELETE]


def test_nothing_is_read_or_emitted_while_paused() -> None:
    executor = started()
    executor.on_message(files("a"), 0.0)
    executor.on_message(barrier(1, Pause()), 0.0)
    assert emitted(piece(executor, file("a"), rows(1))) == []
    assert reads(executor.on_message(files("b"), 0.0)) == []
    assert emitted(executor.on_message(barrier(2), 0.0)) == []
    resumed = executor.on_message(barrier(3, Resume()), 0.0)
    assert (reads(resumed), emitted(resumed)) == ([("b", 0)], [])
    assert emitted(piece(executor, file("b"), rows(1))) == [2]


def test_a_stop_keeps_what_is_not_read_in_the_queue() -> None:
    executor = started(settings=FetchSettings(concurrency=1))
    executor.on_message(files("a", "b"), 0.0)
    sealed = executor.on_message(barrier(1, Stop()), 0.0)
    assert sorted(str(row["path"]) for row in delta_rows(sealed, "queue")) == ["a", "b"]
    assert of(EmitBlock, piece(executor, file("a"), rows(1))) == []


def test_a_version_that_comes_twice_is_an_error() -> None:
    executor = started()
    executor.on_message(files("a"), 0.0)
    with pytest.raises(ProtocolError, match="sent twice"):
        executor.on_message(files("a"), 0.0)


def test_a_barrier_that_does_not_follow_is_an_error() -> None:
    executor = started()
    with pytest.raises(ProtocolError, match="does not follow"):
        executor.on_message(barrier(5), 0.0)

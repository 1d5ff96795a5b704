"""Looks that events cause: their results, and new looks where a page and a look contradict each other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from actors.files import ChangedFile, DeletedFile, FileVersion, Vanished, microseconds_of
from actors.listing.instructions import FindDeleted, ListInstruction, ReadPage, ReportRemovals
from actors.listing.list_executor import ListExecutor
from actors.listing.missing_files import DeletedFound
from actors.listing.removal_guard import RemovalGuard
from actors.names.seen_index import SeenIndex
from actors.notifications.event_feed import EventFeed
from actors.notifications.event_watch import EventWatch
from actors.notifications.instructions import DeleteMessages, ExtendMessages, LookAt, Receive, ReleaseMessages
from actors.notifications.message_tracker import QueueDepth, QueueMessage
from actors.protocol.barrier import AllowRemovals, Pause, Resume, Stop
from actors.protocol.messages import ChangedFiles, DeletedFiles, NewFiles
from actors.sources.path_filter import PathFilter
from state.tables.fingerprint import path_fingerprint
from tests.actors.flow import AT, INITIAL, barrier, delta_rows, file, lister, of, page, report, sent
from tests.actors.notifications.bucket_events import direct, record

LONG = Receive(0, 20.0)


def told(*names: str, **options: Any) -> ListExecutor:
    """A list step with a queue, which has handed these on before; a listing has shown them."""
    feed = EventFeed(
        queue="https://sqs/raw",
        bucket="raw",
        prefix="in/",
        path_filter=PathFilter("**"),
        visibility_s=60.0,
        most_messages=100,
    )
    seen = SeenIndex([key(name) for name in names], [file(name).version for name in names])
    made = lister(seen=seen, events=EventWatch(feed, 2), **options)
    made.on_barrier(INITIAL, 0.0)
    if names:
        listed(made, *names)
    return made


def key(path: str) -> bytes:
    return path_fingerprint("s", path)


def listed(executor: ListExecutor, *names: str, now_s: float = 0.0) -> list[ListInstruction]:
    """The end of the listing that is under way, in which these are."""
    return [*executor.on_page(page(*names), now_s), *executor.on_listing_end(now_s, AT)]


def comes(executor: ListExecutor, number: int, *names: str, now_s: float = 1.0) -> list[ListInstruction]:
    body = direct(*(record(key=f"in/{name}") for name in names))
    return executor.on_messages(LONG, [QueueMessage(f"m{number}", f"r{number}", body, 0.0)], None, now_s)


def looks(instructions: list[ListInstruction]) -> list[tuple[str, ...]]:
    return [each.paths for each in of(LookAt, instructions)]


def deleted(instructions: list[ListInstruction]) -> list[str]:
    return [message.message_id for each in of(DeleteMessages, instructions) for message in each.messages]


def handed_on(instructions: list[ListInstruction]) -> list[FileVersion]:
    return [each for message in sent(instructions) if isinstance(message, NewFiles) for each in message.files]


def changes(instructions: list[ListInstruction]) -> list[ChangedFile]:
    return [each for message in sent(instructions) if isinstance(message, ChangedFiles) for each in message.files]


def ends(executor: ListExecutor, epoch: int) -> list[ListInstruction]:
    """An epoch ends and is committed."""
    return [*executor.on_barrier(barrier(epoch), 2.0), *executor.on_committed(epoch, 2.0)]


def test_a_file_that_an_event_names_is_looked_at_handed_on_and_its_message_deleted_with_the_commit() -> None:
    executor = told()
    assert looks(comes(executor, 1, "a")) == [("a",)]
    found = executor.on_looked({"a": file("a")}, 1.0)
    assert handed_on(found) == [file("a")] and deleted(found) == []
    sealed = executor.on_barrier(barrier(1), 2.0)
    assert [row["version"] for row in delta_rows(sealed, "seen")] == [file("a").version] and deleted(sealed) == []
    assert deleted(executor.on_committed(1, 2.0)) == ["m1"]


def test_what_is_known_is_not_handed_on_and_its_message_is_deleted_when_what_handed_it_on_is_committed() -> None:
    executor = told("a")
    comes(executor, 1, "a")
    known = executor.on_looked({"a": file("a")}, 1.0)
    assert sent(known) == [] and deleted(known) == ["m1"]
    comes(executor, 2, "b")
    assert handed_on(executor.on_looked({"b": file("b")}, 1.0)) == [file("b")]
    comes(executor, 3, "b")
    again = executor.on_looked({"b": file("b")}, 1.0)
    assert sent(again) == [] and deleted(again) == [], "it is not committed yet"
    assert sorted(deleted(ends(executor, 1))) == ["m2", "m3"]


def test_another_version_is_told_as_a_change() -> None:
    executor = told("a")
    comes(executor, 1, "a")
    found = executor.on_looked({"a": file("a", "2")}, 1.0)
    assert changes(found) == [ChangedFile(file("a").version, file("a", "2"))] and deleted(found) == []
    assert deleted(ends(executor, 1)) == ["m1"]


def test_a_page_that_is_older_than_a_look_makes_it_look_again() -> None:
    executor = told("a")
    [_] = of(ReadPage, executor.on_time(10.0))
    comes(executor, 1, "a", "b")
    executor.on_looked({"a": file("a", "2"), "b": None}, 11.0)
    # The page was read before `a` was written again, and `b` removed.
    shown = executor.on_page(page("a", "b", "c"), 12.0)
    assert changes(shown) == [] and handed_on(shown) == [file("c")]
    assert looks(shown) == [("a", "b")]
    assert sent(executor.on_looked({"a": file("a", "2"), "b": None}, 13.0)) == []
    executor.on_listing_end(13.0, AT)
    # In the next listing pages count as they are.
    [_] = of(ReadPage, executor.on_time(30.0))
    assert handed_on(executor.on_page(page("b"), 30.0)) == [file("b")]


def test_what_a_look_has_shown_is_not_deleted_because_a_listing_that_began_before_lacks_it() -> None:
    executor = told("a", "b")
    [_] = of(ReadPage, executor.on_time(10.0))
    executor.on_page(page("b"), 11.0)
    comes(executor, 1, "a")
    executor.on_looked({"a": file("a")}, 11.0)
    ended = executor.on_listing_end(12.0, AT)
    assert of(FindDeleted, ended) == [] and looks(ended) in ([], [("a",)])


def test_a_look_that_is_older_than_a_page_changes_nothing_and_is_made_again() -> None:
    executor = told("a")
    [_] = of(ReadPage, executor.on_time(10.0))
    comes(executor, 1, "a")
    shown = executor.on_page(page("a", etag="2"), 11.0)
    assert [each.now for each in changes(shown)] == [file("a", "2")]
    # The look has seen what was there before.
    answered = executor.on_looked({"a": file("a")}, 12.0)
    assert sent(answered) == [] and looks(answered) == [("a",)]
    again = executor.on_looked({"a": file("a", "2")}, 13.0)
    assert sent(again) == [] and deleted(again) == []
    assert deleted(ends(executor, 1)) == ["m1"]


def test_a_look_during_which_the_file_was_handed_on_is_made_again() -> None:
    executor = told()
    comes(executor, 1, "a")
    assert handed_on(executor.on_page(page("a"), 1.0)) == [file("a")]
    answered = executor.on_looked({"a": None}, 1.0)
    assert looks(answered) == [("a",)] and of(FindDeleted, answered) == []


def test_an_event_during_a_look_is_followed_by_another_look() -> None:
    executor = told()
    comes(executor, 1, "a")
    assert looks(comes(executor, 2, "a")) == []
    found = executor.on_looked({"a": file("a")}, 1.0)
    assert handed_on(found) == [file("a")] and looks(found) == [("a",)]
    assert deleted(ends(executor, 1)) == ["m1"], "the look says nothing of what came later"
    assert deleted(executor.on_looked({"a": file("a")}, 2.0)) == ["m2"]


def test_what_the_budget_holds_back_keeps_its_message_and_nothing_more_is_received() -> None:
    executor = told()
    executor.on_barrier(barrier(1, budget=1), 1.0)
    comes(executor, 1, "a", "b")
    found = executor.on_looked({"a": file("a"), "b": file("b")}, 1.0)
    assert handed_on(found) == [file("a")] and executor.progress().held == 1
    assert of(Receive, found) == [] and looks(comes(executor, 2, "c")) == []
    assert deleted(executor.on_committed(1, 1.0)) == []
    kept = executor.on_time(31.5)
    assert {message.message_id for each in of(ExtendMessages, kept) for message in each.messages} == {"m1", "m2"}
    freed = executor.on_barrier(barrier(2), 32.0)
    assert handed_on(freed) == [file("b")] and looks(freed) == [("c",)]
    assert deleted(executor.on_committed(2, 32.0)) == [], "b is of the epoch after"
    assert deleted(ends(executor, 3)) == ["m1"]


def test_a_held_file_that_a_page_shows_as_another_one_is_looked_at_when_it_was_handed_on() -> None:
    executor = told()
    executor.on_barrier(barrier(1, budget=0), 1.0)
    comes(executor, 1, "a")
    executor.on_looked({"a": file("a")}, 1.0)
    assert looks(executor.on_page(page("a", etag="2"), 1.0)) == []
    freed = executor.on_barrier(barrier(2), 1.0)
    assert handed_on(freed) == [file("a")] and looks(freed) == [("a",)]
    assert [each.now for each in changes(executor.on_looked({"a": file("a", "2")}, 1.0))] == [file("a", "2")]


def test_while_paused_nothing_is_received_or_looked_at_and_messages_are_kept() -> None:
    executor = told("z")
    paused = executor.on_barrier(barrier(1, Pause()), 1.0)
    assert of(Receive, paused) == []
    assert looks(comes(executor, 1, "a")) == []
    kept = executor.on_time(32.0)
    assert [each.messages[0].message_id for each in of(ExtendMessages, kept)] == ["m1"] and looks(kept) == []
    resumed = executor.on_barrier(barrier(2, Resume()), 33.0)
    assert looks(resumed) == [("a",)] and of(Receive, resumed) == [LONG]


def test_a_stop_gives_back_what_is_not_committed() -> None:
    executor = told()
    comes(executor, 1, "a")
    executor.on_looked({"a": file("a")}, 1.0)
    comes(executor, 2, "b")
    stopped = executor.on_barrier(barrier(1, Stop()), 2.0)
    [released] = of(ReleaseMessages, stopped)
    assert [each.message_id for each in released.messages] == ["m1", "m2"]
    late = [*executor.on_looked({"b": file("b")}, 2.0), *executor.on_committed(1, 2.0)]
    assert sent(late) == [] and deleted(late) == [] and of(Receive, late) == []


def test_what_is_not_there_and_was_never_handed_on_is_done_with_when_a_commit_shows_that_the_root_is_ours() -> None:
    executor = told("z")
    comes(executor, 1, "a")
    found = executor.on_looked({"a": None}, 1.0)
    assert sent(found) == [] and of(FindDeleted, found) == [] and deleted(found) == []
    sealed = executor.on_barrier(barrier(1), 1.0)
    assert delta_rows(sealed, "list_state"), "without it there would be nothing to commit"
    assert deleted(executor.on_committed(1, 1.0)) == ["m1"]


def test_what_is_deleted_is_reported_once_and_its_message_is_deleted_with_that() -> None:
    executor = told("a")
    comes(executor, 1, "a")
    [asked] = of(FindDeleted, executor.on_looked({"a": None}, 1.0))
    assert set(asked.missing) == {key("a")}
    deleted_file = DeletedFile("s", "a", file("a").version)
    found = executor.on_deleted(DeletedFound(1 << 60, {key("a"): (deleted_file,)}))
    assert sent(found) == [DeletedFiles((deleted_file,))] and deleted(found) == []
    assert deleted(ends(executor, 1)) == ["m1"]
    comes(executor, 2, "a")
    [_] = of(FindDeleted, executor.on_looked({"a": None}, 1.0))
    known = executor.on_deleted(DeletedFound(1 << 60, {key("a"): ()}))
    assert sent(known) == [] and deleted(known) == ["m2"]


def test_a_removal_of_what_is_still_read_waits_for_its_end() -> None:
    executor = told("a")
    comes(executor, 1, "a")
    executor.on_looked({"a": None}, 1.0)
    assert deleted(executor.on_deleted(DeletedFound(1 << 60))) == []
    [_] = of(FindDeleted, executor.on_committed(1, 1.0))
    found = executor.on_deleted(DeletedFound(1 << 60, {key("a"): (DeletedFile("s", "a", file("a").version),)}))
    assert len(sent(found)) == 1


def test_a_version_that_vanished_before_it_was_read_settles_its_removal() -> None:
    executor = told()
    comes(executor, 1, "a")
    executor.on_looked({"a": file("a")}, 1.0)
    ends(executor, 1)
    comes(executor, 2, "a")
    executor.on_looked({"a": None}, 1.0)
    executor.on_deleted(DeletedFound(0))
    again = executor.on_barrier(replace(barrier(2), vanished=(Vanished("s", "a", file("a").version),)), 2.0)
    assert looks(again) == [("a",)]
    assert deleted(executor.on_looked({"a": None}, 2.0)) == []
    assert deleted(executor.on_committed(2, 2.0)) == []
    assert deleted(ends(executor, 3)) == ["m2"]
    comes(executor, 3, "a")
    assert handed_on(executor.on_looked({"a": file("a")}, 3.0)) == [file("a")], "it is new when it is back"


def test_after_a_version_that_was_to_replace_rows_vanished_a_look_tells_whether_they_leave() -> None:
    executor = told("a")
    vanished = Vanished("s", "a", file("a").version, replaces=True)
    assert looks(executor.on_barrier(replace(barrier(1), vanished=(vanished,)), 1.0)) == [("a",)]
    [asked] = of(FindDeleted, executor.on_looked({"a": None}, 2.0))
    assert set(asked.missing) == {key("a")} and executor.progress().paused_removals == 0
    deleted_file = DeletedFile("s", "a", file("a", "0").version)
    assert sent(executor.on_deleted(DeletedFound(1 << 60, {key("a"): (deleted_file,)}))) == [
        DeletedFiles((deleted_file,))
    ]


def test_what_a_listing_lacked_and_a_look_has_shown_is_missed_when_a_later_listing_lacks_it() -> None:
    executor = told("a")
    [_] = of(ReadPage, executor.on_time(10.0))
    comes(executor, 1, "a")
    assert of(FindDeleted, listed(executor, now_s=11.0)) == []
    [_] = of(ReadPage, executor.on_time(25.0))
    missing = listed(executor, now_s=26.0)
    assert [set(each.missing) for each in of(FindDeleted, missing)] == [{key("a")}]
    # The look was made before the object was removed, or after it had come back.
    executor.on_looked({"a": file("a")}, 27.0)
    assert (
        sent(executor.on_deleted(DeletedFound(1 << 60, {key("a"): (DeletedFile("s", "a", file("a").version),)}))) == []
    )
    [_] = of(ReadPage, executor.on_time(40.0))
    assert of(FindDeleted, listed(executor, now_s=41.0)) == []
    [_] = of(ReadPage, executor.on_time(55.0))
    missing = listed(executor, now_s=56.0)
    assert [set(each.missing) for each in of(FindDeleted, missing)] == [{key("a")}]


def test_the_same_version_that_is_back_is_read_again_where_its_rows_have_left() -> None:
    for removes in (True, False):
        executor = told("a", removes=removes)
        comes(executor, 1, "a")
        executor.on_looked({"a": None}, 1.0)
        executor.on_deleted(DeletedFound(1 << 60, {key("a"): (DeletedFile("s", "a", file("a").version),)}))
        ends(executor, 1)
        comes(executor, 2, "a")
        back = changes(executor.on_looked({"a": file("a")}, 1.0))
        assert back == ([ChangedFile(file("a").version, file("a"))] if removes else [])


def test_what_was_written_before_the_limit_is_left_out_and_its_message_deleted() -> None:
    executor = told(not_before_us=microseconds_of(AT) + 1)
    comes(executor, 1, "a")
    found = executor.on_looked({"a": file("a")}, 1.0)
    assert sent(found) == [] and deleted(found) == ["m1"]


def test_poison_is_quarantined_in_the_epoch_after_which_it_is_deleted() -> None:
    executor = told("z")
    executor.on_messages(LONG, [QueueMessage("m1", "r1", "hello", 0.0)], None, 1.0)
    sealed = executor.on_barrier(barrier(1), 2.0)
    [row] = delta_rows(sealed, "quarantine")
    assert row["raw"] == b"hello" and deleted(sealed) == []
    assert report(sealed).activity > 0, "an epoch is made for it"
    assert deleted(executor.on_committed(1, 2.0)) == ["m1"]


def mark(executor: ListExecutor, epoch: int) -> int:
    return report(executor.on_barrier(barrier(epoch), 2.0)).complete_mark


def drain(executor: ListExecutor, mark: int) -> list[ListInstruction]:
    """The queue is empty."""
    return executor.on_messages(Receive(mark, 1.0, is_extra=True), [], QueueDepth(0, 0), 2.0)


def asks(instructions: list[ListInstruction]) -> list[int]:
    return [each.mark for each in of(Receive, instructions) if each.is_extra]


def test_a_mark_is_complete_when_the_queue_is_empty_and_all_that_it_had_is_handed_on() -> None:
    executor = told("z")
    assert mark(executor, 1) == 1, "a listing has completed it"
    drain(executor, 1)
    assert asks(executor.on_mark(2, 1.0)) == [2]
    drain(executor, 2)
    comes(executor, 1, "a")
    assert mark(executor, 2) == 2, "a came later"
    assert asks(executor.on_mark(3, 1.0)) == [3]
    drain(executor, 3)
    assert mark(executor, 3) == 2, "what is looked at may be new"
    executor.on_looked({"a": file("a")}, 2.0)
    assert mark(executor, 4) == 3


def test_before_the_first_listing_an_empty_queue_completes_no_mark() -> None:
    executor = told()
    executor.on_mark(2, 1.0)
    assert asks(drain(executor, 1)) == [2]
    drain(executor, 2)
    assert mark(executor, 1) == 0
    listed(executor, "a")
    assert mark(executor, 2) == 2


def test_a_listing_completes_no_mark_while_what_it_has_shown_is_looked_at_again() -> None:
    executor = told("z")
    assert mark(executor, 1) == 1
    executor.on_mark(2, 9.0)
    [_] = of(ReadPage, executor.on_time(10.0))
    comes(executor, 1, "a")
    executor.on_looked({"a": None}, 11.0)
    assert looks(listed(executor, "a", "z", now_s=12.0)) == [("a",)]
    assert mark(executor, 2) == 1, "a may be new"
    executor.on_looked({"a": file("a")}, 13.0)
    assert mark(executor, 3) == 2


def test_a_queue_is_known_to_have_told_of_everything_from_the_end_of_the_first_listing_on() -> None:
    executor = told()
    executor.on_page(page("a"), 1.0)
    [row] = delta_rows(executor.on_barrier(barrier(1), 2.0), "list_state")
    assert row["queue"] is None, "the next process must list"
    listed(executor, "b")
    [row] = delta_rows(executor.on_barrier(barrier(2), 2.0), "list_state")
    assert row["queue"] == "https://sqs/raw"


def test_a_removal_that_pauses_keeps_no_message_and_a_restart_lists_to_find_it_again() -> None:
    executor = told("a", "b", removes=True, guard=RemovalGuard(0.2, 0))
    comes(executor, 1, "a")
    paused = executor.on_looked({"a": None}, 1.0)
    assert of(ReportRemovals, paused) == [ReportRemovals(1, 2)] and of(FindDeleted, paused) == []
    sealed = executor.on_barrier(barrier(1), 2.0)
    (row,) = delta_rows(sealed, "list_state")
    assert row["queue"] is None and row["tracked"] == 1
    assert deleted(executor.on_committed(1, 2.0)) == ["m1"]
    comes(executor, 2, "c")
    assert handed_on(executor.on_looked({"c": file("c")}, 3.0)) == [file("c")], "new files come in"
    (begun,) = of(ReadPage, executor.on_barrier(barrier(2, AllowRemovals(frozenset({"s"}))), 4.0))
    assert begun.first, "an approval lists at once"
    ended = listed(executor, "b", "c", now_s=4.0)
    assert [set(each.missing) for each in of(FindDeleted, ended)] == [{key("a")}]
    assert of(ReportRemovals, ended) == [ReportRemovals(0, 3)]
    deleted_file = DeletedFile("s", "a", file("a").version)
    assert sent(executor.on_deleted(DeletedFound(1 << 60, {key("a"): (deleted_file,)}))) == [
        DeletedFiles((deleted_file,))
    ]
    (row,) = delta_rows(executor.on_barrier(barrier(3), 5.0), "list_state")
    assert row["queue"] == "https://sqs/raw"


def test_a_message_about_an_earlier_removal_pauses_nothing() -> None:
    executor = told("a", removes=True, guard=RemovalGuard(0.2, 0))
    executor._names.seen.set_deleted([key("a")])
    comes(executor, 1, "a")
    looked = executor.on_looked({"a": None}, 1.0)
    assert of(ReportRemovals, looked) == [] and len(of(FindDeleted, looked)) == 1

from __future__ import annotations

from dataclasses import replace

import pytest

from actors.files import ChangedFile, DeletedFile, Vanished, microseconds_of
from actors.listing import page_look_up
from actors.listing.instructions import FindDeleted, ListInstruction, ReadPage, ReportRemovals
from actors.listing.list_executor import ListExecutor
from actors.listing.listing_pace import ListingPace
from actors.listing.listing_state import ListedState
from actors.listing.missing_files import DeletedFound
from actors.listing.removal_guard import RemovalGuard
from actors.listing.request_budget import RequestBudget
from actors.names.seen_index import SeenIndex
from actors.objects.page_reader import SIDE_BY_SIDE
from actors.protocol.barrier import AllowRemovals, Pause, Reread, Resume
from actors.protocol.instructions import Fail, WakeAt
from actors.protocol.messages import ChangedFiles, DeletedFiles, NewFiles
from actors.sources.path_filter import PathFilter
from state.tables.fingerprint import path_fingerprint
from tests.actors.flow import AT, INITIAL, barrier, delta_rows, file, lister, of, page, report, sent

LATER = 1 << 60


def paths(messages: list[object]) -> list[str]:
    return [each.path for message in messages if isinstance(message, NewFiles) for each in message.files]


def new_files(instructions: list[ListInstruction]) -> NewFiles:
    (message,) = sent(instructions)
    assert isinstance(message, NewFiles)
    return message


def test_lists_from_the_initial_barrier_on_and_again_after_the_interval() -> None:
    executor = lister()
    assert of(ReadPage, executor.on_time(0.0)) == []
    assert of(ReadPage, executor.on_barrier(INITIAL, 0.0)) == [ReadPage(first=True, most=SIDE_BY_SIDE)]
    assert of(ReadPage, executor.on_page(page("a"), 1.0)) == [ReadPage(first=False, most=SIDE_BY_SIDE)]
    assert of(WakeAt, executor.on_listing_end(2.0, AT)) == [WakeAt(12.0)]
    assert of(ReadPage, executor.on_time(11.9)) == []
    assert of(ReadPage, executor.on_time(12.0)) == [ReadPage(first=True, most=SIDE_BY_SIDE)]


def test_sends_a_name_once_however_often_it_is_listed() -> None:
    executor = lister()
    executor.on_barrier(INITIAL, 0.0)
    assert paths(sent(executor.on_page(page("b", "a"), 0.0))) == ["b", "a"]
    executor.on_listing_end(0.0, AT)
    executor.on_time(10.0)
    assert paths(sent(executor.on_page(page("a", "aa", "b"), 10.0))) == ["aa"]


def test_what_was_committed_as_seen_is_not_sent_again() -> None:
    known = file("a")
    executor = lister(seen=SeenIndex([path_fingerprint("s", "a")], [known.version]))
    executor.on_barrier(INITIAL, 0.0)
    assert paths(sent(executor.on_page(page("a", "b"), 0.0))) == ["b"]


def test_a_file_is_seen_in_the_epoch_in_which_it_is_sent() -> None:
    executor = lister()
    executor.on_barrier(INITIAL, 0.0)
    executor.on_page(page("a"), 0.0)
    sealed = executor.on_barrier(barrier(1), 0.0)
    assert [row["version"] for row in delta_rows(sealed, "seen")] == [file("a").version]
    assert delta_rows(executor.on_barrier(barrier(2), 0.0), "seen") == []


def test_the_budget_of_the_barrier_holds_back_and_the_next_page_waits() -> None:
    executor = lister()
    executor.on_barrier(barrier(0, budget=2), 0.0)
    instructions = executor.on_page(page("a", "b", "c"), 0.0)
    assert paths(sent(instructions)) == ["a", "b"]
    assert of(ReadPage, instructions) == []
    assert executor.progress().held == 1
    sealed = executor.on_barrier(barrier(1, budget=2), 0.0)
    assert len(delta_rows(sealed, "seen")) == 2
    assert paths(sent(sealed)) == ["c"]
    assert of(ReadPage, sealed) == [ReadPage(first=False, most=SIDE_BY_SIDE)]


def test_the_budget_is_one_for_all_pages_until_the_next_barrier() -> None:
    executor = lister()
    executor.on_barrier(barrier(0, budget=3), 0.0)
    assert paths(sent(executor.on_page(page("a", "b"), 0.0))) == ["a", "b"]
    assert paths(sent(executor.on_page(page("c", "d"), 0.0))) == ["c"]


def test_a_budget_of_nothing_sends_nothing_and_loses_nothing() -> None:
    executor = lister()
    executor.on_barrier(barrier(0, budget=0), 0.0)
    assert paths(sent(executor.on_page(page("a"), 0.0))) == []
    assert paths(sent(executor.on_barrier(barrier(1, budget=1), 0.0))) == ["a"]


def test_without_a_schema_eight_files_go_ahead_and_the_others_follow_when_it_is_known() -> None:
    executor = lister(schema_known=False)
    executor.on_barrier(INITIAL, 0.0)
    names = [f"f{number:02}" for number in range(20)]
    sample = new_files(executor.on_page(page(*names), 0.0))
    assert (paths([sample]), sample.sample) == (names[:8], 8)
    assert sent(executor.on_barrier(barrier(1), 0.0))[1:] == [], "no more of them, whatever the budget"
    sample = new_files(executor.on_schema(False, 0.0))
    assert (paths([sample]), sample.sample) == (names[8:16], 16), "all that are out"
    rest = new_files(executor.on_schema(True, 0.0))
    assert (paths([rest]), rest.sample) == (names[16:], 0)


def test_a_sample_is_no_larger_than_the_first_page_and_the_budget() -> None:
    executor = lister(schema_known=False)
    executor.on_barrier(barrier(0, budget=2), 0.0)
    assert paths(sent(executor.on_page(page("a", "b", "c"), 0.0))) == ["a", "b"]
    executor = lister(schema_known=False)
    executor.on_barrier(INITIAL, 0.0)
    assert paths(sent(executor.on_page(page("a"), 0.0))) == ["a"]
    assert paths(sent(executor.on_page(page("b", "c"), 0.0))) == []


def test_after_a_restart_what_is_unfinished_is_the_sample() -> None:
    executor = lister(schema_known=False, sampled=2)
    executor.on_barrier(INITIAL, 0.0)
    assert sent(executor.on_page(page("c"), 0.0)) == []
    sample = new_files(executor.on_schema(False, 0.0))
    assert (paths([sample]), sample.sample) == (["c"], 3)


def test_hidden_names_and_names_outside_the_pattern_are_left_out() -> None:
    executor = lister(path_filter=PathFilter("**/*.csv"))
    executor.on_barrier(INITIAL, 0.0)
    listed = page("a.csv", "_b.csv", ".c.csv", "d.txt", "_x=1/e.csv")
    assert paths(sent(executor.on_page(listed, 0.0))) == ["a.csv", "_x=1/e.csv"]


def test_another_version_of_a_sent_file_is_told_once_as_a_change() -> None:
    executor = lister()
    executor.on_barrier(INITIAL, 0.0)
    executor.on_page(page("a"), 0.0)
    executor.on_listing_end(0.0, AT)
    executor.on_time(10.0)
    (message,) = sent(executor.on_page(page("a", etag="2"), 10.0))
    assert isinstance(message, ChangedFiles)
    assert message.files[0].version == file("a").version
    assert message.files[0].now == file("a", "2")
    executor.on_listing_end(10.0, AT)
    executor.on_time(20.0)
    assert sent(executor.on_page(page("a", etag="2"), 20.0)) == []


def test_a_local_file_is_taken_when_two_listings_agree() -> None:
    executor = lister(must_settle=True)
    executor.on_barrier(INITIAL, 0.0)
    assert sent(executor.on_page(page("a", etag="half"), 0.0)) == []
    assert of(WakeAt, executor.on_listing_end(0.0, AT)) == [WakeAt(1.0)], "the second look comes soon"
    executor.on_time(1.0)
    assert sent(executor.on_page(page("a", etag="whole"), 1.0)) == []
    executor.on_listing_end(1.0, AT)
    assert executor.progress().unsettled == 1
    executor.on_time(2.0)
    assert paths(sent(executor.on_page(page("a", etag="whole"), 2.0))) == ["a"]
    assert executor.progress().unsettled == 0, "it is handed on, and counted there"
    executor.on_listing_end(2.0, AT)


def test_a_vanished_version_is_new_if_it_is_listed_again_and_another_one_is_not_forgotten() -> None:
    executor = lister()
    executor.on_barrier(INITIAL, 0.0)
    executor.on_page(page("a", "b"), 0.0)
    executor.on_listing_end(0.0, AT)
    deleted = tuple(Vanished("s", path, file(path, etag).version) for path, etag in (("a", "1"), ("b", "other")))
    executor.on_barrier(replace(barrier(1), vanished=deleted), 10.0)
    assert paths(sent(executor.on_page(page("a", "b"), 10.0))) == ["a"]


def mark(executor: ListExecutor, epoch: int) -> int:
    return report(executor.on_barrier(barrier(epoch), 0.0)).complete_mark


def test_a_mark_is_complete_at_the_end_of_a_listing_that_began_after_it() -> None:
    executor = lister()
    executor.on_barrier(INITIAL, 0.0)
    executor.on_page(page("a"), 0.0)
    assert mark(executor, 1) == 0
    executor.on_mark(2, 0.0)
    executor.on_listing_end(0.0, AT)
    assert mark(executor, 2) == 1
    executor.on_time(10.0)
    executor.on_page(page("a"), 10.0)
    executor.on_listing_end(10.0, AT)
    assert mark(executor, 3) == 2


def reads(instructions: list[ListInstruction]) -> list[bool]:
    """True if each requested page is the first of a listing."""
    return [each.first for each in of(ReadPage, instructions)]


def list_once(executor: ListExecutor, now_s: float, *paths: str) -> list[ListInstruction]:
    """Answers a listing that is under way."""
    executor.on_page(page(*paths), now_s)
    return executor.on_listing_end(now_s, AT)


def test_a_wait_does_not_wait_for_the_time_of_the_next_listing() -> None:
    executor = lister()
    executor.on_barrier(INITIAL, 0.0)
    list_once(executor, 0.0)
    assert reads(executor.on_mark(2, 3.0)) == [], "a watermark has time"
    assert reads(executor.on_mark(3, 3.0, at_once=True)) == [True]
    assert mark(executor, 1) == 1
    assert of(WakeAt, list_once(executor, 3.5)) == [WakeAt(13.5)]
    assert mark(executor, 2) == 3


def test_a_wait_during_a_listing_is_followed_by_another_listing_at_once() -> None:
    executor = lister()
    executor.on_barrier(INITIAL, 0.0)
    assert reads(executor.on_mark(2, 3.0, at_once=True)) == [], "one listing at a time"
    assert reads(list_once(executor, 4.0)) == [True]
    assert mark(executor, 1) == 1
    assert reads(list_once(executor, 5.0)) == []
    assert mark(executor, 2) == 2


def test_a_wait_for_a_local_file_takes_the_two_listings_that_show_it_whole() -> None:
    executor = lister(must_settle=True)
    executor.on_barrier(INITIAL, 0.0)
    list_once(executor, 0.0)
    executor.on_mark(2, 3.0, at_once=True)
    assert of(WakeAt, list_once(executor, 3.0, "a")) == [WakeAt(4.0)], "not at once: the file may be growing"
    executor.on_time(4.0)
    assert of(WakeAt, list_once(executor, 4.0, "a")) == [WakeAt(14.0)]
    assert mark(executor, 1) == 2


def test_a_wait_gets_its_listing_after_a_pause() -> None:
    executor = lister()
    executor.on_barrier(INITIAL, 0.0)
    list_once(executor, 0.0)
    executor.on_barrier(replace(barrier(1), mutation=Pause()), 1.0)
    assert reads(executor.on_mark(2, 3.0, at_once=True)) == []
    assert reads(executor.on_barrier(replace(barrier(2), mutation=Resume()), 4.0)) == [True]


def test_waits_leave_half_of_the_requests_of_an_hour_to_the_other_listings() -> None:
    executor = lister(pace=ListingPace(10.0, RequestBudget(20)))
    executor.on_barrier(INITIAL, 0.0)
    list_once(executor, 0.0)
    for number in range(2, 11):
        assert reads(executor.on_mark(number, 3.0, at_once=True)) == [True]
        list_once(executor, 3.0)
    assert reads(executor.on_mark(11, 3.0, at_once=True)) == []
    (wake,) = of(WakeAt, executor.on_time(3.0))
    assert wake.monotonic_s == 183.0, "the regular time: 20 requests an hour"


def test_a_listing_of_many_pages_at_once_needs_all_of_them_in_the_half() -> None:
    pace = ListingPace(10.0, RequestBudget(20))
    pace.begin(0.0)
    pace.ask(7, 0.0)
    pace.on_page(7, 0.0)
    pace.end(0.0)
    pace.request(1.0)
    assert pace.next_s(1.0, is_listing=False) == 1_260.0, "14 of 20 would be gone"


def test_a_wait_lists_a_table_that_came_with_the_pipeline_until_its_file_is_committed() -> None:
    executor = lister(is_frame=True)
    executor.on_barrier(INITIAL, 0.0)
    list_once(executor, 0.0, "rows.parquet")
    executor.on_barrier(barrier(1), 0.0)
    assert reads(executor.on_mark(2, 1.0, at_once=True)) == [True], "it may be replaced before the ledger has the file"
    list_once(executor, 1.0, "rows.parquet")
    executor.on_committed(1, 1.5)
    assert reads(executor.on_mark(3, 2.0, at_once=True)) == [True], "the last listing began before the commit"
    list_once(executor, 2.0, "rows.parquet")
    assert reads(executor.on_mark(4, 3.0, at_once=True)) == []
    assert mark(executor, 2) == 4
    assert reads(executor.on_time(12.0)) == [True], "a replacement whose process was killed is found in time"


def test_a_wait_needs_no_listing_of_a_table_that_was_read_before() -> None:
    executor = table_as_read()
    list_once(executor, 0.0, "rows.parquet")
    assert reads(executor.on_mark(2, 3.0, at_once=True)) == []
    assert mark(executor, 1) == 2


def test_a_wait_lists_a_table_whose_file_is_not_there_or_has_changed() -> None:
    executor = lister(is_frame=True)
    executor.on_barrier(INITIAL, 0.0)
    list_once(executor, 0.0)
    assert reads(executor.on_mark(2, 3.0, at_once=True)) == [True]
    executor = table_as_read()
    executor.on_page(page("rows.parquet", etag="2"), 0.0)
    executor.on_listing_end(0.0, AT)
    assert reads(executor.on_mark(2, 3.0, at_once=True)) == [True]


def test_a_wait_lists_a_table_whose_file_was_replaced_before_it_was_read() -> None:
    executor = table_as_read()
    list_once(executor, 0.0, "rows.parquet")
    lost = Vanished("s", "rows.parquet", file("rows.parquet").version)
    executor.on_barrier(replace(barrier(1), vanished=(lost,)), 1.0)
    assert reads(executor.on_mark(2, 3.0, at_once=True)) == [True]


def table_as_read() -> ListExecutor:
    """The list step of a table that was read before, in its first listing."""
    known = file("rows.parquet")
    executor = lister(is_frame=True, seen=SeenIndex([path_fingerprint("s", known.path)], [known.version]))
    executor.on_barrier(INITIAL, 0.0)
    return executor


def test_a_mark_waits_for_the_settling_files_and_for_no_others() -> None:
    executor = lister(must_settle=True)
    executor.on_barrier(INITIAL, 0.0)
    executor.on_page(page("a", "b"), 0.0)
    executor.on_listing_end(0.0, AT)
    assert mark(executor, 1) == 0
    executor.on_time(1.0)
    executor.on_page(page("a"), 1.0)
    executor.on_page(page("b", etag="grows"), 1.0)
    executor.on_listing_end(1.0, AT)
    assert mark(executor, 2) == 0
    executor.on_time(2.0)
    executor.on_page(page("a"), 2.0)
    executor.on_page(page("b", "new", etag="grows"), 2.0)
    executor.on_listing_end(2.0, AT)
    assert mark(executor, 3) == 1


def test_a_changed_file_is_waited_for_once_and_then_holds_nothing_up() -> None:
    known = file("a")
    executor = lister(seen=SeenIndex([path_fingerprint("s", "a")], [known.version]), must_settle=True)
    executor.on_barrier(INITIAL, 0.0)
    executor.on_page(page("a", etag="grown"), 0.0)
    executor.on_listing_end(0.0, AT)
    assert mark(executor, 1) == 0, "its new version may be one to read"
    executor.on_time(1.0)
    executor.on_page(page("a", etag="grown again"), 1.0)
    executor.on_listing_end(1.0, AT)
    assert mark(executor, 2) == 1


def test_nothing_is_listed_or_sent_while_paused() -> None:
    executor = lister()
    executor.on_barrier(INITIAL, 0.0)
    executor.on_barrier(barrier(1, Pause()), 0.0)
    assert paths(sent(executor.on_page(page("a"), 0.0))) == []
    resumed = executor.on_barrier(barrier(2, Resume()), 0.0)
    assert paths(sent(resumed)) == ["a"]
    assert of(ReadPage, resumed) == [ReadPage(first=False, most=SIDE_BY_SIDE)]


def test_the_time_of_the_last_listing_goes_with_what_it_found() -> None:
    executor = lister()
    executor.on_barrier(INITIAL, 0.0)
    executor.on_page(page("a"), 0.0)
    executor.on_listing_end(0.0, AT)
    (row,) = delta_rows(executor.on_barrier(barrier(1), 0.0), "list_state")
    assert (row["source"], row["listed_at"], row["requests"]) == ("s", AT, 1)


def test_what_the_last_listing_found_is_known_until_the_next_one_has_ended() -> None:
    state = ListedState.of_rows([{"source": "s", "listed_at": AT, "queue": None, "found": 7}])["s"]
    assert ListedState.of_rows([{"source": "s", "listed_at": AT, "queue": None, "found": None}])["s"].found == 0
    executor = lister(listed=state)
    executor.on_barrier(INITIAL, 0.0)
    executor.on_page(page("a"), 0.0)
    (row,) = delta_rows(executor.on_barrier(barrier(1), 0.0), "list_state")
    assert (row["listed_at"], row["found"], executor.progress().found) == (AT, 7, 7)
    executor.on_listing_end(0.0, AT)
    assert executor.progress().found == 1


def test_an_idle_epoch_writes_nothing() -> None:
    executor = lister()
    executor.on_barrier(INITIAL, 0.0)
    executor.on_listing_end(0.0, AT)
    assert delta_rows(executor.on_barrier(barrier(1), 0.0), "list_state") == []


def listed(executor: ListExecutor, now_s: float, *names: str) -> list[ListInstruction]:
    """One listing of one page, and what follows from it."""
    begun = executor.on_time(now_s)
    assert of(ReadPage, begun) or not of(WakeAt, begun)
    return [*executor.on_page(page(*names), now_s), *executor.on_listing_end(now_s, AT)]


def missing(instructions: list[ListInstruction]) -> set[bytes]:
    return {key for each in of(FindDeleted, instructions) for key in each.missing}


def key(path: str) -> bytes:
    return path_fingerprint("s", path)


def deleted_file(path: str) -> DeletedFile:
    return DeletedFile("s", path, file(path).version)


def test_what_listings_showed_and_two_in_a_row_do_not_is_looked_for_and_told_once() -> None:
    executor = lister()
    executor.on_barrier(INITIAL, 0.0)
    for now_s in (0.0, 10.0):
        assert missing(listed(executor, now_s, "a", "b")) == set()
    # The first listing may only show that a name is missing; the next one looks up which, and another one confirms.
    asked = [missing(listed(executor, now_s, "a")) for now_s in (20.0, 30.0, 40.0)]
    assert asked in ([set(), {key("b")}, set()], [set(), set(), {key("b")}])
    (message,) = sent(executor.on_deleted(DeletedFound(LATER, {key("b"): (deleted_file("b"),)})))
    assert message == DeletedFiles((deleted_file("b"),))
    for now_s in (50.0, 60.0):
        assert missing(listed(executor, now_s, "a")) == set()


def test_what_the_store_does_not_know_yet_is_looked_for_again() -> None:
    executor = lister(seen=SeenIndex([key("a")], [file("a").version]))
    executor.on_barrier(INITIAL, 0.0)
    assert missing(listed(executor, 0.0)) == set(), "another listing must confirm it"
    assert missing(listed(executor, 10.0)) == {key("a")}
    assert sent(executor.on_deleted(DeletedFound(LATER))) == []
    assert missing(listed(executor, 20.0)) == {key("a")}
    assert missing(listed(executor, 30.0)) == set(), "not while the answer is out"
    executor.on_deleted(DeletedFound(LATER))
    assert missing(listed(executor, 40.0)) == {key("a")}
    executor.on_deleted(DeletedFound(LATER))
    assert missing(listed(executor, 50.0)) == set(), "less and less often"
    executor.on_barrier(barrier(1), 55.0)
    assert missing(listed(executor, 60.0)) == {key("a")}, "an epoch may have brought it"


def test_what_is_back_before_the_answer_is_not_told() -> None:
    executor = lister(seen=SeenIndex([key("a")], [file("a").version]))
    executor.on_barrier(INITIAL, 0.0)
    listed(executor, 0.0)
    assert missing(listed(executor, 10.0)) == {key("a")}
    assert sent(listed(executor, 20.0, "a")) == []
    assert sent(executor.on_deleted(DeletedFound(LATER, {key("a"): (deleted_file("a"),)}))) == []


def test_what_was_handed_on_since_the_last_commit_is_looked_for_again_whatever_the_store_says() -> None:
    executor = lister()
    executor.on_barrier(INITIAL, 0.0)
    listed(executor, 0.0, "a")
    asked = [missing(listed(executor, now_s)) for now_s in (10.0, 20.0, 30.0)]
    assert {key("a")} in asked
    # The store has a row of it from before: it says that it is deleted.
    executor.on_deleted(DeletedFound(0, {key("a"): ()}))
    executor.on_barrier(barrier(1), 35.0)
    assert missing(listed(executor, 40.0)) == {key("a")}
    (message,) = sent(executor.on_deleted(DeletedFound(1, {key("a"): (deleted_file("a"),)})))
    assert message == DeletedFiles((deleted_file("a"),))


def removing(count: int) -> ListExecutor:
    names = [f"f{number}" for number in range(count)]
    seen = SeenIndex([key(name) for name in names], [file(name).version for name in names])
    executor = lister(seen=seen, removes=True, guard=RemovalGuard(0.2, 100))
    executor.on_barrier(INITIAL, 0.0)
    return executor


def test_a_listing_that_is_empty_for_a_moment_asks_for_nothing() -> None:
    executor = removing(3)
    assert missing(listed(executor, 0.0)) == set()
    assert executor.progress().paused_removals == 0, "one listing says little"
    assert missing(listed(executor, 10.0, "f0", "f1", "f2")) == set()
    assert missing(listed(executor, 20.0)) == missing(listed(executor, 30.0, "f0", "f1", "f2")) == set()


def test_removals_pause_when_every_file_is_missing_and_go_on_when_files_are_back() -> None:
    executor = removing(3)
    listed(executor, 0.0)
    paused = listed(executor, 10.0)
    assert missing(paused) == set() and of(ReportRemovals, paused) == [ReportRemovals(3, 3)]
    assert executor.progress().paused_removals == 3
    assert missing(listed(executor, 20.0)) == set()
    back = listed(executor, 30.0, "f0")
    assert missing(back) == {key("f1"), key("f2")} and of(ReportRemovals, back) == [ReportRemovals(0, 3)]


def test_new_and_changed_files_are_read_while_removals_pause() -> None:
    executor = removing(200)
    for now_s in (0.0, 10.0):
        listed(executor, now_s, "f0", "f1")
    executor.on_time(20.0)
    changed, new = sent([*executor.on_page(page("f0", etag="2"), 20.0), *executor.on_page(page("new"), 20.0)])
    assert executor.progress().paused_removals == 198
    assert isinstance(changed, (NewFiles, ChangedFiles)) and [each.path for each in changed.files] == ["f0"]
    assert isinstance(new, NewFiles) and [each.path for each in new.files] == ["new"]


def test_more_missing_names_than_fit_into_one_request_count_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_look_up, "_MISSING_AT_ONCE", 5)
    executor = removing(1_000)
    shown = [f"f{number}" for number in range(700)]
    for now_s in (0.0, 10.0, 20.0, 30.0):
        assert missing(listed(executor, now_s, *shown)) == set()
    assert executor.progress().paused_removals == 300


def test_allowed_removals_wait_for_one_more_listing_that_comes_at_once() -> None:
    executor = removing(3)
    for now_s in (0.0, 10.0):
        listed(executor, now_s)
    assert of(ReadPage, executor.on_barrier(barrier(1, AllowRemovals(frozenset({"other"}))), 11.0)) == []
    (begun,) = of(ReadPage, executor.on_barrier(barrier(2, AllowRemovals(frozenset({"s"}))), 12.0))
    assert begun.first
    ended = [*executor.on_page(page("f0"), 12.0), *executor.on_listing_end(12.0, AT)]
    assert missing(ended) == {key("f1"), key("f2")}, "one of them was still there"


def test_allowed_removals_go_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_look_up, "_MISSING_AT_ONCE", 50)
    executor = removing(1_000)
    shown = [f"f{number}" for number in range(700)]
    for now_s in (0.0, 10.0):
        listed(executor, now_s, *shown)
    executor.on_barrier(barrier(1, AllowRemovals(frozenset({"s"}))), 11.0)
    asked: set[bytes] = set()
    for number in range(30):
        keys = missing(listed(executor, 20.0 + 10 * number, *shown))
        asked |= keys
        executor.on_deleted(DeletedFound(LATER, {each: (DeletedFile("s", each.hex(), b""),) for each in keys}))
    assert asked == {key(f"f{number}") for number in range(700, 1_000)}
    assert executor.progress().paused_removals == 0


def test_a_second_listing_comes_soon_and_every_other_time() -> None:
    pace = ListingPace(3_600.0, RequestBudget(None))
    executor = lister(seen=SeenIndex([key("a")], [file("a").version]), pace=pace)
    executor.on_barrier(INITIAL, 0.0)
    (wake,) = of(WakeAt, listed(executor, 0.0))
    assert wake.monotonic_s == 10.0
    assert missing(listed(executor, 10.0)) == {key("a")}
    executor.on_deleted(DeletedFound(LATER))
    (wake,) = of(WakeAt, executor.on_time(11.0))
    assert wake.monotonic_s == 3_610.0


def test_a_vanished_version_is_nothing_that_was_there() -> None:
    executor = lister()
    executor.on_barrier(INITIAL, 0.0)
    listed(executor, 0.0, "a")
    executor.on_barrier(replace(barrier(1), vanished=(Vanished("s", "a", file("a").version),)), 5.0)
    assert missing(listed(executor, 10.0)) == set()


def unread(executor: ListExecutor, number: int, name: str = "f0") -> None:
    vanished = Vanished("s", name, file(name).version, replaces=True)
    executor.on_barrier(replace(barrier(number), vanished=(vanished,)), 10.0 * number + 5)


def test_a_vanished_version_that_was_to_replace_rows_is_missing_when_two_listings_lack_it() -> None:
    executor = removing(3)
    listed(executor, 0.0, "f0", "f1", "f2")
    unread(executor, 1)
    assert missing(listed(executor, 20.0, "f1", "f2")) == set(), "another listing must confirm it"
    assert missing(listed(executor, 30.0, "f1", "f2")) == {key("f0")}
    (message,) = sent(executor.on_deleted(DeletedFound(LATER, {key("f0"): (deleted_file("f0"),)})))
    assert message == DeletedFiles((deleted_file("f0"),))
    assert missing(listed(executor, 40.0, "f1", "f2")) == missing(listed(executor, 50.0, "f1", "f2")) == set()
    (back,) = sent(listed(executor, 60.0, "f0", "f1", "f2"))
    assert back == ChangedFiles((ChangedFile(file("f0").version, file("f0")),))


def test_a_vanished_version_that_was_to_replace_rows_is_read_again_once_when_it_is_listed() -> None:
    executor = removing(3)
    listed(executor, 0.0, "f0", "f1", "f2")
    unread(executor, 1)
    (back,) = sent(listed(executor, 20.0, "f0", "f1", "f2"))
    assert back == ChangedFiles((ChangedFile(file("f0").version, file("f0")),))
    assert sent(listed(executor, 30.0, "f0", "f1", "f2")) == sent(listed(executor, 40.0, "f0", "f1", "f2")) == []


def test_vanished_versions_that_were_to_replace_rows_pause_removals_like_others() -> None:
    executor = removing(3)
    listed(executor, 0.0, "f0", "f1", "f2")
    for number in range(3):
        unread(executor, number + 1, f"f{number}")
    listed(executor, 50.0)
    assert missing(listed(executor, 60.0)) == set()
    assert executor.progress().paused_removals == 3


def test_a_vanished_version_is_found_again_in_a_page_that_has_not_changed() -> None:
    executor = lister()
    executor.on_barrier(INITIAL, 0.0)
    for now_s in (0.0, 10.0, 20.0):
        listed(executor, now_s, "a", "b")
    executor.on_barrier(replace(barrier(1), vanished=(Vanished("s", "a", file("a").version),)), 25.0)
    assert paths(sent(listed(executor, 30.0, "a", "b"))) == ["a"]


@pytest.mark.parametrize("replaces", [False, True])
def test_a_name_that_is_listed_and_never_there_is_not_read_for_ever(*, replaces: bool) -> None:
    executor = lister(removes=replaces)
    executor.on_barrier(INITIAL, 0.0)
    handed_on = 0
    for number in range(1, 20):
        for message in sent(listed(executor, 10.0 * number, "m", "n")):
            assert isinstance(message, (NewFiles, ChangedFiles))
            handed_on += sum(each.path == "m" for each in message.files)
        deleted = Vanished("s", "m", file("m").version, replaces=replaces)
        executor.on_barrier(replace(barrier(number), vanished=(deleted,)), 10.0 * number + 5)
    assert handed_on == 5


def test_a_file_that_is_read_again_may_have_changed_when_the_listing_shows_it() -> None:
    executor = lister()
    executor.on_barrier(INITIAL, 0.0)
    listed(executor, 0.0, "a", "b")
    executor.on_mark(2, 5.0)
    executor.on_time(10.0)
    executor.on_barrier(barrier(1, Reread((file("b", "2"),))), 10.0)
    shown = executor.on_page(page("a"), 10.0) + executor.on_page(page("b", etag="3"), 10.0)
    assert (of(Fail, shown), sent(shown)) == ([], [])
    executor.on_listing_end(10.0, AT)
    assert mark(executor, 2) == 1, "the version that it has shown is not handed on"
    executor.on_time(20.0)
    executor.on_page(page("a"), 20.0)
    (changed,) = sent(executor.on_page(page("b", etag="3"), 20.0))
    assert changed == ChangedFiles((ChangedFile(file("b", "2").version, file("b", "3")),))
    executor.on_listing_end(20.0, AT)
    assert mark(executor, 3) == 2


def test_a_file_that_vanishes_during_a_listing_does_not_hold_its_mark_up() -> None:
    executor = lister()
    executor.on_barrier(INITIAL, 0.0)
    listed(executor, 0.0, "a", "b")
    executor.on_mark(2, 5.0)
    executor.on_time(10.0)
    executor.on_page(page("a", "b"), 10.0)
    executor.on_barrier(replace(barrier(1), vanished=(Vanished("s", "b", file("b").version),)), 10.0)
    executor.on_listing_end(10.0, AT)
    assert mark(executor, 2) == 2


def test_two_names_with_one_fingerprint_end_the_run() -> None:
    executor = lister(seen=SeenIndex([key("b")], [file("a").version]))
    executor.on_barrier(INITIAL, 0.0)
    # As if `a` had been handed on and listed, and `b` had its fingerprint.
    assert not of(Fail, executor.on_page(page("b"), 0.0))
    (fail,) = of(Fail, executor.on_page(page("b", etag="2"), 0.0))
    assert "source s: b was listed twice in two versions, or has the fingerprint of another name" in str(fail.error)


def test_a_limited_listing_waits_for_its_budget_between_pages_and_between_listings() -> None:
    executor = lister(pace=ListingPace(10.0, RequestBudget(SIDE_BY_SIDE + 1)))
    (begun,) = of(ReadPage, executor.on_barrier(INITIAL, 0.0))
    assert begun.most == SIDE_BY_SIDE
    pages = replace(page("a"), requests=SIDE_BY_SIDE)
    assert of(ReadPage, executor.on_page(pages, 1.0)) == [ReadPage(first=False, most=1)]
    (wait,) = of(WakeAt, executor.on_page(page("b"), 2.0))
    assert wait.monotonic_s == pytest.approx(3_601.0)
    assert executor.progress().spent[0] == SIDE_BY_SIDE + 1
    assert of(ReadPage, executor.on_time(3_601.0)) == [ReadPage(first=False, most=SIDE_BY_SIDE)]
    (wait,) = of(WakeAt, executor.on_listing_end(3_601.0, AT))
    assert wait.monotonic_s == pytest.approx(3_611.0)


@pytest.mark.parametrize("requests_per_hour", [1, 20])
def test_to_end_a_listing_takes_no_budget(requests_per_hour: int) -> None:
    executor = lister(pace=ListingPace(10.0, RequestBudget(requests_per_hour)))
    executor.on_barrier(INITIAL, 0.0)
    assert of(ReadPage, executor.on_page(replace(page("a"), is_last=True), 0.0)) == [ReadPage(first=False, most=0)]


def test_a_listing_that_took_all_requests_is_followed_by_a_pause() -> None:
    executor = lister(pace=ListingPace(10.0, RequestBudget(1)))
    executor.on_barrier(INITIAL, 0.0)
    executor.on_page(replace(page("a"), is_last=True), 0.0)
    (wait,) = of(WakeAt, executor.on_listing_end(0.0, AT))
    assert wait.monotonic_s == pytest.approx(3_601.0, abs=1.0)
    assert executor.progress().stretched_by == "max_requests_per_hour"


def test_old_objects_are_left_out_but_not_what_was_read_before() -> None:
    limit_us = microseconds_of(AT)
    executor = lister(seen=SeenIndex([key("read")], [file("read").version]), not_before_us=limit_us + 1)
    executor.on_barrier(INITIAL, 0.0)
    for now_s in (0.0, 10.0, 20.0):
        assert sent(listed(executor, now_s, "old", "read")) == []
    assert missing(listed(executor, 30.0, "old")) | missing(listed(executor, 40.0, "old")) == {key("read")}
    executor = lister(not_before_us=limit_us)
    executor.on_barrier(INITIAL, 0.0)
    assert paths(sent(listed(executor, 0.0, "on time"))) == ["on time"]

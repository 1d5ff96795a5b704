from __future__ import annotations

from dataclasses import replace

from actors.instructions import ReadPage, WakeAt
from actors.list_executor import ListExecutor
from actors.messages import ChangedFiles, NewFiles, Pause, Resume, Vanished
from actors.path_filter import PathFilter
from actors.seen_index import SeenIndex
from state.fingerprint import path_fingerprint
from tests.actors.flow import AT, INITIAL, barrier, delta_rows, file, of, page, report, sent
from tests.actors.test_executor_contract import lister


def paths(messages: list[object]) -> list[str]:
    return [each.path for message in messages if isinstance(message, NewFiles) for each in message.files]


def test_lists_from_the_initial_barrier_on_and_again_after_the_interval() -> None:
    executor = lister()
    assert of(ReadPage, executor.on_time(0.0)) == []
    assert of(ReadPage, executor.on_barrier(INITIAL, 0.0)) == [ReadPage(first=True)]
    assert of(ReadPage, executor.on_page(page("a"), 1.0)) == [ReadPage(first=False)]
    assert of(WakeAt, executor.on_listing_end(2.0, AT)) == [WakeAt(12.0)]
    assert of(ReadPage, executor.on_time(11.9)) == []
    assert of(ReadPage, executor.on_time(12.0)) == [ReadPage(first=True)]


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
    assert of(ReadPage, sealed) == [ReadPage(first=False)]


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


def test_without_a_schema_one_file_goes_ahead_and_the_others_follow_when_it_is_known() -> None:
    executor = lister(schema_known=False)
    executor.on_barrier(INITIAL, 0.0)
    assert paths(sent(executor.on_page(page("a", "b", "c"), 0.0))) == ["a"]
    assert paths(sent(executor.on_barrier(barrier(1), 0.0))) == [], "one at a time, whatever the budget"
    assert paths(sent(executor.on_schema(False, 0.0))) == ["b"]
    assert paths(sent(executor.on_schema(True, 0.0))) == ["c"]


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
    executor.on_listing_end(2.0, AT)
    assert executor.progress().unsettled == 0


def test_a_vanished_version_is_new_if_it_is_listed_again_and_another_one_is_not_forgotten() -> None:
    executor = lister()
    executor.on_barrier(INITIAL, 0.0)
    executor.on_page(page("a", "b"), 0.0)
    executor.on_listing_end(0.0, AT)
    gone = tuple(Vanished("s", path, file(path, etag).version) for path, etag in (("a", "1"), ("b", "other")))
    executor.on_barrier(replace(barrier(1), vanished=gone), 10.0)
    assert paths(sent(executor.on_page(page("a", "b"), 10.0))) == ["a"]


def mark(executor: ListExecutor, epoch: int) -> int:
    return report(executor.on_barrier(barrier(epoch), 0.0)).complete_mark


def test_a_mark_is_complete_at_the_end_of_a_listing_that_began_after_it() -> None:
    executor = lister()
    executor.on_barrier(INITIAL, 0.0)
    executor.on_page(page("a"), 0.0)
    assert mark(executor, 1) == 0
    executor.on_mark(2)
    executor.on_listing_end(0.0, AT)
    assert mark(executor, 2) == 1
    executor.on_time(10.0)
    executor.on_listing_end(10.0, AT)
    assert mark(executor, 3) == 2


def test_a_mark_waits_for_the_files_that_were_too_young_and_for_no_others() -> None:
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
    assert of(ReadPage, resumed) == [ReadPage(first=False)]


def test_the_time_of_the_last_listing_goes_with_what_it_found() -> None:
    executor = lister()
    executor.on_barrier(INITIAL, 0.0)
    executor.on_page(page("a"), 0.0)
    executor.on_listing_end(0.0, AT)
    (row,) = delta_rows(executor.on_barrier(barrier(1), 0.0), "list_state")
    assert (row["source"], row["listed_at"], row["requests"]) == ("s", AT, 1)


def test_an_idle_epoch_writes_nothing() -> None:
    executor = lister()
    executor.on_barrier(INITIAL, 0.0)
    executor.on_listing_end(0.0, AT)
    assert delta_rows(executor.on_barrier(barrier(1), 0.0), "list_state") == []

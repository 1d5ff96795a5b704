"""A source pauses while its pattern accepts files of a table or a root, and nothing of it is handed on or removed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from actors.files import DeletedFile, FileVersion
from actors.listing.instructions import FindDeleted, ListInstruction, ReadPage, ReportPause
from actors.listing.list_executor import ListExecutor
from actors.listing.missing_files import DeletedFound
from actors.names.seen_index import SeenIndex
from actors.notifications.event_feed import EventFeed
from actors.notifications.event_watch import EventWatch
from actors.notifications.instructions import DeleteMessages, LookAt, Receive
from actors.notifications.message_tracker import QueueMessage
from actors.protocol.instructions import WakeAt
from actors.protocol.messages import DeletedFiles, NewFiles
from actors.sources.path_filter import PathFilter
from state.tables.fingerprint import path_fingerprint
from tests.actors.flow import AT, INITIAL, barrier, delta_rows, file, lister, of, page, report, sent
from tests.actors.notifications.bucket_events import direct, record

LOG = "t/_delta_log/00000000000000000000.json"
DATA = "t/part-0.parquet"


def paths(instructions: list[ListInstruction]) -> list[str]:
    return [each.path for message in sent(instructions) if isinstance(message, NewFiles) for each in message.files]


def listed(executor: ListExecutor, *pages: tuple[str, ...], now_s: float = 0.0) -> list[ListInstruction]:
    """A listing that is under way or due now, with these pages, and its end."""
    executor.on_time(now_s)
    done = [instruction for names in pages for instruction in executor.on_page(page(*names), now_s)]
    return [*done, *executor.on_listing_end(now_s, AT)]


def began(**options: Any) -> ListExecutor:
    made = lister(**options)
    made.on_barrier(INITIAL, 0.0)
    return made


def test_a_table_in_the_listing_pauses_the_source_before_a_file_of_the_page_is_handed_on() -> None:
    executor = began()
    found = listed(executor, ("a.csv", LOG, "t/part-0.parquet"))
    assert sent(found) == []
    (told,) = of(ReportPause, found)
    assert told.reason is not None and told.reason == executor.progress().paused
    assert told.reason.startswith(f"s3://raw/t is a Delta table ({LOG}): its files are not read as data; read ")
    assert "Parquet files that a job writes from its new rows, or move it, give the source another URL" in told.reason
    assert delta_rows(executor.on_barrier(barrier(1), 0.0), "seen") == []


def test_a_pause_is_told_once_and_ends_with_a_listing_without_the_table() -> None:
    executor = began()
    listed(executor, ("a.csv", LOG, DATA))
    assert of(ReportPause, listed(executor, ("a.csv", LOG, DATA), now_s=10.0)) == []
    ended = listed(executor, ("a.csv",), now_s=20.0)
    assert of(ReportPause, ended) == [ReportPause(None)] and executor.progress().paused is None
    assert of(ReadPage, ended)[-1] == ReadPage(first=True, most=8), "it lists at once"
    assert paths(executor.on_page(page("a.csv", "b.csv"), 20.0)) == ["a.csv", "b.csv"]


def test_a_paused_source_is_listed_again_and_reads_nothing_meanwhile() -> None:
    executor = began()
    assert of(WakeAt, listed(executor, (LOG, DATA))) == [WakeAt(10.0)]
    assert of(ReadPage, executor.on_time(10.0)) == [ReadPage(first=True, most=8)]
    assert sent(executor.on_page(page("a.csv"), 10.0)) == [], "the log may be on a later page"
    assert sent(executor.on_page(page(LOG, DATA), 10.0)) == []
    assert executor.progress().paused is not None


def test_unsent_files_are_dropped_by_a_pause() -> None:
    executor = began(order="name")
    executor.on_page(page("a.csv"), 0.0)
    assert executor.progress().held == 1, "files that are read in order wait for the end of the listing"
    assert sent(listed(executor, (LOG, DATA))) == [] and executor.progress().held == 0
    listed(executor, ("a.csv",), now_s=10.0)
    assert paths(listed(executor, ("a.csv",), now_s=10.0)) == ["a.csv"]


@pytest.mark.parametrize(
    ("pattern", "is_paused"),
    [("**", True), ("**/*.parquet", True), ("*/part*", True), ("t/**", True), ("**/*.csv", False), ("in/*", False)],
)
def test_a_table_of_which_the_pattern_accepts_no_file_pauses_nothing(pattern: str, is_paused: bool) -> None:
    executor = began(path_filter=PathFilter(pattern))
    listed(executor, ("in/a.csv", LOG, "t/part-0.parquet"))
    assert (executor.progress().paused is not None) == is_paused


def test_a_log_on_an_earlier_page_or_in_the_listing_before_counts() -> None:
    executor = began(path_filter=PathFilter("**/*.parquet"))
    executor.on_page(page(LOG), 0.0)
    assert executor.progress().paused is None, "nothing of it is accepted yet"
    assert sent(executor.on_page(page("t/part-0.parquet"), 0.0)) == []
    assert executor.progress().paused is not None
    # The data files of Iceberg sort before its metadata.
    executor = began(path_filter=PathFilter("**/*.parquet"))
    listed(executor, ("t/metadata/v1.metadata.json",))
    assert sent(executor.on_page(page("t/data/0.parquet"), 10.0)) == []
    assert executor.progress().paused is not None


def test_a_marker_in_the_source_itself_pauses_it() -> None:
    executor = began()
    listed(executor, ("_slackwater.json", "owner.json"))
    assert (executor.progress().paused or "").startswith("s3://raw is a root or a published table of Slackwater")


def test_a_source_within_a_table_is_paused() -> None:
    executor = began()
    above = replace(page("a.csv"), above="the source is in a Delta table (s3://raw/t/_delta_log)")
    assert sent(executor.on_page(above, 0.0)) == []
    assert (executor.progress().paused or "").startswith("the source is in a Delta table")
    executor.on_listing_end(0.0, AT)
    assert of(ReportPause, listed(executor, ("a.csv",), now_s=60.0)) == [ReportPause(None)]


def test_no_missing_file_leaves_the_views_while_the_source_is_paused() -> None:
    executor = began(removes=True)
    listed(executor, ("a", "b"))
    executor.on_barrier(barrier(1), 0.0)
    listed(executor, ("b",), now_s=10.0)
    assert of(FindDeleted, listed(executor, (LOG, DATA), now_s=20.0)) == [], (
        "a listing that counts would confirm the loss"
    )


@pytest.mark.parametrize("is_paused", [False, True])
def test_an_answer_about_missing_files_that_comes_late_removes_nothing(is_paused: bool) -> None:
    executor = began(removes=True)
    listed(executor, ("a", "b"))
    executor.on_barrier(barrier(1), 0.0)
    listed(executor, ("b",), now_s=10.0)
    assert of(FindDeleted, listed(executor, ("b",), now_s=20.0)), "two listings lack it"
    listed(executor, (LOG, DATA) if is_paused else ("b",), now_s=30.0)
    late = DeletedFound(5, {path_fingerprint("s", "a"): (DeletedFile("s", "a", file("a").version),)})
    removed = [each for each in sent(executor.on_deleted(late)) if isinstance(each, DeletedFiles)]
    assert bool(removed) != is_paused


def test_a_run_that_ends_when_all_is_read_does_not_wait_for_a_paused_source() -> None:
    executor = began()
    listed(executor, (LOG, DATA))
    sealed = executor.on_barrier(barrier(1), 0.0)
    assert report(sealed).complete_mark == 1
    (state,) = delta_rows(sealed, "list_state")
    assert state["listed_at"] is None


def test_the_listing_that_ends_a_pause_completes_no_mark() -> None:
    executor = began()
    listed(executor, (LOG, DATA))
    executor.on_mark(2, 1.0)
    listed(executor, ("a.csv",), now_s=10.0)
    assert report(executor.on_barrier(barrier(1), 10.0)).complete_mark == 1, "a.csv is not handed on yet"
    listed(executor, ("a.csv",), now_s=10.0)
    assert report(executor.on_barrier(barrier(2), 10.0)).complete_mark == 2


# -- events -----------------------------------------------------------------------------------------------------------


def told(**options: Any) -> ListExecutor:
    feed = EventFeed(
        queue="https://sqs/raw",
        bucket="raw",
        prefix="in/",
        path_filter=PathFilter("**"),
        visibility_s=60.0,
        most_messages=100,
    )
    made = began(events=EventWatch(feed, 2), **options)
    listed(made)
    return made


def comes(executor: ListExecutor, *names: str) -> list[ListInstruction]:
    body = direct(*(record(key=f"in/{name}") for name in names))
    return executor.on_messages(Receive(0, 20.0), [QueueMessage("m", "r", body, 0.0)], None, 1.0)


def test_events_that_name_a_table_pause_the_source() -> None:
    executor = told()
    (look,) = of(LookAt, comes(executor, "t/part-0.parquet", LOG))
    found: dict[str, FileVersion | None] = {path: file(path) for path in look.paths}
    looked = executor.on_looked(found, 1.0)
    assert sent(looked) == [] and executor.progress().paused is not None
    assert of(ReadPage, looked) == [ReadPage(first=True, most=8)], "a listing decides how long"
    sealed = executor.on_barrier(barrier(1), 1.0)
    (state,) = delta_rows(sealed, "list_state")
    assert state["queue"] is None, "a restart must list"
    assert [
        each.message_id for done in of(DeleteMessages, executor.on_committed(1, 2.0)) for each in done.messages
    ] == ["m"]
    assert of(LookAt, comes(executor, "b.csv")) == [], "messages wait"


def test_the_listing_after_the_pause_finds_what_events_named() -> None:
    executor = told()
    comes(executor, LOG, DATA)
    executor.on_looked({DATA: file(DATA)}, 1.0)
    assert executor.progress().paused is not None
    listed(executor, ("b.csv",), now_s=1.0)
    assert executor.progress().paused is None
    assert paths(executor.on_page(page("b.csv"), 1.0)) == ["b.csv"]


def test_what_is_known_stays_known() -> None:
    known = file("a")
    executor = began(seen=SeenIndex([path_fingerprint("s", "a")], [known.version]))
    listed(executor, ("a", LOG))
    listed(executor, ("a",), now_s=10.0)
    assert paths(listed(executor, ("a", "b"), now_s=10.0)) == ["b"]

"""Tests of the retry of quarantined files, on a root without a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from actors.fetching.file_progress import Ending
from slackwater.commands.retry import forgive_view, quarantined_files, requeue
from spark_bridge.plans.view_definition import BY_WATERMARK, ON_CLOSE
from state.clock import SystemClock
from state.errors import CommandRefusedError, NotFoundError, ViewNotFoundError
from state.location import Location
from state.tables.catalog import Catalog
from state.tables.records import CatalogView
from tests.slackwater.commands.bad_files import BAD, DONE, RAW, BadFiles, progress, version
from tests.slackwater.reading.notified_root import QUEUE, poisoned


@pytest.fixture
def bad(tmp_path: Path) -> BadFiles:
    return BadFiles(Location(str(tmp_path / "root")))


def chosen(bad: BadFiles, source: str | None = None, file: str | None = None) -> list[tuple[str, str, int]]:
    files = quarantined_files(bad.root.open(read_only=True), source, file)
    return sorted((each.file.source, each.path, each.rows_read) for each in files)


def test_only_quarantined_files_are_chosen_all_or_by_source_or_path(bad: BadFiles) -> None:
    bad.ended(BAD, progress("a"), progress("dir/b", rows=4), progress("a", source="t"))
    bad.ended(DONE, progress("good", rows=3))
    bad.queued(progress("new"))
    assert chosen(bad) == [("s", "a", 0), ("s", "dir/b", 4), ("t", "a", 0)]
    assert chosen(bad, "t") == [("t", "a", 0)]
    assert chosen(bad, file="a") == [("s", "a", 0), ("t", "a", 0)]
    assert chosen(bad, file=f"{RAW}/s/dir/b") == chosen(bad, "s", "dir/b") == [("s", "dir/b", 4)]


def test_a_glob_names_files_as_in_a_pattern_and_a_path_names_its_file_whatever_it_looks_like(bad: BadFiles) -> None:
    bad.ended(BAD, progress("a.csv"), progress("day=1/a.csv"), progress("day=1/b.json"), progress("b[1].csv"))
    bad.ended(BAD, progress("b1.csv", source="t"))

    def named(file: str) -> list[str]:
        return [path for _, path, _ in chosen(bad, file=file)]

    assert named("*.csv") == ["a.csv", "b[1].csv", "b1.csv"]
    assert named("**/*.csv") == ["a.csv", "b[1].csv", "day=1/a.csv", "b1.csv"]
    assert named("day=1/*") == ["day=1/a.csv", "day=1/b.json"]
    assert named("**/b.{json,xml}") == ["day=1/b.json"]
    assert named("b[1].csv") == ["b[1].csv", "b1.csv"]
    assert named(f"{RAW}/s/b[1].csv") == ["b[1].csv"]
    with pytest.raises(NotFoundError, match=r"no file \*\.xml is quarantined"):
        named("*.xml")


def test_what_is_named_and_not_there_is_said(bad: BadFiles) -> None:
    bad.ended(BAD, progress("a"))
    bad.ended(DONE, progress("good"))
    assert chosen(bad, "t") == []
    for arguments, said in (
        (("x", None), "no source 'x'; the sources are: s, t"),
        ((None, "good"), "no file good is quarantined"),
        (("t", "a"), "no file a is quarantined in source t"),
    ):
        with pytest.raises(NotFoundError, match=said):
            chosen(bad, *arguments)


def test_of_several_versions_the_last_is_read_again_unless_another_one_was(bad: BadFiles) -> None:
    bad.ended(BAD, progress("twice", etag="1"), progress("twice", etag="2", listed=5))
    bad.ended(BAD, progress("mended", etag="1"), progress("waits", etag="1"))
    bad.ended(DONE, progress("mended", etag="2", rows=3))
    bad.queued(progress("waits", etag="2"))
    (only,) = quarantined_files(bad.root.open(read_only=True))
    assert only.file == version("twice", etag="2")


def test_a_version_after_which_another_one_was_listed_is_not_read_again(bad: BadFiles) -> None:
    bad.ended(DONE, progress("filled", etag="1"))
    bad.ended(BAD, progress("emptied", etag="1"), progress("gone", etag="1"), progress("filled", etag="2", listed=5))
    bad.ended(DONE, progress("emptied", etag="2", listed=5))
    bad.ended(Ending("vanished"), progress("gone", etag="2", listed=5))
    (only,) = quarantined_files(bad.root.open(read_only=True))
    assert only.file == version("filled", etag="2")


def test_a_version_whose_object_has_changed_since_is_not_read_again_and_the_refusal_says_what_to_do(
    bad: BadFiles,
) -> None:
    bad.ended(BAD, progress("changed", rows=4), changed_epoch=9)
    bad.ended(BAD, progress("same", rows=4))
    assert chosen(bad) == chosen(bad, file="*") == [("s", "same", 4)]
    with pytest.raises(CommandRefusedError, match="changed has changed since it was quarantined"):
        chosen(bad, file="changed")


def test_without_a_run_they_move_into_the_queue_in_one_epoch_with_what_they_have_cost(bad: BadFiles) -> None:
    bad.ended(BAD, progress("a"), progress("half", rows=4))
    before = bad.root.open(read_only=True)
    store = bad.root.open()
    assert requeue(store, SystemClock()) == 2
    after = bad.root.open(read_only=True)
    assert [each.epoch for each in after.epochs()][:-1] == [each.epoch for each in before.epochs()]
    assert (bad.paths("ledger"), bad.paths("queue")) == ([], ["a", "half"])
    (half,) = [row for row in after.rows("queue") if row["path"] == "half"]
    expected = {"row_offset": 4, "attempts": 2, "requests": 3, "bytes_read": 70, "listed_epoch": 1, "first_epoch": 1}
    assert half | expected == half
    assert before.scan("ledger", state_version=before.version).num_rows == 2, "time travel keeps what was"


def test_a_poison_message_is_no_file_to_be_read_again(bad: BadFiles) -> None:
    bad.ended(BAD, progress("a"))
    poisoned(bad.root.location, ("m1", "[]"), source="s")
    with pytest.raises(NotFoundError, match="single bad records, which `quarantine` shows, are not retried"):
        chosen(bad, file=f"{QUEUE}#m1")
    assert requeue(bad.root.open(), SystemClock()) == 1
    assert (bad.paths("queue"), bad.paths("quarantine")) == (["a"], [f"{QUEUE}#m1"])


def test_nothing_to_retry_commits_nothing(bad: BadFiles) -> None:
    store = bad.root.open()
    assert requeue(store, SystemClock()) == 0
    assert bad.root.open().version == store.version


def test_a_failed_view_without_a_run_is_built_by_the_next_one(bad: BadFiles) -> None:
    failed = CatalogView("v", "append", "SELECT", "v", ("s",), (), 3, stopped_epoch=4, error="[DIVIDE_BY_ZERO]")
    bad.view(failed)
    bad.view(replace(failed, name="w", error=None))
    store = bad.root.open()
    store.take_over("by hand")
    for name, error, said in (
        ("w", CommandRefusedError, "view 'w' has not failed"),
        ("x", ViewNotFoundError, "there is no view 'x' to retry; the views are: v, w"),
    ):
        with pytest.raises(error, match=said):
            forgive_view(store, bad.root.clock, name)
    forgive_view(store, bad.root.clock, "v")
    assert Catalog.of(bad.root.open(read_only=True).scan("catalog")).views["v"] == replace(failed, error=None)


@pytest.mark.parametrize("mark", [ON_CLOSE, BY_WATERMARK])
def test_a_view_with_late_rows_and_its_readers_are_built_by_the_next_run(bad: BadFiles, mark: str) -> None:
    closing = CatalogView("v", "aggregate", f"SELECT\n{mark}", "v", ("s",), (), 3, visible={"s": ("at",)})
    inner = replace(closing, name="above.1", definition="SELECT", visible={"v": ("n",)})
    above = replace(closing, name="above", definition="SELECT", visible={"above.1": ()})
    other = replace(closing, name="other", definition="SELECT")
    for each in (closing, inner, above, other):
        bad.view(each)
    store = bad.root.open()
    store.take_over("by hand")
    forgive_view(store, bad.root.clock, "v")
    views = Catalog.of(bad.root.open(read_only=True).scan("catalog")).views
    stopped = {name for name, view in views.items() if view.stopped_epoch is not None}
    assert stopped == {"v", "above.1", "above"} and views["other"] == other

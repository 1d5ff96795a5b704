"""Files are deleted, moved or tagged when their rows are committed and published, and not before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slackwater.plugins.after_commit import file_work
from slackwater.plugins.after_commit.actions import Delete, Move
from slackwater.plugins.after_commit.declaration import declared
from slackwater.plugins.after_commit.due_files import DueFile, due_files
from slackwater.plugins.after_commit.file_access import FileAccess
from slackwater.plugins.after_commit.file_work import FileWork
from slackwater.status.run_status import RunStatus
from state.errors import FencedError, StorageUnavailableError
from state.lance.handled_files import HandledFile, HandledFiles
from state.location import Location
from state.ownership.owner import Ownership
from state.store.store import StateStore
from state.tables.catalog import put_expectations, put_view
from state.tables.expectations import Expectation, ViewExpectations
from state.tables.records import CatalogView, ViewVersion
from state.upkeep.branches import branch_location
from tests.slackwater.plugins.after_commit.real_files import RealFiles

HOUR_S = 3_600.0


@pytest.fixture
def files(tmp_path: Path) -> RealFiles:
    return RealFiles(tmp_path)


def test_a_file_is_deleted_when_its_epoch_is_old_enough(files: RealFiles) -> None:
    first, second = files.write("day=1/a.csv"), files.write("day=1/b.csv")
    work = files.work(Delete(keep_s=HOUR_S))
    files.finish(first)
    files.clock.advance(1_800)
    files.finish(second)
    assert files.look(work).handled == 0
    assert files.look(work, after_s=1_780).handled == 0
    assert files.present() == {"day=1/a.csv", "day=1/b.csv"}
    assert files.look(work, after_s=30).handled == 1
    assert files.present() == {"day=1/b.csv"}
    assert files.look(work, after_s=HOUR_S).handled == 2
    assert files.present() == set()
    assert files.outcomes() == {"day=1/a.csv": "done", "day=1/b.csv": "done"}


def test_only_files_whose_rows_are_complete_are_touched(files: RealFiles) -> None:
    good, bad, lines, again, unread = (files.write(f"{name}.csv") for name in ("good", "bad", "lines", "again", "new"))
    files.finish(good)
    files.finish(bad, status="quarantined", error="no csv")
    files.finish(lines, rows_bad=1)
    files.finish(again)
    files.queue(again)
    files.commit()
    assert unread.path == "new.csv"
    told = files.look(files.work(Delete(keep_s=0)))
    assert files.present() == {"bad.csv", "lines.csv", "again.csv", "new.csv"}
    assert (told.handled, told.failed, told.error) == (1, 0, None)


def test_an_object_that_has_changed_stays_and_is_told(files: RealFiles) -> None:
    file = files.write("a.csv")
    files.finish(file)
    files.write("a.csv", "a newer one\n")
    told = files.look(files.work(Delete(keep_s=0)))
    assert (told.handled, told.left, files.present()) == (0, 1, {"a.csv"})
    assert files.outcomes() == {"a.csv": "changed"}


def test_files_wait_for_the_tables_that_follow_views_of_their_source(files: RealFiles) -> None:
    first = files.finish(files.write("a.csv"))
    second = files.finish(files.write("b.csv"))
    work = files.work(Delete(keep_s=0))
    told = files.look(work, by_carrier=None)
    assert told.waits_for == "the publication delta:/t of view by_carrier lacks the last epochs"
    files.look(work, after_s=11, by_carrier=first, another_pipelines_view=0)
    assert files.present() == {"b.csv"}
    assert files.look(work, after_s=11, by_carrier=second).waits_for == ""
    assert files.present() == set()


def test_files_wait_for_the_gate(files: RealFiles) -> None:
    last = files.finish(files.write("good.csv"))
    held = ViewExpectations("late", "hold", {"n": Expectation("n > 0", 1, 0, 1)}).settled(
        files.writer.epoch, files.writer.epoch
    )
    put_expectations(files.writer.delta, held)
    bad = files.write("bad.csv")
    files.queue(bad)
    files.commit(published=last)
    files.finish(bad)
    told = files.look(files.work(Delete(keep_s=0)))
    assert told.waits_for == "an expectation holds the last epochs back"
    assert files.present() == {"bad.csv"}


@pytest.mark.parametrize("materialize", [False, True])
@pytest.mark.parametrize("why", ["failed", "built"])
def test_files_stay_while_a_view_needs_them(tmp_path: Path, why: str, materialize: bool) -> None:
    files = RealFiles(tmp_path, materialize=materialize)
    error = "it divides by zero" if why == "failed" else None
    put_view(files.writer.delta, CatalogView("new", "append", "SELECT", "plan", ("flights",), (), 1, 0, error))
    if why == "built":
        path = files.writer.views["late"].path
        files.writer.views["new"] = ViewVersion("new", path, 1, pinned_epoch=files.writer.records[0].epoch)
    files.finish(files.write("a.csv"))
    told = files.look(files.work(Delete(keep_s=0)))
    if materialize:
        assert (told.waits_for, files.present()) == ("", set())
    else:
        assert told.waits_for == "view new needs the files: it has failed, or is being built"
        assert files.present() == {"a.csv"}


def test_a_branch_touches_no_file(files: RealFiles) -> None:
    files.finish(files.write("a.csv"))
    place = branch_location(files.root, "try")
    place.path.parent.mkdir()
    place.path.symlink_to(files.root.path)
    work = FileWork(place, [declared(files.source, Delete(keep_s=0))], lambda: None, files.clock, files.views)
    told = files.look(work)
    assert (told.waits_for, files.present()) == ("a branch leaves the files of its root alone", {"a.csv"})


def test_the_next_run_goes_on_where_the_last_one_ended(files: RealFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    files.finish(files.write("a.csv"))
    assert files.look(files.work(Delete(keep_s=0))).handled == 1
    files.finish(*[files.write(f"{number}.csv") for number in range(3)])
    append, recorded = HandledFiles.append, list[str]()

    def torn(record: HandledFiles, handled: Sequence[HandledFile], *arguments: object) -> None:
        """The process ends before it can record what it has done."""
        raise StorageUnavailableError("killed")

    monkeypatch.setattr(HandledFiles, "append", torn)
    assert files.look(files.work(Delete(keep_s=0))).handled == 0
    assert files.present() == set()

    def noted(record: HandledFiles, handled: Sequence[HandledFile], *arguments: object) -> None:
        recorded.extend(each.path for each in handled)
        append(record, handled, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(HandledFiles, "append", noted)
    files.look(files.work(Delete(keep_s=0)))
    assert sorted(recorded) == ["0.csv", "1.csv", "2.csv"], "files of earlier epochs are not looked at again"
    assert files.outcomes()["0.csv"] == "absent"
    recorded.clear()
    files.look(files.work(Delete(keep_s=0)))
    assert recorded == []


def test_a_file_that_cannot_be_moved_keeps_no_other_back(files: RealFiles, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    (archive / "x").mkdir(parents=True)
    (archive / "x" / "b.csv").write_text("another file\n")
    files.finish(*[files.write(f"x/{name}.csv") for name in "abc"])
    work = files.work(Move(str(archive)))
    told = files.look(work)
    assert (told.handled, told.failed, files.present()) == (2, 1, {"x/b.csv"})
    assert told.error is not None and "has other content than" in told.error and "x/b.csv" in told.error
    files.finish(files.write("x/d.csv"))
    assert files.look(work).handled == 3
    (archive / "x" / "b.csv").unlink()
    again = files.work(Move(str(archive)))
    told = files.look(again)
    assert (told.handled, told.failed, told.error, files.present()) == (1, 0, None, set())
    assert files.outcomes()["x/b.csv"] == "done"
    assert {each.name for each in (archive / "x").iterdir()} == {"a.csv", "b.csv", "c.csv", "d.csv"}


def test_a_failed_file_whose_rows_have_left_meanwhile_stays(files: RealFiles, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    archive.mkdir()
    for name in ("a.csv", "b.csv"):
        (archive / name).write_text("another file\n")
    forgotten, kept, third = (files.write(f"{name}.csv") for name in "abc")
    epoch = files.finish(forgotten, kept, third)
    work = files.work(Move(str(archive)))
    assert files.look(work).failed == 2
    for name in ("a.csv", "b.csv"):
        (archive / name).unlink()
    files.finish(forgotten, status="forgotten", done_epoch=epoch)
    assert files.look(work, after_s=601).handled == 2
    assert files.present() == {"a.csv"}


def test_a_place_that_refuses_everything_is_tried_again_later(files: RealFiles, tmp_path: Path) -> None:
    (tmp_path / "archive").write_text("a file in the way\n")
    files.finish(*[files.write(f"{name}.csv") for name in "abc"])
    work = files.work(Move(str(tmp_path / "archive" / "below")))
    told = files.look(work)
    assert (told.handled, told.failed, len(files.present())) == (0, 0, 3)
    assert told.error is not None
    (tmp_path / "archive").unlink()
    assert files.look(work, after_s=9).handled == 0, "it waits"
    told = files.look(work, after_s=20)
    assert (told.handled, told.error, files.present()) == (3, None, set())


def test_a_file_that_is_always_refused_does_not_keep_later_ones_back(files: RealFiles, tmp_path: Path) -> None:
    (tmp_path / "archive").mkdir()
    (tmp_path / "archive" / "a.csv").write_text("another file\n")
    files.finish(files.write("a.csv"))
    work = files.work(Move(str(tmp_path / "archive")))
    for _ in range(3):
        told = files.look(work, after_s=100)
    assert told.failed == 1
    files.finish(files.write("b.csv"))
    assert files.look(work, after_s=1_000).handled == 1
    assert files.present() == {"a.csv"}


def test_more_files_than_a_batch_are_all_moved(files: RealFiles, tmp_path: Path) -> None:
    names = {f"{number:03}.csv" for number in range(450)}
    files.finish(*[files.write(name) for name in names])
    assert files.look(files.work(Move(str(tmp_path / "archive")))).handled == 450
    assert {each.name for each in (tmp_path / "archive").iterdir()} == names


@pytest.mark.more
def test_a_look_lasts_some_seconds_and_the_next_one_goes_on(
    files: RealFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.finish(*[files.write(f"{number:03}.csv") for number in range(450)])
    append = HandledFiles.append

    def slow(record: HandledFiles, *arguments: Any) -> None:
        files.clock.advance(4)
        append(record, *arguments)

    monkeypatch.setattr(HandledFiles, "append", slow)
    work = files.work(Move(str(tmp_path / "archive")))
    assert files.look(work).handled == 400, "two batches, of four seconds each"
    assert files.look(work).handled == 450
    assert files.look(work).handled == 450


@pytest.mark.more
def test_the_ledger_is_read_seldom_while_there_is_nothing_to_do(
    files: RealFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []

    def slow(state: StateStore, source: str, *, after: int, until: int) -> Iterator[list[DueFile]]:
        looks.append(until)
        files.clock.advance(1)
        return due_files(state, source, after=after, until=until)

    monkeypatch.setattr(file_work, "due_files", slow)
    work = files.work(Delete(keep_s=0))
    for _ in range(30):
        files.commit()
        files.look(work, after_s=1)
    assert len(looks) == 3, "in a minute: a second of reading, and twenty of rest"
    files.finish(files.write("a.csv"))
    work.end(RunStatus("stopped", files.writer.records[-1].epoch), None)
    assert files.present() == set(), "the end does not wait"


def test_the_end_of_a_run_does_what_is_due(files: RealFiles) -> None:
    work = files.work(Delete(keep_s=0))
    epoch = files.finish(files.write("a.csv"))
    work.end(RunStatus("stopped", epoch), None)
    assert files.present() == set()


def test_another_owner_of_the_root_ends_the_work(files: RealFiles) -> None:
    def fenced() -> None:
        raise FencedError("taken over")

    epoch = files.finish(files.write("a.csv"))
    work = FileWork(files.root, [declared(files.source, Delete(keep_s=0))], fenced, files.clock, files.views)
    with pytest.raises(FencedError):
        work.look(RunStatus("running", epoch))
    assert files.present() == {"a.csv"}


@pytest.mark.parametrize("is_moved", [False, True])
def test_a_process_that_was_suspended_while_another_took_the_root_touches_no_file(
    files: RealFiles, is_moved: bool
) -> None:
    """Its own renewals have not noticed it yet."""
    first, second = files.write("a.csv"), files.write("b.csv")
    epoch = files.finish(first, second)
    old, new = (Ownership(files.root, files.clock, run_id=each, pipeline="p", interval_s=3_600) for each in "on")
    old.acquire()

    def suspended(handle: Callable[[DueFile], Any], some: Sequence[DueFile]) -> list[Any]:
        results = [handle(some[0])]
        files.clock.advance(60)
        new.acquire(takeover=True)
        return [*results, *map(handle, some[1:])]

    access = replace(FileAccess.of(files.root, files.clock), together=suspended)
    action = Move(str(files.directory / "archive")) if is_moved else Delete(keep_s=0)
    work = FileWork(files.root, [declared(files.source, action)], old.confirm, files.clock, files.views, access)
    try:
        with pytest.raises(FencedError):
            work.look(RunStatus("running", epoch))
        assert files.present() == {"b.csv"}
    finally:
        new.release()
        old.release()


def test_a_root_that_cannot_be_read_ends_nothing(files: RealFiles) -> None:
    epoch = files.finish(files.write("a.csv"))
    work = FileWork(
        Location(str(files.directory / "x")),
        [declared(files.source, Delete(keep_s=0))],
        lambda: None,
        files.clock,
        files.views,
    )
    assert work.look(RunStatus("running", epoch))
    assert files.present() == {"a.csv"}

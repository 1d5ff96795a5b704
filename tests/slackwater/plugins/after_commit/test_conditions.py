"""Each condition keeps a file: declared views, publications, time."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path

import pytest

from slackwater.branching.branch import branch
from slackwater.extensions.run_views import NeedsChangedError, PublishedView, RunViews
from slackwater.plugins.after_commit.actions import Delete
from slackwater.status.run_status import PublicationStatus, RunStatus
from spark_bridge.plans.view_definition import ViewDefinition
from state.lance.handled_files import ClockChange, HandledFiles
from state.lance.lance_root import LanceRoot
from state.tables.catalog import put_view
from state.tables.delta import DeltaBuilder
from state.tables.keys import encode_key
from state.tables.records import CatalogView, EpochCounts, EpochSeconds, ViewVersion
from state.tables.stored_rows import next_name
from state.upkeep.branches import branch_location
from tests.slackwater.plugins.after_commit.real_files import RealFiles
from tests.waiting import eventually

DAY_S = 86_400.0
NEW = ViewDefinition("new", "SELECT delay FROM flights")


@pytest.fixture
def files(tmp_path: Path) -> RealFiles:
    return RealFiles(tmp_path)


def store_view(files: RealFiles, identity: str = "new plan", **fields: object) -> None:
    """The next epoch has the view `new`."""
    created = files.writer.epoch
    stored = CatalogView("new", "append", NEW.query or "", identity, ("flights",), (), created, **fields)  # type: ignore[arg-type]
    put_view(files.writer.delta, stored)
    files.writer.views["new"] = ViewVersion("new", files.writer.views["late"].path, 1)


# -- 1: every declared view has the rows ------------------------------------------------------------------------------


def test_no_file_is_deleted_before_the_views_of_the_run_are_analysed(files: RealFiles) -> None:
    files.views = RunViews([NEW], ["flights"])
    files.finish(files.write("a.csv"))
    work = files.work(Delete(keep_s=0))
    assert files.look(work).waits_for == "the views of this run are not analysed yet"
    work.end(RunStatus("stopped", files.writer.records[-1].epoch), None)
    assert files.present() == {"a.csv"}
    files.analysed()
    files.look(work, after_s=60)
    assert files.present() == set()


@pytest.mark.parametrize(
    ("identity", "why"),
    [("new plan", "no epoch has it yet"), ("", "it waits for the schema of a source, or cannot be analysed")],
    ids=["new", "without schema"],
)
def test_a_view_that_the_root_does_not_have_keeps_the_files(files: RealFiles, identity: str, why: str) -> None:
    files.finish(files.write("a.csv"))
    files.analysed(new=identity)
    work = files.work(Delete(keep_s=0))
    assert files.look(work).waits_for == f"view new needs the files: {why}"
    assert files.present() == {"a.csv"}
    store_view(files)
    files.commit()
    files.analysed(new="new plan")
    files.look(work, after_s=60)
    assert files.present() == set()


def test_a_view_with_another_definition_keeps_the_files_until_its_backfill_is_live(files: RealFiles) -> None:
    store_view(files, "old plan")
    files.finish(files.write("a.csv"))
    files.analysed(new="new plan")
    work = files.work(Delete(keep_s=0))
    assert files.look(work).waits_for == "view new needs the files: it is stored with another definition"
    files.writer.views[next_name("new")] = ViewVersion("new", files.writer.views["late"].path, 1, pinned_epoch=1)
    store_view(files, "new plan")
    files.commit()
    assert files.look(work, after_s=60).waits_for == "view new needs the files: it is being built"
    del files.writer.views[next_name("new")]
    files.commit()
    assert files.look(work, after_s=60).waits_for == ""
    assert files.present() == set()


def test_a_stale_view_and_a_rebuilt_one_keep_the_files(files: RealFiles) -> None:
    store_view(files, stopped_epoch=files.writer.records[-1].epoch)
    files.finish(files.write("a.csv"))
    files.analysed(new="new plan")
    work = files.work(Delete(keep_s=0))
    assert files.look(work).waits_for == "view new needs the files: it is stale"
    store_view(files)
    created = files.writer.epoch
    files.commit()
    definitions = {"new": NEW}
    files.views.analysed(definitions, {"new": "new plan"}, [f"new@{created}"])
    assert files.look(work, after_s=60).waits_for == "view new needs the files: it is being rebuilt"
    store_view(files)
    files.commit()
    files.look(work, after_s=60)
    assert files.present() == set()


def test_a_view_that_is_being_accepted_keeps_the_files(files: RealFiles) -> None:
    files.finish(files.write("a.csv"))
    work = files.work(Delete(keep_s=0))
    with pytest.raises(KeyError), files.views.changing(NEW):
        assert files.look(work).waits_for == "view new needs the files: it is being added, replaced or rebuilt"
        assert files.present() == {"a.csv"}
        raise KeyError("the view is refused")
    files.look(work, after_s=60)
    assert files.present() == set()


def test_a_view_that_is_accepted_during_a_look_keeps_the_files_that_the_look_has_chosen(files: RealFiles) -> None:
    """Files that are deleted before the change begins are gone; no file is deleted after that."""
    needs, order = files.views.needs, list[str]()
    began, accepted = threading.Event(), threading.Event()

    def accept() -> None:
        began.set()
        with files.views.changing(NEW):
            order.append("accepted")
            accepted.set()

    thread = threading.Thread(target=accept)
    with files.views.acting(needs):
        thread.start()
        assert began.wait(10)
        while files.views.needs.number == needs.number:
            pass  # the change waits for this deletion
        order.append("deleted")
        assert not accepted.is_set()
    thread.join(10)
    assert order == ["deleted", "accepted"]
    with pytest.raises(NeedsChangedError), files.views.acting(needs):
        raise AssertionError("an older look deletes a file")


def test_a_look_that_the_declaration_overtakes_deletes_nothing_more(files: RealFiles) -> None:
    names = {f"{number}.csv" for number in range(3)}
    files.finish(*[files.write(name) for name in names])
    work = files.work(Delete(keep_s=0))
    delete = work._changes["flights"].delete
    deleted = list[str]()

    class Overtaken:
        """After the first deletion, the run declares another view."""

        def delete(self, file: object) -> None:
            deleted.append(file.path)  # type: ignore[attr-defined]
            delete(file)  # type: ignore[arg-type]
            files.views._number += 1  # as by `changing`, which would wait for this deletion

    work._changes["flights"] = Overtaken()  # type: ignore[assignment]
    work._access = type(work._access)(**{**vars(work._access), "together": map})
    files.look(work)
    assert len(deleted) == 1
    assert len(files.present()) == 2
    files.look(work, after_s=60)
    files.look(work, after_s=60)
    assert len(files.present()) < 2, "the next look goes on"


def test_no_file_is_deleted_while_a_branch_is_noted_nor_by_a_look_that_began_before(files: RealFiles) -> None:
    before = files.views.needs
    with files.views.excluding():
        during = files.views.needs
        for needs in (before, during):
            with pytest.raises(NeedsChangedError), files.views.acting(needs):
                raise AssertionError("a file is deleted")
    for needs in (before, during):
        with pytest.raises(NeedsChangedError), files.views.acting(needs):
            raise AssertionError("an older look deletes a file")
    with files.views.acting(files.views.needs):
        pass


def test_a_branch_that_is_made_at_an_earlier_epoch_during_a_look_has_the_remaining_files(files: RealFiles) -> None:
    epoch = files.writer.records[-1].epoch
    names = {f"{number}.csv" for number in range(3)}
    files.finish(*[files.write(name) for name in names])
    work = files.work(Delete(keep_s=0))
    delete, deleted = work._changes["flights"].delete, list[str]()
    number = files.views.needs.number

    class Branched:
        """After the first deletion, the owner of the root notes a branch."""

        def delete(self, file: object) -> None:
            deleted.append(file.path)  # type: ignore[attr-defined]
            delete(file)  # type: ignore[arg-type]
            thread.start()
            eventually(lambda: files.views.needs.number > number)

    def note() -> None:
        with files.views.excluding():
            branch(files.root.path, "b", epoch=epoch)

    thread = threading.Thread(target=note)
    work._changes["flights"] = Branched()  # type: ignore[assignment]
    work._access = type(work._access)(**{**vars(work._access), "together": map})
    files.look(work)
    thread.join(60)
    assert len(deleted) == 1
    assert files.look(work, after_s=60).waits_for.startswith("branch b needs the files")
    assert files.present() == names - set(deleted)


def test_the_files_of_other_sources_do_not_wait(files: RealFiles) -> None:
    files.finish(files.write("a.csv"))
    other = ViewDefinition("other", "SELECT x FROM orders")
    files.views = RunViews([other], ["flights", "orders"])
    files.views.analysed({"other": other}, {})
    files.look(files.work(Delete(keep_s=0)))
    assert files.present() == set()


def test_with_stored_rows_a_new_view_keeps_only_files_whose_rows_are_not_stored(tmp_path: Path) -> None:
    files = RealFiles(tmp_path, materialize=True)
    stored, cut, lacking = (files.write(f"{name}.csv") for name in ("stored", "cut", "lacking"))
    files.store_rows({stored: 2, cut: 1})
    files.finish(stored, cut, lacking, rows_read=2)
    files.analysed(new="new plan")
    work = files.work(Delete(keep_s=0))
    told = files.look(work)
    assert files.present() == {"cut.csv", "lacking.csv"}
    assert "the stored rows lack rows of the file" in told.waits_for
    assert files.outcomes() == {"stored.csv": "done", "cut.csv": "waits", "lacking.csv": "waits"}
    store_view(files)
    files.commit()
    again = files.work(Delete(keep_s=0))
    files.look(again)
    assert files.present() == set(), "the view has the rows now"


# -- 2: every publication has the rows --------------------------------------------------------------------------------


def test_a_declared_publication_that_has_not_started_keeps_the_files(files: RealFiles) -> None:
    epoch = files.finish(files.write("a.csv"))
    files.views.publish([PublishedView("late", "delta:/t")])
    work = files.work(Delete(keep_s=0))
    assert files.look(work).waits_for == "the publication delta:/t of view late lacks the last epochs"
    files.clock.advance(60)
    tables = (PublicationStatus("late", "delta:/other", epoch), PublicationStatus("late", "delta:/t", epoch - 1))
    work.look(RunStatus("running", epoch, publications=tables))
    assert files.present() == {"a.csv"}
    files.look(work, after_s=60, late=epoch)
    assert files.present() == set()


def test_a_publication_of_a_view_over_views_keeps_the_files(files: RealFiles) -> None:
    above = ViewDefinition("above", "SELECT n FROM by_carrier")
    names = {name: ViewDefinition(name, f"SELECT {name} FROM flights") for name in ("by_carrier", "late")}
    stored = CatalogView("above", "append", above.query or "", "plan", (), (), files.writer.epoch)
    put_view(files.writer.delta, stored)
    epoch = files.finish(files.write("a.csv"))
    files.views.analysed({**names, "above": above}, dict.fromkeys([*names, "above"], "plan"))
    files.views.publish([PublishedView("above", "delta:/t")])
    work = files.work(Delete(keep_s=0))
    files.look(work)
    assert files.present() == {"a.csv"}
    files.look(work, after_s=60, above=epoch)
    assert files.present() == set()


# -- 3: the time has passed, by every clock ---------------------------------------------------------------------------


def test_a_commit_under_a_clock_that_was_behind_is_not_old(files: RealFiles) -> None:
    found = files.write("a.csv")
    files.clock.set_wall(-10 * DAY_S)
    files.finish(found)
    files.clock.set_wall(10 * DAY_S)
    work = files.work(Delete(keep_s=7 * DAY_S))
    told = files.look(work, after_s=1)
    assert files.present() == {"a.csv"}
    assert "less than keep_s=604800 seconds ago" in told.waits_for
    assert files.outcomes() == {"a.csv": "waits"}
    files.look(work, after_s=7 * DAY_S)
    assert files.present() == set()


@pytest.mark.parametrize("jump_s", [10 * DAY_S, -10 * DAY_S], ids=["forward", "back"])
def test_after_a_jump_of_the_clock_files_wait_for_the_whole_time_again(files: RealFiles, jump_s: float) -> None:
    old = files.write("old.csv", days_ago=100)
    files.finish(old)
    work = files.work(Delete(keep_s=DAY_S))
    assert files.look(work).waits_for == ""
    files.clock.set_wall(jump_s)
    assert files.look(work, after_s=60).waits_for == "the clock of this machine was set"
    files.look(work, after_s=DAY_S - 100)
    assert files.present() == {"old.csv"}
    files.look(work, after_s=200)
    assert files.present() == set(), "the run waits no longer than it has to"


def test_the_next_run_waits_too_after_a_jump_of_the_clock(files: RealFiles) -> None:
    files.finish(files.write("old.csv", days_ago=100))
    work = files.work(Delete(keep_s=DAY_S))
    files.clock.set_wall(10 * DAY_S)
    files.look(work)
    files.look(files.work(Delete(keep_s=DAY_S)), after_s=60)
    assert files.present() == {"old.csv"}
    files.look(files.work(Delete(keep_s=DAY_S)), after_s=DAY_S)
    assert files.present() == set()


def test_a_clock_that_went_back_between_two_runs_is_noticed(files: RealFiles) -> None:
    files.finish(files.write("old.csv", days_ago=100))
    files.clock.set_wall(-10 * DAY_S)
    files.look(files.work(Delete(keep_s=DAY_S)))
    change = HandledFiles(files.root).clock_change()
    assert change == ClockChange(files.writer.records[-1].epoch, files.clock.now())
    work = files.work(Delete(keep_s=DAY_S))
    files.look(work, after_s=60)
    assert HandledFiles(files.root).clock_change() == change, "a change is noticed once"
    assert files.present() == {"old.csv"}
    files.look(work, after_s=DAY_S)
    assert files.present() == set(), "the time of the commit is ten days in the future, and does not count"


def test_a_clock_that_was_set_back_and_right_again_makes_no_commit_old(files: RealFiles) -> None:
    files.finish(files.write("old.csv", days_ago=100))
    work = files.work(Delete(keep_s=DAY_S))
    files.look(work)
    files.clock.set_wall(-10 * DAY_S)
    files.look(work, after_s=60)
    files.clock.set_wall(10 * DAY_S)
    work = files.work(Delete(keep_s=DAY_S))
    files.look(work, after_s=60)
    assert files.present() == {"old.csv"}, "its rows were committed two minutes ago"
    files.look(work, after_s=DAY_S)
    assert files.present() == set()


def test_a_change_of_the_clock_that_was_recorded_in_the_future_does_not_keep_files_for_ever(files: RealFiles) -> None:
    files.finish(files.write("old.csv", days_ago=100))
    HandledFiles(files.root).append_clock_change(ClockChange(1, files.clock.now() + timedelta(days=4_000)))
    work = files.work(Delete(keep_s=DAY_S))
    files.look(work)
    assert files.present() == {"old.csv"}
    files.look(work, after_s=DAY_S + 1)
    assert files.present() == set()


def test_a_commit_in_the_future_keeps_the_epochs_before_it_out_of_reach_of_none(files: RealFiles) -> None:
    """A later epoch with an earlier time does not make an epoch old."""
    files.finish(files.write("a.csv", days_ago=100))
    files.clock.advance(DAY_S)
    files.clock.set_wall(10 * DAY_S)
    files.finish(files.write("b.csv", days_ago=100))
    files.clock.set_wall(-10 * DAY_S)
    files.finish(files.write("c.csv", days_ago=100))
    files.clock.advance(DAY_S)
    work = files.work(Delete(keep_s=DAY_S / 2))
    work._has_looked = True  # the run began before the clock was wrong
    files.look(work)
    assert files.present() == {"b.csv", "c.csv"}


def test_a_file_from_the_future_keeps_no_other_back(files: RealFiles) -> None:
    future, now = files.write("future.csv", days_ago=-400), files.write("now.csv")
    files.finish(future, now)
    work = files.work(Delete(keep_s=0))
    told = files.look(work)
    assert files.present() == {"future.csv"}
    assert "is in the future" in told.waits_for
    assert (told.failed, told.error) == (0, None)
    files.finish(files.write("later.csv"))
    files.look(files.work(Delete(keep_s=0)), after_s=11)
    assert files.present() == {"future.csv"}
    files.look(files.work(Delete(keep_s=0)), after_s=401 * DAY_S)
    assert files.present() == set()


def test_a_machine_that_sleeps_has_no_jump(files: RealFiles) -> None:
    """The uptime goes on while the machine is suspended, as the wall time does."""
    files.finish(files.write("a.csv", days_ago=100))
    work = files.work(Delete(keep_s=DAY_S))
    files.look(work)
    files.look(work, after_s=DAY_S + 1)
    assert files.present() == set()
    assert HandledFiles(files.root).clock_change() is None


# -- branches ---------------------------------------------------------------------------------------------------------


def test_a_branch_keeps_the_files_that_it_has_not_read(files: RealFiles) -> None:
    before = files.write("before.csv")
    files.finish(before)
    branch(files.root.path, "trial")
    files.writer.reopen()
    after = files.write("after.csv")
    files.finish(after)
    work = files.work(Delete(keep_s=0))
    told = files.look(work)
    assert told.waits_for == "branch trial needs the files: it has not read them: run it, or drop it"
    assert files.present() == {"after.csv"}

    store = LanceRoot(branch_location(files.root, "trial"), files.clock).open()
    store.take_over("run")
    delta = DeltaBuilder()
    epoch = files.writer.epoch
    row = {**vars(after), "status": "done", "listed_epoch": epoch - 1, "rows_bad": 0, "done_epoch": epoch}
    delta.put("ledger", encode_key("flights", after.path, after.version), 1, **row)
    store.commit(epoch=epoch, delta=delta.build(), views=store.head.views, counts=EpochCounts(), seconds=EpochSeconds())
    files.look(work, after_s=60)
    assert files.present() == set()


def test_a_branch_that_is_not_complete_keeps_later_files(files: RealFiles) -> None:
    files.finish(files.write("before.csv"))
    epoch = files.writer.records[-1].epoch
    files.writer.store.amend(tags={"branch/trial": epoch})
    files.finish(files.write("after.csv"))
    told = files.look(files.work(Delete(keep_s=0)))
    assert "branch trial needs the files: it is not complete" in told.waits_for
    assert files.present() == {"after.csv"}

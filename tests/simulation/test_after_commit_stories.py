"""Stories in which files are deleted or moved after the commit, each in 40 orders."""

from __future__ import annotations

from typing import Any

import pytest

from slackwater.plugins.after_commit.actions import Delete, Move
from tests.simulation.conftest import Simulated
from tests.simulation.stories.steps import (
    ADD_VIEW,
    AT,
    BARRIER,
    CAUGHT_UP,
    CHANGE_VIEW,
    CLOCK,
    CRASH,
    CRASH_PUBLICATIONS,
    EVENTS,
    FREEZE,
    KILL,
    LATER,
    POWER_CUT,
    SECONDS,
    SPOIL_TABLE,
    STAND,
    START,
    STOP,
    STOPPED,
    SUSPEND,
    TABLES_DOWN,
    THAW,
    Step,
    again,
    archived,
    cut,
    file,
    link,
    mount,
    phantom,
    refuse,
    repeat,
    stale,
    unlink,
    unmount,
)

_DELETE, _MOVE = Delete(keep_s=0), Move("s3://simulated/archive")
_SOON = Delete(keep_s=30)


@pytest.mark.parametrize("after", [_DELETE, _MOVE, _SOON], ids=["delete", "move", "later"])
def test_files_go_when_their_rows_are_committed(simulated: Simulated, after: Any) -> None:
    for outcome in simulated(file("a"), file("b"), START, CAUGHT_UP, SECONDS(120), after=after):
        assert (outcome.present, outcome.removed) == (frozenset(), 2)


@pytest.mark.more_after(1)
@pytest.mark.parametrize("step", ["delete", "copy", "note"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_run_that_dies_in_the_middle_goes_on_with_its_files(simulated: Simulated, step: str, when: str) -> None:
    story = file("a"), file("b"), START, BARRIER, BARRIER, AT(f"{when} {step}", KILL)
    for outcome in simulated(*story, SECONDS(300), START, CAUGHT_UP, SECONDS(120), after=_MOVE):
        assert outcome.present == frozenset()
        assert outcome.statuses == {"s/a": ("done",), "s/b": ("done",)}


def test_a_version_that_was_not_read_stays_until_it_is(simulated: Simulated) -> None:
    changed = file("a", rows=5)
    # The last work of the first run has 30 seconds, and a store that is slow then leaves the file to the next run.
    story = (file("a"), START, AT("before delete", changed), CAUGHT_UP, SECONDS(120), START, CAUGHT_UP, SECONDS(120))
    for outcome in simulated(*story, after=_DELETE, on_change="append"):
        assert outcome.present == frozenset()
        assert outcome.statuses["s/a"] in (("done", "done"), ("vanished", "done"), ("done",))


@pytest.mark.more
@pytest.mark.parametrize(
    "restart", [[STOP, STOPPED], [KILL], [FREEZE]], ids=["stopped", "killed", "frozen and replaced"]
)
@pytest.mark.parametrize("change", [ADD_VIEW("extra"), CHANGE_VIEW("groups")], ids=["added", "changed"])
def test_files_wait_for_the_views_that_the_next_run_declares(
    simulated: Simulated, restart: list[Step], change: Step
) -> None:
    files = file("a"), file("b", rows=5), START, BARRIER, BARRIER
    for outcome in simulated(*files, *restart, change, START, THAW, CAUGHT_UP, *[SECONDS(60)] * 4, after=_SOON):
        assert outcome.present == frozenset()


@pytest.mark.more
@pytest.mark.parametrize("change", [ADD_VIEW("extra"), CHANGE_VIEW("groups")], ids=["added", "changed"])
def test_files_that_are_due_wait_while_a_view_is_built(simulated: Simulated, change: Step) -> None:
    story = *(file(name, rows=8) for name in "abcd"), START, BARRIER, STOP, STOPPED, LATER(60), change, START
    for outcome in simulated(*story, CAUGHT_UP, SECONDS(300), after=_SOON):
        assert outcome.present == frozenset()


def test_files_wait_for_a_view_that_is_added_to_the_run(simulated: Simulated) -> None:
    for outcome in simulated(file("a"), START, BARRIER, ADD_VIEW("extra"), CAUGHT_UP, *[SECONDS(60)] * 4, after=_SOON):
        assert outcome.present == frozenset()
        assert "extra" in outcome.views


def test_files_of_a_view_that_has_failed_stay(simulated: Simulated) -> None:
    failing = file("b", rows=3, fails="groups", kill_row=1)
    for outcome in simulated(file("a"), failing, START, CAUGHT_UP, SECONDS(120), after=_DELETE):
        assert outcome.failed_views == {"groups"}
        assert "s/b" in outcome.present


@pytest.mark.more
@pytest.mark.parametrize("jump_s", [-86_400, -3_600, 3_600, 86_400])
@pytest.mark.parametrize("restarts", [False, True], ids=["in the run", "between runs"])
def test_a_clock_that_jumps_takes_no_file_early(simulated: Simulated, jump_s: float, restarts: bool) -> None:
    jump = [KILL, CLOCK(jump_s), START] if restarts else [CLOCK(jump_s)]
    simulated(file("a"), START, BARRIER, *jump, SECONDS(400), file("b"), SECONDS(400), after=Delete(keep_s=600))


@pytest.mark.parametrize("bucket_clock", [False, True])
def test_a_clock_that_was_wrong_at_the_commit_takes_no_file_early(simulated: Simulated, bucket_clock: bool) -> None:
    story = CLOCK(-86_400), file("a"), START, BARRIER, CLOCK(86_400), SECONDS(300), KILL, START, SECONDS(200)
    simulated(*story, after=Delete(keep_s=600), bucket_clock=bucket_clock)


@pytest.mark.parametrize("pause", [SUSPEND(5_000), STAND(5_000)], ids=["suspended", "paused"])
def test_a_machine_that_sleeps_takes_no_file_early(simulated: Simulated, pause: Step) -> None:
    simulated(file("a"), START, BARRIER, pause, file("b"), BARRIER, SECONDS(300), after=Delete(keep_s=600))


def test_a_move_overwrites_nothing(simulated: Simulated) -> None:
    for outcome in simulated(archived("a"), file("a"), file("b"), START, CAUGHT_UP, SECONDS(120), after=_MOVE):
        assert outcome.present == {"s/a"}


def test_refused_and_unanswered_deletions_are_repeated(simulated: Simulated) -> None:
    story = file("a"), file("b"), START, BARRIER, refuse(3), cut(2), CAUGHT_UP, SECONDS(1_500)
    for outcome in simulated(*story, after=_DELETE):
        assert outcome.present == frozenset()


def test_files_wait_for_a_table_that_fails_for_a_while(simulated: Simulated) -> None:
    story = file("a"), START, TABLES_DOWN(100), BARRIER, file("b"), CAUGHT_UP, *[SECONDS(300)] * 6
    for outcome in simulated(*story, after=_DELETE, publishes=("rows", "groups")):
        assert outcome.present == frozenset()


@pytest.mark.more
def test_files_stay_while_another_program_has_written_to_a_table(simulated: Simulated) -> None:
    story = file("a"), START, CAUGHT_UP, SPOIL_TABLE("groups"), file("b"), CAUGHT_UP, SECONDS(200)
    for outcome in simulated(*story, after=_DELETE, publishes=("groups",)):
        assert "s/b" in outcome.present


@pytest.mark.more
@pytest.mark.parametrize(
    "fault, codes",
    [(TABLES_DOWN(10), {0, 3}), (TABLES_DOWN(300), {0, 3}), (SPOIL_TABLE("rows"), {3}), (CRASH_PUBLICATIONS, {0, 3})],
)
def test_a_run_exits_with_3_exactly_if_a_table_is_behind_or_fails(
    simulated: Simulated, fault: Step, codes: set[int]
) -> None:
    """A checker compares the tables with the code; a story has each code in some orders."""
    ending = EVENTS(20), STOP, STOPPED
    story = file("a"), START, CAUGHT_UP, file("b"), BARRIER, fault, file("c"), *ending
    assert {outcome.exit_codes[0] for outcome in simulated(*story, seeds=100, publishes=("rows", "groups"))} == codes


def test_a_run_that_stops_while_a_published_view_is_in_backfill_exits_with_3(simulated: Simulated) -> None:
    story = *(file(name) for name in "abc"), START, CAUGHT_UP, STOP, STOPPED, CHANGE_VIEW("groups"), START
    outcomes = simulated(*story, file("g"), BARRIER, STOP, STOPPED, publishes=("groups",))
    assert 3 in {outcome.exit_codes[1] for outcome in outcomes}


def test_files_stay_while_an_expectation_holds_their_epoch_back(simulated: Simulated) -> None:
    story = file("a", rows=8), file("b", rows=8), START, CAUGHT_UP, SECONDS(60), CRASH("coordinator"), SECONDS(60)
    for outcome in simulated(*story, after=_DELETE, gate=True):
        assert outcome.present or outcome.gates[-1] != "closed"


def test_a_frozen_run_removes_nothing_when_it_goes_on(simulated: Simulated) -> None:
    story = file("a"), file("b"), START, AT("before note", FREEZE), SECONDS(20), CHANGE_VIEW("groups"), START
    simulated(*story, EVENTS(80), THAW, CAUGHT_UP, SECONDS(60), after=_DELETE)


def test_a_suspended_run_reads_the_owner_before_it_deletes_the_next_file(simulated: Simulated) -> None:
    """It learns of the takeover by no renewal before its next deletion."""
    story = *(file(name) for name in "abcd"), START, CAUGHT_UP, AT("after delete", FREEZE), *[SECONDS(30)] * 3
    simulated(*story, START, SECONDS(15), THAW, CAUGHT_UP, SECONDS(60), after=_DELETE)


def test_a_run_that_waits_for_its_tables_at_its_end_still_renews_and_notices_a_takeover(simulated: Simulated) -> None:
    story = file("a"), START, CAUGHT_UP, TABLES_DOWN(200), file("b"), BARRIER, STOP, SECONDS(9), START, SECONDS(30)
    for outcome in simulated(*story, CAUGHT_UP, publishes=("rows",), is_contended=True):
        assert outcome.published["rows"]


@pytest.mark.more
@pytest.mark.parametrize("target", ["sources/s", "sources/s/x", "root/x", "tables/groups", "tables"])
def test_a_table_whose_place_begins_to_overlap_is_not_written_and_follows_again(
    simulated: Simulated, target: str
) -> None:
    story = file("a"), START, CAUGHT_UP, link("tables/rows", target), file("b"), BARRIER, SECONDS(60), unlink
    for outcome in simulated(*story, seeds=20, publishes=("rows", "groups")):
        assert outcome.published["rows"] == outcome.published["groups"]


def test_no_upkeep_of_a_table_whose_place_overlaps(simulated: Simulated) -> None:
    """Upkeep is due ten minutes after the one before, and an epoch without rows of the view lets it begin."""
    rows = file("a"), START, CAUGHT_UP, *[SECONDS(90)] * 5, file("b"), CAUGHT_UP
    story = *rows, link("tables/groups", "root/x"), *[SECONDS(90)] * 4, file("t/c"), BARRIER, *[SECONDS(40)] * 2
    for outcome in simulated(*story, seeds=10, sources=("s", "t"), listing_s=60.0, publishes=("groups",)):
        assert outcome.seconds > 700


@pytest.mark.parametrize("place, target", [("archive/s", "sources/s/x"), ("archive/s", "root"), ("sources/s", "root")])
def test_no_file_goes_while_a_place_of_its_source_overlaps(simulated: Simulated, place: str, target: str) -> None:
    story = file("a"), START, CAUGHT_UP, link(place, target), file("b"), *[SECONDS(40)] * 3, CAUGHT_UP, SECONDS(120)
    for outcome in simulated(*story, *[SECONDS(40)] * 3, seeds=20, after=_MOVE):
        assert outcome.removed == 2


def test_the_next_file_stays_when_a_place_begins_to_overlap_during_a_look(simulated: Simulated) -> None:
    overlaps = AT("after delete", link("archive/s", "sources/s/x")), AT("after delete", SUSPEND(10))
    story = *(file(name) for name in "abcd"), START, CAUGHT_UP, *overlaps, *[SECONDS(40)] * 3
    for outcome in simulated(*story, CAUGHT_UP, *[SECONDS(60)] * 3, seeds=20, after=_MOVE):
        assert outcome.removed == 4


def test_files_of_a_source_stay_while_a_table_leads_into_it(simulated: Simulated) -> None:
    story = file("a"), START, CAUGHT_UP, link("tables/rows", "sources/s/x"), *[SECONDS(40)] * 3, POWER_CUT
    for outcome in simulated(*story, CAUGHT_UP, *[SECONDS(60)] * 3, seeds=20, after=_SOON, publishes=("rows",)):
        assert outcome.removed == 1


@pytest.mark.parametrize("after", [_DELETE, _SOON], ids=["delete", "later"])
def test_a_file_whose_deletion_was_acknowledged_and_not_done_is_not_read_again(
    simulated: Simulated, after: Any
) -> None:
    story = file("a"), file("b"), phantom(1), START, CAUGHT_UP, *[SECONDS(40)] * 3, KILL, START, CAUGHT_UP
    for outcome in simulated(*story, SECONDS(60), seeds=20, after=after, on_change="append"):
        assert outcome.statuses == {"s/a": ("done",), "s/b": ("done",)}
        assert len(outcome.present) <= 1


@pytest.mark.parametrize("on_change, before", [("append", "done"), ("replace", "replaced")])
def test_a_file_is_read_though_some_readings_show_its_old_version(
    simulated: Simulated, on_change: Any, before: str
) -> None:
    story = file("a"), START, CAUGHT_UP, stale(3), file("a", rows=5), file("b"), SECONDS(60), CAUGHT_UP, SECONDS(60)
    for outcome in simulated(*story, CAUGHT_UP, seeds=20, on_change=on_change):
        assert (outcome.statuses["s/a"], outcome.statuses["s/b"]) == ((before, "done"), ("done",))


def test_a_listing_that_repeats_objects_repeats_no_row(simulated: Simulated) -> None:
    story = *(file(name) for name in "abcde"), repeat(3), START, CAUGHT_UP, file("a", rows=2), SECONDS(60), CAUGHT_UP
    for outcome in simulated(*story, seeds=20, on_change="append", page_size=2):
        assert set(outcome.statuses) == {f"s/{name}" for name in "abcde"}


@pytest.mark.parametrize("directory", ["m", "b/m"])
def test_a_table_that_appears_below_a_source_is_not_read_and_no_file_goes(simulated: Simulated, directory: str) -> None:
    story = file("a"), START, BARRIER, mount(directory), file("c"), SECONDS(60), unmount, CAUGHT_UP, SECONDS(60)
    for outcome in simulated(*story, after=_SOON):
        assert outcome.present == frozenset()
        assert outcome.statuses == {"s/a": ("done",), "s/c": ("done",)}


def test_the_same_bytes_are_a_new_file_when_they_come_again(simulated: Simulated) -> None:
    story = file("a"), START, CAUGHT_UP, SECONDS(60), again("a"), CAUGHT_UP, SECONDS(120)
    for outcome in simulated(*story, after=_DELETE, on_change="append"):
        assert outcome.present == frozenset()
        assert outcome.statuses == {"s/a": ("done",) * outcome.removed}

"""Stories that a real run meets once in a thousand tries, each in 40 orders."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from slackwater.commands.operations import (
    ForgetCommand,
    ReingestCommand,
    ReleaseCommand,
    RetryCommand,
    RetryViewCommand,
    StopCommand,
    VacuumCommand,
)
from spark_bridge.changes.joined_positions import JoinKind
from tests.cases import few
from tests.simulation.conftest import Simulated
from tests.simulation.model_views.model_view import TimeFilter
from tests.simulation.stories.steps import (
    ADD_VIEW,
    ANSWERED,
    ASK,
    AT,
    BARRIER,
    BRANCH,
    BRANCHED,
    CAUGHT_UP,
    CHANGE_VIEW,
    CLOCK,
    COMMIT,
    CRASH,
    DEATH,
    DROP_BRANCH,
    DROP_VIEW,
    EVENTS,
    FILTER_VIEW,
    FREEZE,
    KILL,
    KILL_READER,
    KILL_USERS,
    MERGE,
    NODE,
    ON,
    PAUSE,
    PIN,
    RECOVERED,
    RESCALE,
    RESUME,
    ROWS,
    SECONDS,
    SILENCE,
    START,
    START_IF_FREE,
    STOP,
    STOPPED,
    TAG,
    THAW,
    TORN_PIN,
    UNPIN,
    VIEW_COMMIT,
    Step,
    back,
    file,
    fresh,
    hide,
    mend,
    refuse,
    vanish,
)
from tests.simulation.world.simulated_root import CommitFate, ViewFate


def test_a_fetcher_that_dies_between_sealing_and_commit_repeats_no_row(simulated: Simulated) -> None:
    for outcome in simulated(file("a", rows=8), file("b", rows=8), START, AT("fetch-0 collects", CRASH("fetch-0"))):
        assert outcome.statuses == {"s/a": ("done",), "s/b": ("done",)}


def test_a_coordinator_that_dies_after_a_commit_that_nobody_heard_of_repeats_no_epoch(simulated: Simulated) -> None:
    for outcome in simulated(file("a"), START, AT("after commit", CRASH("coordinator")), BARRIER, file("b")):
        assert outcome.statuses == {"s/a": ("done",), "s/b": ("done",)}


@pytest.mark.parametrize("fate", ["lost", "unanswered", "late"])
def test_a_commit_with_an_unknown_outcome_loses_nothing_and_doubles_nothing(
    simulated: Simulated, fate: CommitFate
) -> None:
    for outcome in simulated(file("a", rows=5), START, EVENTS(40), COMMIT(fate), file("b", rows=5)):
        assert outcome.statuses == {"s/a": ("done",), "s/b": ("done",)}


def test_an_unanswered_commit_to_a_store_that_then_falls_silent_is_read_back_later(simulated: Simulated) -> None:
    for outcome in simulated(file("a"), START, EVENTS(40), COMMIT("unanswered"), SILENCE(3), file("b")):
        assert outcome.statuses == {"s/a": ("done",), "s/b": ("done",)}


@pytest.mark.parametrize("fate", ["lost", "unanswered"])
def test_a_view_that_may_have_been_written_is_not_built_upon(simulated: Simulated, fate: ViewFate) -> None:
    for outcome in simulated(file("a", rows=5), START, BARRIER, VIEW_COMMIT(fate), file("b", rows=5)):
        assert outcome.statuses == {"s/a": ("done",), "s/b": ("done",)}


def test_a_process_frozen_in_a_commit_changes_nothing_when_it_goes_on(simulated: Simulated) -> None:
    story = (file("a", rows=8), START, AT("before commit", FREEZE), EVENTS(80), START, file("b"), CAUGHT_UP, THAW)
    for outcome in simulated(*story, file("c")):
        assert outcome.statuses == {"s/a": ("done",), "s/b": ("done",), "s/c": ("done",)}


def test_a_process_frozen_while_it_writes_a_view_changes_nothing_when_it_goes_on(simulated: Simulated) -> None:
    story = (
        file("a", rows=8),
        START,
        BARRIER,
        file("b"),
        AT("before view", FREEZE),
        EVENTS(80),
        START,
        CAUGHT_UP,
        THAW,
    )
    for outcome in simulated(*story, file("c")):
        assert outcome.statuses == {"s/a": ("done",), "s/b": ("done",), "s/c": ("done",)}


def test_of_two_processes_that_start_at_once_one_goes_on(simulated: Simulated) -> None:
    for outcome in simulated(file("a", rows=8), START, START, EVENTS(40), START, file("b")):
        assert outcome.statuses == {"s/a": ("done",), "s/b": ("done",)}


def test_a_take_over_that_is_killed_between_two_restores_is_made_again(simulated: Simulated) -> None:
    story = (file("a", rows=5), START, BARRIER, file("b"), KILL, START, AT("after restore", KILL), EVENTS(80), START)
    for outcome in simulated(*story):
        assert outcome.statuses == {"s/a": ("done",), "s/b": ("done",)}


@pytest.mark.more
def test_a_version_that_kills_whoever_reads_it_is_found_behind_one_that_was_waiting(simulated: Simulated) -> None:
    endings = set()
    for events in range(32, 48, 4):
        story = (file("c", rows=8), file("e", rows=3), START, EVENTS(events), file("e", rows=1, kills="fetch"))
        for outcome in simulated(*story, credit_rows=3):
            assert outcome.statuses["s/c"] == ("done",)
            endings.add(outcome.statuses["s/e"])
    assert ("vanished", "quarantined") in endings


@pytest.mark.parametrize("kills_at", few([0, 9, 20], 9))
def test_a_file_that_kills_at_one_row_is_found_wherever_its_reading_begins(simulated: Simulated, kills_at: int) -> None:
    story = (file("a", rows=5), file("b", rows=24, kills="fetch", kill_row=kills_at), file("c", rows=5))
    for outcome in simulated(*story, START, seeds=10, epoch_rows=5, credit_rows=3):
        assert outcome.statuses == {"s/a": ("done",), "s/b": ("quarantined",), "s/c": ("done",)}


@pytest.mark.more
def test_a_large_file_that_makes_progress_is_read_to_its_end_however_often_its_reader_dies(
    simulated: Simulated,
) -> None:
    deaths = [step for _ in range(9) for step in (ROWS, CRASH("fetch-0"))]
    for outcome in simulated(file("big", rows=60), START, *deaths, seeds=4, fetchers=1, epoch_rows=6, credit_rows=6):
        assert outcome.statuses == {"s/big": ("done",)}


@pytest.mark.more
def test_a_row_of_which_no_state_was_heard_before_a_death_shows_that_the_file_makes_progress(
    simulated: Simulated,
) -> None:
    twice = [DEATH("fetch-0"), RECOVERED, DEATH("fetch-0"), RECOVERED]
    simulated(
        START,
        CAUGHT_UP,
        file("large", rows=20),
        *twice,
        *([ROWS, *twice, ROWS, DEATH("coordinator"), RECOVERED] * 3),
        fetchers=1,
        concurrency=1,
        epoch_rows=2,
        credit_rows=3,
        piece_rows=1,
    )


def test_nodes_that_are_lost_accuse_no_file(simulated: Simulated) -> None:
    losses = [step for _ in range(9) for step in (EVENTS(40), NODE("fetch-0", "coordinator"))]
    for outcome in simulated(file("a", rows=20), file("b", rows=3), START, *losses, seeds=4, fetchers=1, credit_rows=6):
        assert outcome.statuses == {"s/a": ("done",), "s/b": ("done",)}


def test_deaths_of_actors_that_read_no_file_accuse_none(simulated: Simulated) -> None:
    deaths = [step for _ in range(9) for step in (EVENTS(60), CRASH("merger"), EVENTS(60), CRASH("dispatcher"))]
    for outcome in simulated(file("a", rows=20), file("b", rows=3), START, *deaths, seeds=4, fetchers=1, credit_rows=6):
        assert outcome.statuses == {"s/a": ("done",), "s/b": ("done",)}


@pytest.mark.parametrize("victim", few(["fetch", "spark"], "fetch"))
def test_a_file_that_kills_whoever_reads_it_is_found_and_the_others_are_done(simulated: Simulated, victim: str) -> None:
    story = (file("a", rows=5), file("b", rows=5, kills=victim), file("c", rows=5), file("d", rows=5))
    for outcome in simulated(*story, START):
        assert outcome.statuses == {
            "s/a": ("done",),
            "s/b": ("quarantined",),
            "s/c": ("done",),
            "s/d": ("done",),
        }


def test_a_file_that_cannot_be_read_to_its_end_keeps_the_rows_before_across_a_crash(simulated: Simulated) -> None:
    for outcome in simulated(
        file("a", rows=8, bad_row=5), file("b"), START, BARRIER, CRASH("dispatcher"), piece_rows=1
    ):
        assert outcome.statuses == {"s/a": ("quarantined",), "s/b": ("done",)}


def test_a_file_that_was_away_for_a_moment_is_read_in_the_end(simulated: Simulated) -> None:
    story = (file("a", rows=1), file("b"), START, EVENTS(20), vanish("a"), EVENTS(40), CRASH("merger"), back("a"))
    for outcome in simulated(*story):
        assert outcome.statuses == {"s/a": ("done",), "s/b": ("done",)}


def test_a_file_that_changes_while_it_waits_is_read_once(simulated: Simulated) -> None:
    story = (file("a", rows=5), file("b", rows=5), START, EVENTS(30), file("b", rows=2), CRASH("fetch-1"), EVENTS(20))
    for outcome in simulated(*story, concurrency=1, piece_rows=1):
        assert outcome.statuses["s/b"].count("done") == 1


def test_a_pause_outlives_a_crash_and_ends_with_resume(simulated: Simulated) -> None:
    story = (file("a", rows=5), START, EVENTS(30), PAUSE, CRASH("coordinator"), EVENTS(80), file("b"), RESUME)
    for outcome in simulated(*story):
        assert outcome.statuses == {"s/a": ("done",), "s/b": ("done",)}


def test_a_stop_in_the_middle_of_a_recovery_ends_the_run(simulated: Simulated) -> None:
    for outcome in simulated(
        file("a", rows=8), START, EVENTS(40), CRASH("list-s"), EVENTS(5), STOP, STOPPED, file("b")
    ):
        assert outcome.statuses == {"s/a": ("done",), "s/b": ("done",)}


def test_a_bucket_that_refuses_for_a_while_ends_no_run(simulated: Simulated) -> None:
    for outcome in simulated(file("a", rows=8), START, EVENTS(20), refuse(6), file("b"), piece_rows=1):
        assert outcome.statuses == {"s/a": ("done",), "s/b": ("done",)}


def test_a_wall_clock_that_is_set_back_stops_no_epoch(simulated: Simulated) -> None:
    for outcome in simulated(
        file("a"), START, BARRIER, CLOCK(-3600), file("b"), BARRIER, CRASH("coordinator"), file("c")
    ):
        assert outcome.statuses == {"s/a": ("done",), "s/b": ("done",), "s/c": ("done",)}


@pytest.mark.more
def test_a_source_without_schema_does_not_hold_back_the_file_that_another_source_waits_for(
    simulated: Simulated,
) -> None:
    story = (file("t/a", rows=0), file("t/b", rows=1, kills="fetch"), file("s/c", rows=8))
    for outcome in simulated(*story, START, sources=("s", "t"), fetchers=1, schema_known=False, files_waiting=1):
        assert outcome.statuses["t/b"] == ("quarantined",)


def test_what_comes_back_as_it_was_and_goes_again_is_noted_again(simulated: Simulated) -> None:
    simulated(
        file("a", rows=0, bad_row=0), START, EVENTS(10), vanish("a"), SECONDS(5), back("a"), EVENTS(10), vanish("a")
    )


def test_a_version_that_had_vanished_unread_may_have_bad_records_when_it_is_back(simulated: Simulated) -> None:
    for outcome in simulated(file("a", bad=(0,)), START, EVENTS(20), vanish("a"), EVENTS(80), back("a")):
        assert "done" in outcome.statuses["s/a"]


@pytest.mark.more
def test_a_version_that_kills_takes_the_place_of_one_that_is_never_read(simulated: Simulated) -> None:
    story = (file("a", rows=1), START, EVENTS(10), file("a", rows=8, kills="fetch"))
    for outcome in simulated(*story, slow="merger"):
        assert outcome.statuses["s/a"][-1] == "quarantined"


MANY = tuple(file(name, rows=8) for name in "abcdefgh")
ALL_DONE = {f"s/{name}": ("done",) for name in "abcdefgh"}


@pytest.mark.parametrize("patience_s", few([10.0, 0.0], 0.0))
def test_one_fetch_actor_becomes_sixteen_and_one_again_and_every_row_comes_once(
    simulated: Simulated, patience_s: float
) -> None:
    story = (*MANY, START, EVENTS(30), RESCALE(16), BARRIER, RESCALE(1), EVENTS(60), RESCALE(16), RESCALE(2))
    for outcome in simulated(*story, seeds=15, fetchers=1, piece_rows=1, concurrency=2, patience_s=patience_s):
        assert outcome.statuses == ALL_DONE


@pytest.mark.parametrize(
    "moment",
    few(["fetch-0 collects", "fetch-0 hands over", "fetch-1 hands over", "fetch-3 collects"], "fetch-1 hands over"),
)
@pytest.mark.parametrize("victim", few(["fetch-0", "fetch-3", "dispatcher", "merger", "coordinator"], "fetch-0"))
def test_a_death_while_vnodes_move_loses_nothing_and_doubles_nothing(
    simulated: Simulated, moment: str, victim: str
) -> None:
    story = (*MANY, START, EVENTS(30), AT(moment, CRASH(victim)), RESCALE(4), BARRIER, RESCALE(1))
    for outcome in simulated(*story, seeds=6, fetchers=2, piece_rows=2, credit_rows=3, patience_s=0.0):
        assert outcome.statuses == ALL_DONE


def test_vnodes_move_while_nothing_may_be_emitted(simulated: Simulated) -> None:
    story = (*MANY, START, EVENTS(40), PAUSE, EVENTS(20), RESCALE(3), EVENTS(60), CRASH("fetch-2"), RESUME)
    for outcome in simulated(*story, fetchers=1, piece_rows=1):
        assert outcome.statuses == ALL_DONE


@pytest.mark.more
def test_files_that_replace_others_go_with_what_is_stored_of_them(simulated: Simulated) -> None:
    story = (*MANY, START, CAUGHT_UP, *(file(name, rows=5) for name in "abcd"), EVENTS(60), RESCALE(4), EVENTS(30))
    for outcome in simulated(*story, RESCALE(2), fetchers=1, piece_rows=1, on_change="replace", patience_s=0.0):
        assert [outcome.statuses[f"s/{name}"] for name in "abcd"] == [("replaced", "done")] * 4


@pytest.mark.more
@pytest.mark.parametrize("moment", few(["after view", "before commit", "after commit"], "before commit"))
@pytest.mark.parametrize("victim", [KILL, CRASH("materializer")], ids=["process", "spark"])
def test_a_backfill_that_is_interrupted_gets_each_row_of_its_history_once(
    simulated: Simulated, moment: str, victim: Step
) -> None:
    story = (file("a", rows=8), file("b", rows=8), START, CAUGHT_UP, START, BARRIER, AT(moment, victim), file("c"))
    for outcome in simulated(*story, EVENTS(40), START, seeds=15, backfill=True):
        assert outcome.statuses == {"s/a": ("done",), "s/b": ("done",), "s/c": ("done",)}


def test_a_file_that_is_replaced_during_a_backfill_has_only_its_new_rows_there(simulated: Simulated) -> None:
    story = (file("a", rows=8), file("b", rows=8), START, CAUGHT_UP, START, BARRIER, file("a", rows=3))
    for outcome in simulated(*story, backfill=True, on_change="replace"):
        assert outcome.statuses == {"s/a": ("replaced", "done"), "s/b": ("done",)}


NAMES = tuple("abcdef")


@pytest.mark.parametrize("on_change", few(["ignore", "append", "replace"], "ignore", "replace"))
@pytest.mark.parametrize("hidden", [(), ("a", "b")], ids=["empty", "partial"])
def test_a_listing_that_lacks_files_for_a_moment_takes_nothing_away(
    simulated: Simulated, on_change: str, hidden: tuple[str, ...]
) -> None:
    # The first listing of an attempt looks every name up.
    story = (*map(file, NAMES), START, CAUGHT_UP, hide(*hidden), CRASH("list-s"), SECONDS(30))
    for outcome in simulated(*story, seeds=10, on_change=on_change, listing_s=2.0):
        assert outcome.statuses == {f"s/{name}": ("done",) for name in NAMES}


def test_listings_that_stay_empty_take_nothing_away_and_new_files_come_in(simulated: Simulated) -> None:
    story = (
        *map(file, NAMES),
        START,
        CAUGHT_UP,
        hide(listings=6),
        SECONDS(10),
        CRASH("list-s"),
        SECONDS(20),
        file("g"),
    )
    for outcome in simulated(*story, on_change="replace", listing_s=2.0):
        assert outcome.statuses == {f"s/{name}": ("done",) for name in (*NAMES, "g")}


def test_paused_removals_survive_deaths_and_keep_no_new_file_away(simulated: Simulated) -> None:
    gone = tuple(map(vanish, "abcd"))
    deaths = CRASH("list-s"), SECONDS(30), KILL, START
    story = (*map(file, NAMES), START, CAUGHT_UP, *gone, SECONDS(30), *deaths, SECONDS(30), file("g"), CAUGHT_UP)
    options: dict[str, Any] = {"on_change": "replace", "listing_s": 2.0}
    for outcome in simulated(*story, max_removed_files=0, max_removed_share=0.0, **options):
        # The user has let them go at the end.
        left = {f"s/{name}": ("forgotten",) for name in "abcd"}
        assert outcome.statuses == left | {f"s/{name}": ("done",) for name in "efg"}


def test_removals_that_events_tell_pause_as_well_and_keep_no_message(simulated: Simulated) -> None:
    gone = tuple(map(vanish, "abcd"))
    story = (*map(file, NAMES), START, CAUGHT_UP, *gone, SECONDS(60), KILL, START, CAUGHT_UP, file("g"), CAUGHT_UP)
    options: dict[str, Any] = {"on_change": "replace", "listing_s": 600.0, "notifications": True}
    for outcome in simulated(*story, max_removed_files=0, max_removed_share=0.0, **options):
        left = {f"s/{name}": ("forgotten",) for name in "abcd"}
        assert outcome.statuses == left | {f"s/{name}": ("done",) for name in "efg"}


@pytest.mark.more
@pytest.mark.parametrize("moment", few(["before fold", "after fold", "before vacuum"], "after fold", "before vacuum"))
@pytest.mark.parametrize("misfortune", few([KILL, FREEZE], KILL), ids=repr)
def test_a_store_on_lance_has_the_same_rows_whatever_happens_to_a_fold(
    simulated: Simulated, moment: str, misfortune: Step
) -> None:
    added = [step for path in "abcdef" for step in (file(path, rows=2), BARRIER)]
    story = START, AT(moment, misfortune), *added, START, *added, THAW, COMMIT("late"), *added
    simulated(*story, seeds=1, on_lance=True, keep_epochs=2, epoch_rows=2, stages_deltas=True)


@pytest.mark.parametrize("moment", few(["after stage", "before view", "before commit"], "after stage"))
def test_rows_that_wait_for_their_commit_for_a_week_are_read_again(simulated: Simulated, moment: str) -> None:
    story = START, file("a"), AT(moment, CLOCK(8 * 86_400)), file("b"), BARRIER, file("c"), CAUGHT_UP
    for outcome in simulated(*story, stages_deltas=True, materialize=True, keep_epochs=1):
        assert outcome.statuses == dict.fromkeys(("s/a", "s/b", "s/c"), ("done",))


@pytest.mark.more
@pytest.mark.parametrize(
    "misfortune", [CRASH("materializer"), CRASH("coordinator"), VIEW_COMMIT("unanswered")], ids=repr
)
def test_a_full_view_is_recomputed_whatever_happens_to_its_recomputation(
    simulated: Simulated, misfortune: Step
) -> None:
    simulated(
        *(
            START,
            file("a"),
            file("b"),
            BARRIER,
            AT("before view", misfortune),
            file("c"),
            BARRIER,
            file("a"),
            CAUGHT_UP,
        ),
        on_change="replace",
        full_view=True,
    )


def test_a_retried_file_is_read_again_once_however_its_run_dies(simulated: Simulated) -> None:
    retry = ASK(RetryCommand())
    story = [
        START,
        file("a", rows=5, bad_row=2),
        CAUGHT_UP,
        mend("a"),
        retry,
        AT("before commit", CRASH("coordinator")),
    ]
    for outcome in simulated(*story, BARRIER, retry, KILL, START):
        assert outcome.statuses["s/a"] in [("done",), ("quarantined",)]


def test_a_retry_that_is_answered_is_done(simulated: Simulated) -> None:
    story = [
        START,
        file("a", rows=5, bad_row=2),
        CAUGHT_UP,
        mend("a"),
        ASK(RetryCommand(file="a")),
        ANSWERED,
        CAUGHT_UP,
    ]
    assert {outcome.statuses["s/a"] for outcome in simulated(*story)} == {("done",)}


@pytest.mark.parametrize("then", [(), (vanish("a"),)], ids=["empty", "gone"])
def test_a_retry_of_a_file_that_becomes_another_one_is_done_when_that_one_is(
    simulated: Simulated, then: tuple[Step, ...]
) -> None:
    bad = file("a", rows=2, bad_row=0)
    simulated(START, bad, CAUGHT_UP, file("a", rows=0), EVENTS(10), *then, ASK(RetryCommand()))


def test_a_retry_that_comes_after_a_mark_does_not_belong_to_it(simulated: Simulated) -> None:
    story = START, file("a", rows=5, bad_row=2), CAUGHT_UP, mend("a"), ASK(RetryCommand()), CAUGHT_UP
    simulated(*story, slow="coordinator")


def test_a_forgotten_file_stays_forgotten_until_it_is_read_again(simulated: Simulated) -> None:
    forget, again = ASK(ForgetCommand(file="a")), ASK(ReingestCommand(file="a"))
    story = [START, file("a"), file("b"), CAUGHT_UP, forget, AT("after commit", CRASH("fetch-0")), ANSWERED, CAUGHT_UP]
    assert {outcome.statuses["s/a"] for outcome in simulated(*story, materialize=True)} == {("forgotten",)}
    reported_again = simulated(*story, again, ANSWERED, CAUGHT_UP, materialize=True)
    assert {outcome.statuses["s/a"] for outcome in reported_again} == {("done",)}


def test_of_a_file_that_changes_while_it_is_read_again_one_version_counts(simulated: Simulated) -> None:
    again = ASK(ReingestCommand(file="c"))
    story = file("c", rows=1), START, CAUGHT_UP, again, EVENTS(40), file("c", rows=1)
    outcomes = simulated(*story, seeds=50, materialize=True, notifications=True, listing_s=600.0)
    # A change that comes after the file was read again is ignored.
    assert {outcome.statuses["s/c"] for outcome in outcomes} <= {("done",), ("replaced", "done")}


def test_a_tagged_epoch_survives_upkeep(simulated: Simulated) -> None:
    story = [START, file("a"), CAUGHT_UP, TAG("x"), ANSWERED]
    simulated(*story, file("b"), CAUGHT_UP, file("c"), CAUGHT_UP, ASK(VacuumCommand()), ANSWERED, keep_epochs=1)


def test_a_stop_is_answered_when_the_run_is_over(simulated: Simulated) -> None:
    simulated(START, file("a"), ASK(StopCommand()), AT("before commit", CRASH("merger")), ANSWERED, START)


def test_a_view_that_is_dropped_is_gone_although_an_actor_dies(simulated: Simulated) -> None:
    simulated(START, file("a"), CAUGHT_UP, DROP_VIEW("groups"), EVENTS(5), CRASH("fetch-0"))


def test_a_view_that_is_dropped_and_added_again_has_all_rows(simulated: Simulated) -> None:
    simulated(START, file("a"), CAUGHT_UP, DROP_VIEW("groups"), EVENTS(3), ADD_VIEW("groups"), file("b"))


@pytest.mark.parametrize("view", few(["rows", "groups", "late", "full"], "groups"))
def test_a_view_that_fails_over_a_row_is_stale_however_the_run_dies(simulated: Simulated, view: str) -> None:
    for who in ("materializer", "coordinator"):
        story = [START, file("a"), CAUGHT_UP, file("b", fails=view, kill_row=1), SECONDS(2), CRASH(who), file("c")]
        # The second process adds a view, too.
        for outcome in simulated(*story, KILL, START, backfill=True, full_view=True, materialize=True):
            assert outcome.failed_views == {view}
            assert outcome.statuses == {f"s/{name}": ("done",) for name in "abc"}, "no file is blamed"


@pytest.mark.more
@pytest.mark.parametrize("view", few(["rows", "groups", "full"], "groups"))
def test_a_failed_view_is_whole_when_it_is_retried_without_the_row(simulated: Simulated, view: str) -> None:
    retry = ASK(RetryViewCommand(view=view))
    story = [START, file("a"), CAUGHT_UP, file("b", fails=view), CAUGHT_UP, retry, SECONDS(10)]
    settings = {"full_view": True, "materialize": True}
    for outcome in simulated(*story, seeds=10, **settings):
        assert outcome.failed_views == {view}, "the row is there still"
    cure = [ASK(ForgetCommand(file="b")), ANSWERED, file("c"), retry]
    for outcome in simulated(*story, *cure, ANSWERED, CAUGHT_UP, **settings):
        assert not outcome.failed_views
    simulated(*story, *cure, EVENTS(5), CRASH("coordinator"), file("d"), **settings)


def test_a_view_that_is_added_before_a_death_is_created(simulated: Simulated) -> None:
    simulated(START, file("a"), CAUGHT_UP, ADD_VIEW("more"), EVENTS(5), CRASH("coordinator"), file("b"))


def test_a_changed_file_ends_a_run_that_does_not_accept_it_and_loses_nothing(simulated: Simulated) -> None:
    story = [START, file("a", rows=3), CAUGHT_UP, file("a", rows=5), file("b"), SECONDS(30), START, SECONDS(30)]
    for outcome in simulated(*story, on_change="fail"):
        assert outcome.statuses == {"s/a": ("done",), "s/b": ("done",)}
    # It restarts, fails, and is caught up when the user accepts.
    simulated(*story, CAUGHT_UP, file("c"), CRASH("fetch-0"), on_change="fail")


def test_a_reader_keeps_its_epoch_until_it_lets_go(simulated: Simulated) -> None:
    news = [step for name in "bcd" for step in (file(name), CAUGHT_UP)]
    ends = ([UNPIN("p")], [KILL_READER("p"), SECONDS(150)], [TORN_PIN, SECONDS(150)])
    for end in ends:
        simulated(START, file("a"), CAUGHT_UP, PIN("p"), *news, *end, file("e"), CAUGHT_UP, keep_epochs=1, seeds=15)


_KINDS = get_args(JoinKind)
_JOINED: dict[str, Any] = {"sources": ("s", "t"), "on_change": "replace", "max_removed_share": 1.0}


@pytest.mark.more
@pytest.mark.parametrize("kind", few(list(_KINDS), "inner", "full"))
def test_a_join_is_that_of_the_rows_of_the_files_whatever_changes_and_dies(
    simulated: Simulated, kind: JoinKind
) -> None:
    first = [file("s/a", rows=8), file("s/c", rows=4), file("t/b", rows=5), START, CAUGHT_UP]
    changed = [file("s/a", rows=3), file("t/b", rows=6), vanish("s/c"), file("t/d"), EVENTS(40)]
    for who in ("materializer", "coordinator"):
        simulated(
            *first,
            *changed,
            CRASH(who),
            file("s/e"),
            AT("after view", KILL),
            EVENTS(20),
            START,
            seeds=8,
            join=kind,
            **_JOINED,
        )


@pytest.mark.parametrize("kind", few(list(_KINDS), "left"))
def test_a_join_of_a_source_with_itself_follows_forgotten_files(simulated: Simulated, kind: JoinKind) -> None:
    corrections = [ASK(ForgetCommand(file="a")), EVENTS(30), file("c"), ASK(ReingestCommand(file="a")), ANSWERED]
    simulated(
        file("a", rows=8),
        file("b"),
        START,
        CAUGHT_UP,
        *corrections,
        file("b", rows=5),
        seeds=8,
        join=kind,
        materialize=True,
    )


def test_a_static_table_that_is_replaced_joins_only_its_new_rows(simulated: Simulated) -> None:
    table = [step for rows in (2, 8, 0) for step in (file("t/table", rows=rows), file("s/c", rows=rows), BARRIER)]
    simulated(file("s/a", rows=8), file("t/table", rows=5), START, CAUGHT_UP, *table, join="left", **_JOINED)


def test_a_join_that_is_added_late_has_all_rows_and_shares_its_sides(simulated: Simulated) -> None:
    news = [file("s/a", rows=2), ADD_VIEW("joined"), file("t/b", rows=8), EVENTS(30), file("s/c")]
    simulated(
        file("s/a", rows=8),
        file("t/b"),
        START,
        CAUGHT_UP,
        *news,
        DROP_VIEW("joined"),
        file("t/b"),
        join="inner",
        **_JOINED,
    )


def test_a_join_that_fails_over_a_row_stands_and_is_whole_when_it_is_retried_without_it(simulated: Simulated) -> None:
    story = [file("s/a", rows=8), file("t/b"), START, CAUGHT_UP, file("t/c", fails="pairs"), CAUGHT_UP]
    for outcome in simulated(*story, CRASH("coordinator"), file("s/d"), seeds=10, join="full", **_JOINED):
        assert outcome.failed_views == {"pairs"}
    cure = [file("t/c", rows=2), CAUGHT_UP, ASK(RetryViewCommand(view="pairs")), ANSWERED, file("s/d"), CAUGHT_UP]
    for outcome in simulated(*story, *cure, seeds=10, join="full", **_JOINED):
        assert not outcome.failed_views


_CLOSING: dict[str, Any] = {"lateness_us": 25, "closing": True}


@pytest.mark.parametrize("who", few(["fetch-0", "coordinator", "materializer", "list-s"], "coordinator"))
def test_no_row_of_a_backlog_is_late_in_whatever_order_it_is_read(simulated: Simulated, who: str) -> None:
    backlog = [file(name, rows=5) for name in "abcdefgh"]
    story = (*backlog, START, EVENTS(60), CRASH(who), CAUGHT_UP, file("a", rows=0), CRASH(who))
    for outcome in simulated(*story, seeds=16, fetchers=3, page_size=3, epoch_rows=5, **_CLOSING):
        assert not outcome.late_rows


@pytest.mark.more
def test_rows_of_closed_windows_are_late_and_the_windows_stay_as_they_are_whatever_dies(simulated: Simulated) -> None:
    for who in ("fetch-0", "coordinator", "materializer"):
        news = [step for name in "efgh" for step in (file(name, rows=4), CAUGHT_UP, CRASH(who))]
        outcomes = simulated(*[file(name, rows=8) for name in "abcd"], START, CAUGHT_UP, *news, seeds=10, **_CLOSING)
        assert any(outcome.late_rows for outcome in outcomes)


def test_a_view_with_closed_windows_that_is_rebuilt_has_the_late_rows(simulated: Simulated) -> None:
    story = [*[file(name, rows=8) for name in "abcd"], START, CAUGHT_UP, file("e"), file("f"), CAUGHT_UP]
    simulated(*story, ASK(RetryViewCommand(view="closed")), EVENTS(30), file("g"), KILL, START, **_CLOSING, seeds=16)


@pytest.mark.parametrize("kind", get_args(TimeFilter))
def test_rows_come_and_leave_as_time_passes_whatever_dies_and_changes(simulated: Simulated, kind: TimeFilter) -> None:
    simulated(
        file("a", rows=8),
        CAUGHT_UP,
        SECONDS(20),
        CRASH("materializer"),
        file("a", rows=5),
        file("b", rows=8),
        SECONDS(10),
        AT("after view", KILL),
        SECONDS(10),
        START,
        SECONDS(30),
        vanish("b"),
        AT("before commit", CRASH("coordinator")),
        SECONDS(60),
        seeds=16,
        on_change="replace",
        time_filter=kind,
    )


@pytest.mark.parametrize("kind", few(get_args(JoinKind), "left"))
def test_a_join_whose_rows_expire_is_that_of_the_rows_in_time_whatever_dies(
    simulated: Simulated, kind: JoinKind
) -> None:
    outcomes = simulated(
        *(step for path in "abc" for step in (file(f"s/{path}", rows=8), file(f"t/{path}", rows=8))),
        AT("after view", CRASH("materializer")),
        CAUGHT_UP,
        *(step for path in "defg" for step in (file(f"s/{path}", rows=3), file(f"t/{path}", rows=3), BARRIER)),
        AT("before commit", KILL),
        file("s/h", rows=5),
        CAUGHT_UP,
        file("t/h", rows=5),
        CAUGHT_UP,
        seeds=16,
        sources=("s", "t"),
        lateness_us=25,
        expiring=kind,
    )
    assert any(outcome.late_rows for outcome in outcomes)


@pytest.mark.parametrize("who", few([KILL_USERS, KILL, CRASH("coordinator")], KILL_USERS), ids=repr)
def test_a_root_keeps_what_its_branches_need_whoever_dies(simulated: Simulated, who: Step) -> None:
    more = [step for rows in (1, 3) for step in (file("a", rows=rows), BARRIER)]
    simulated(
        *(file("a", rows=3), BARRIER, BRANCH("b"), EVENTS(10), who, START, *more),
        *(BRANCH("b"), CAUGHT_UP, *more, DROP_BRANCH("b"), EVENTS(10), who, START, *more),
        *(DROP_BRANCH("b"), CAUGHT_UP, BRANCH("b"), *more),
        keep_epochs=1,
        on_change="append",
    )


_BEGUN = [file("a", rows=3), START, BARRIER, CAUGHT_UP, *(BRANCH("b"), BRANCHED) * 2]
_CHANGED = [ON("b", each) for each in (CHANGE_VIEW("groups"), START, ADD_VIEW("extra"), ADD_VIEW("more"))]
_MET = [CAUGHT_UP, ON("b", CAUGHT_UP), ON("b", STOP), ON("b", STOPPED), STOP, STOPPED]
_TAKEN = {"copy", "extra", "groups", "more"}
_WITH_BRANCHES = {"keep_epochs": 2, "on_change": "append", "derived_view": True}


@pytest.mark.parametrize("what", few([BARRIER, KILL, COMMIT("unanswered"), CRASH("materializer")], KILL), ids=repr)
def test_merged_views_have_the_rows_of_the_root_whatever_happens_on_the_branch(
    simulated: Simulated, what: Step
) -> None:
    more = [file("b", rows=2), ON("b", EVENTS(30)), ON("b", what), file("c", rows=3), ON("b", START_IF_FREE)]
    for outcome in simulated(*_BEGUN, *_CHANGED, *more, *_MET, MERGE("b"), BRANCHED, seeds=16, **_WITH_BRANCHES):
        assert outcome.views >= _TAKEN
        assert outcome.refusals == ()


@pytest.mark.parametrize("who", [KILL_USERS, pytest.param(START, marks=pytest.mark.more)], ids=repr)
@pytest.mark.parametrize("moment", few(["before view", "after view", "before commit", "after commit"], "after commit"))
def test_a_merge_that_dies_takes_all_or_nothing_and_is_repeated(simulated: Simulated, who: Step, moment: str) -> None:
    again = [BRANCHED, STOP, STOPPED, MERGE("b"), BRANCHED]
    story = [*_BEGUN, *_CHANGED, *_MET, AT(moment, who), MERGE("b"), *again, START, BARRIER]
    for outcome in simulated(*story, seeds=16, **_WITH_BRANCHES):
        assert outcome.views >= _TAKEN


@pytest.mark.more
@pytest.mark.parametrize("fate", get_args(CommitFate))
def test_a_merge_with_an_unknown_outcome_is_repeated(simulated: Simulated, fate: CommitFate) -> None:
    story = [*_BEGUN, *_CHANGED, *_MET, AT("after view", COMMIT(fate)), MERGE("b"), BRANCHED, MERGE("b"), BRANCHED]
    for outcome in simulated(*story, START, BARRIER, seeds=16, **_WITH_BRANCHES):
        assert outcome.views >= _TAKEN


@pytest.mark.more
def test_a_branch_that_runs_on_beside_its_merge_stays_whole_and_is_merged_again(simulated: Simulated) -> None:
    met = [CAUGHT_UP, ON("b", CAUGHT_UP), STOP, STOPPED]
    first = [*_BEGUN, *_CHANGED, *met, MERGE("b"), EVENTS(20), file("b"), BRANCHED, START, CAUGHT_UP]
    second = [ON("b", ADD_VIEW("joined")), *_MET, MERGE("b"), BRANCHED, START, BARRIER, DROP_BRANCH("b"), BRANCHED]
    for outcome in simulated(*first, *second, seeds=16, **_WITH_BRANCHES):
        assert outcome.views >= {*_TAKEN, "joined"}


@pytest.mark.more
def test_a_merge_is_refused_when_root_and_branch_have_read_other_files(simulated: Simulated) -> None:
    stands = [ON("b", CAUGHT_UP), ON("b", STOP), ON("b", STOPPED), STOP, STOPPED, file("b"), START, CAUGHT_UP, STOP]
    for outcome in simulated(*_BEGUN, *_CHANGED, *stands, STOPPED, MERGE("b"), BRANCHED, seeds=16, **_WITH_BRANCHES):
        [refusal] = outcome.refusals
        assert "have not read the same files of s: they differ in b" in refusal
        assert outcome.views.isdisjoint({"extra", "more"})


@pytest.mark.more
def test_a_merge_is_refused_while_a_run_owns_the_root(simulated: Simulated) -> None:
    for outcome in simulated(*_BEGUN, *_CHANGED, *_MET[:4], MERGE("b"), BRANCHED, seeds=16, **_WITH_BRANCHES):
        assert outcome.views.isdisjoint({"extra", "more"})


@pytest.mark.more
def test_root_and_branch_that_change_a_view_in_epochs_of_one_number_are_merged(simulated: Simulated) -> None:
    apart = [STOP, STOPPED, CLOCK(-3600), ON("b", CHANGE_VIEW("groups")), ON("b", START), FILTER_VIEW("groups"), START]
    for outcome in simulated(*_BEGUN, *apart, *_MET, MERGE("b"), BRANCHED, seeds=16, **_WITH_BRANCHES):
        assert outcome.refusals == ()


_IDLE: dict[str, Any] = {"lateness_us": 25, "closing": True, "idle_s": 20.0}


def test_the_last_windows_of_an_idle_source_close_and_a_row_that_comes_in_time_is_not_late(
    simulated: Simulated,
) -> None:
    early = [fresh("a"), START, BARRIER, SECONDS(12), fresh("b", ago_s=8), SECONDS(12), fresh("c", ago_s=15)]
    for outcome in simulated(*early, CAUGHT_UP, **_IDLE):
        assert outcome.late_rows == ()


@pytest.mark.more
@pytest.mark.parametrize("who", [CRASH("coordinator"), CRASH("fetch-0"), KILL], ids=repr)
def test_a_row_that_comes_after_the_idle_time_is_late_and_kept_whoever_dies(simulated: Simulated, who: Step) -> None:
    idle = [fresh("a"), START, BARRIER, SECONDS(12), who, START, SECONDS(60), fresh("b", ago_s=55), BARRIER, who]
    outcomes = simulated(*idle, START, CAUGHT_UP, seeds=100, **_IDLE)
    assert any(outcome.late_rows for outcome in outcomes)


@pytest.mark.parametrize("who", few([KILL, CRASH("coordinator"), CRASH("materializer")], KILL), ids=repr)
@pytest.mark.parametrize("moment", few(["before view", "after view", "before commit"], "after view"))
def test_a_changed_view_takes_groups_over_whoever_dies(simulated: Simulated, who: Step, moment: str) -> None:
    story = [file("a", rows=8), START, CAUGHT_UP, FILTER_VIEW("groups"), AT(moment, who), START, file("b"), EVENTS(80)]
    for outcome in simulated(*story, START, BARRIER, seeds=16, keep_epochs=2, derived_view=True):
        assert outcome.views == {"copy", "groups", "rows"}


@pytest.mark.parametrize("who", few([KILL, CRASH("coordinator"), CRASH("materializer")], KILL), ids=repr)
@pytest.mark.parametrize("moment", few(["before view", "before commit", "after commit"], "before commit"))
def test_the_gate_opens_for_what_is_right_or_released_whoever_dies(
    simulated: Simulated, who: Step, moment: str
) -> None:
    wrong = [START, CAUGHT_UP, *(file(name) for name in "abcdef"), AT(moment, who), START, CAUGHT_UP]
    released = [ASK(ReleaseCommand()), ANSWERED, BARRIER, file("g"), AT(moment, who), START, CAUGHT_UP]
    corrected = [*(file(name, rows=1) for name in "abcdefg"), CAUGHT_UP]
    outcomes = simulated(*wrong, *released, *corrected, seeds=16, keep_epochs=2, on_change="replace", gate=True)
    assert all(outcome.gates[:4] == ("none", "open", "closed", "open") for outcome in outcomes)


def test_a_view_that_is_merged_is_judged_at_the_root(simulated: Simulated) -> None:
    more = [file("f", rows=8), file("k", rows=3), CAUGHT_UP, ON("b", CHANGE_VIEW("groups")), ON("b", START)]
    released = [ON("b", CAUGHT_UP), ON("b", ASK(ReleaseCommand())), ON("b", ANSWERED), ON("b", BARRIER)]
    merged = [*_MET, MERGE("b"), BRANCHED, START, CAUGHT_UP]
    for outcome in simulated(*_BEGUN, *more, *released, *merged, seeds=16, gate=True, **_WITH_BRANCHES):
        assert outcome.refusals == ()
        assert outcome.gates[-1] == "closed"


def test_starts_beside_a_living_a_frozen_and_a_dead_process_keep_the_promises(simulated: Simulated) -> None:
    starts = (START_IF_FREE, START_IF_FREE)
    frozen = (FREEZE, START_IF_FREE, SECONDS(30), THAW)
    simulated(file("a"), START, *starts, SECONDS(5), *frozen, KILL, *starts, SECONDS(30), seeds=100, is_contended=True)

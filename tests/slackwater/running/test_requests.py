"""Tests of the requests to a run: they outlive its attempts."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from actors.protocol.barrier import AllowRemovals, Mutation, Pause, Resume, Retry, Stop, Throttle
from actors.protocol.reports import ListProgress
from slackwater.running.attempt import Attempt
from state.errors import CommandRefusedError, NotFoundError, RunFailedError
from tests.slackwater.commands.bad_files import BAD, progress
from tests.slackwater.running.scripted_attempt import Requested, ScriptedAttempt, at_once, later


@pytest.fixture
def run(tmp_path: Path) -> Requested:
    return Requested(tmp_path / "root")


def test_every_attempt_begins_with_the_pause_and_the_throttle_and_no_more(run: Requested) -> None:
    slow = Throttle(files_per_second=2.0)
    run.requests.change_flow(Pause())
    assert not run.requests.settle(), "no attempt runs yet"
    run.requests.change_flow(slow)
    assert run.attempt(later).asked == [slow, Pause()]
    run.requests.end()
    second = run.attempt(later)
    assert second.asked == [slow, Pause()]
    run.requests.change_flow(Resume())
    run.requests.change_flow(Throttle())
    assert second.asked[2:] == [Resume(), Throttle()]
    run.requests.end()
    assert run.attempt(later).asked == []


def test_an_attempt_whose_plan_has_the_pause_and_the_throttle_is_told_what_has_changed_since(run: Requested) -> None:
    slow = Throttle(files_per_second=2.0)
    assert not run.requests.flow
    run.requests.change_flow(Pause())
    run.requests.change_flow(slow)
    planned = run.requests.flow
    assert planned == (Pause(), slow)
    assert run.attempt(later, planned).asked == []
    run.requests.end()
    run.requests.change_flow(Resume())
    assert run.attempt(later, planned).asked == [Resume()]


def test_a_run_that_is_to_stop_begins_an_attempt_with_that_alone(run: Requested) -> None:
    run.requests.change_flow(Pause())
    run.requests.stop()
    assert run.attempt(later).asked == [Stop()]


def test_settled_is_what_the_attempt_has_carried_out(run: Requested) -> None:
    run.attempt(at_once)
    run.requests.change_flow(Pause())
    assert run.requests.settle()


def test_what_an_attempt_does_not_live_to_carry_out_is_for_the_next(run: Requested) -> None:
    def dies(_: ScriptedAttempt, __: Mutation) -> None:
        run.requests.end()

    run.attempt(dies)
    run.requests.change_flow(Pause())
    assert not run.requests.settle()
    assert run.attempt(later).asked == [Pause()]


def test_a_dead_coordinator_does_not_lose_a_request(run: Requested) -> None:
    def is_dead(_: ScriptedAttempt, __: Mutation) -> None:
        raise RunFailedError("the coordinator died")

    run.attempt(is_dead)
    run.requests.change_flow(Pause())
    run.requests.end()
    assert run.attempt(later).asked == [Pause()]


def test_a_retry_puts_the_files_into_the_queue_and_says_how_many(run: Requested) -> None:
    run.bad.ended(BAD, progress("a"), progress("half", rows=4), progress("other", source="t"))
    attempt = run.attempt(at_once)
    assert run.requests.retry() == 2, "the pipeline that runs has no source t"
    (retry,) = attempt.asked
    assert isinstance(retry, Retry)
    assert sorted((each.path, each.rows_read, each.attempts) for each in retry.files) == [("a", 0, 1), ("half", 4, 1)]
    assert run.requests.take_retried() == {("s", "a"), ("s", "half")}
    assert run.requests.take_retried() == set()


def test_a_retry_that_an_attempt_did_not_commit_is_repeated_in_the_next(run: Requested) -> None:
    run.bad.ended(BAD, progress("a"))
    following: list[ScriptedAttempt] = []

    def dies(_: ScriptedAttempt, __: Mutation) -> None:
        run.requests.end()
        following.append(run.attempt(at_once))

    run.attempt(dies)
    assert run.requests.retry() == 1
    assert [type(each) for each in following[0].asked] == [Retry]


def test_a_retry_that_was_committed_and_not_told_is_not_repeated(run: Requested) -> None:
    run.bad.ended(BAD, progress("a"), progress("b"))
    following: list[ScriptedAttempt] = []

    def dies_after_the_commit(_: ScriptedAttempt, __: Mutation) -> None:
        run.bad.queued(progress("a"), progress("b"))
        again = progress("b")
        again.attempts += 1
        run.bad.ended(BAD, again)
        run.requests.end()
        following.append(run.attempt(at_once))

    run.attempt(dies_after_the_commit)
    assert run.requests.retry() == 2
    assert following[0].asked == [], "b is as bad as before: that was its retry"


def test_a_retry_is_refused_when_the_run_ends(run: Requested) -> None:
    run.bad.ended(BAD, progress("a"))

    def ends(_: ScriptedAttempt, __: Mutation) -> None:
        run.requests.end(for_good=True)

    run.attempt(ends)
    with pytest.raises(CommandRefusedError, match="stopping"):
        run.requests.retry()


def test_a_retry_takes_the_files_that_a_glob_names(run: Requested) -> None:
    run.bad.ended(BAD, progress("day=1/a"), progress("day=2/a"))
    attempt = run.attempt(at_once)
    assert run.requests.retry(file="day=1/*") == 1
    (retry,) = attempt.asked
    assert isinstance(retry, Retry) and [each.path for each in retry.files] == ["day=1/a"]


def test_what_cannot_be_retried_is_said(run: Requested) -> None:
    run.attempt(at_once)
    assert run.requests.retry() == 0
    with pytest.raises(NotFoundError, match="no source 't'; its sources are: s"):
        run.requests.retry("t")
    with pytest.raises(NotFoundError, match="no file x is quarantined"):
        run.requests.retry(file="x")


def test_a_rescaling_is_waited_for_across_attempts_and_every_attempt_begins_with_it(run: Requested) -> None:
    first = run.attempt(later)
    asking = threading.Thread(target=run.requests.rescale, args=(3, 3))
    asking.start()
    first.was_rescaled.wait(10)
    run.requests.end()
    assert run.requests.fetcher_bounds == (3, 3), "the next attempt is planned with it"
    second = ScriptedAttempt(run, later)
    second.rescale_meets = ScriptedAttempt.moves_vnodes
    run.requests.begin(cast(Attempt, second))
    asking.join(10)
    assert not asking.is_alive()
    assert set(second.rescalings) == {(3, 3)}


def test_without_a_rescaling_the_settings_count(run: Requested) -> None:
    assert run.requests.fetcher_bounds is None
    assert run.attempt(later).rescalings == []


def test_a_rescaling_of_a_run_that_ends_is_refused(run: Requested) -> None:
    run.requests.end(for_good=True)
    with pytest.raises(CommandRefusedError):
        run.requests.rescale(2, 2)


def pauses_removals(attempt: ScriptedAttempt, files: int = 7) -> ScriptedAttempt:
    lists = ListProgress("list-s", "s", paused_removals=files), ListProgress("list-t", "t")
    attempt.state = replace(attempt.state, lists=lists)
    return attempt


def test_paused_removals_are_allowed_for_their_sources_alone(run: Requested) -> None:
    attempt = pauses_removals(run.attempt(at_once))
    assert run.requests.allow_removals() == 7
    assert attempt.asked == [AllowRemovals(frozenset({"s"}))]
    pauses_removals(attempt, 0)
    assert run.requests.allow_removals("s") == 0
    assert len(attempt.asked) == 1, "nothing is paused"
    with pytest.raises(NotFoundError, match="no source 'x'"):
        run.requests.allow_removals("x")


def test_an_attempt_that_ends_before_it_allows_removals_refuses(run: Requested) -> None:
    def dies(_: ScriptedAttempt, __: Mutation) -> None:
        run.requests.end()

    pauses_removals(run.attempt(dies))
    with pytest.raises(CommandRefusedError, match="ask again when `status` shows the paused removals"):
        run.requests.allow_removals()

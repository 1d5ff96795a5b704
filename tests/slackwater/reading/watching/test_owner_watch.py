"""State of a run as a process sees it that has the root alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from slackwater.reading.watching.owner_watch import OwnerLife, OwnerWatch
from state.clock import ManualClock
from state.ownership.owner import Owner
from state.ownership.process_identity import ProcessIdentity
from tests.slackwater.reading.written_root import START

ELSEWHERE = Owner("a", "flights", ProcessIdentity("another-machine", 1), START, START, phase="running")


def test_a_run_is_silent_when_it_does_not_renew_itself_by_our_own_clock() -> None:
    clock = ManualClock(START)
    watch, owner = OwnerWatch(clock), ELSEWHERE
    assert watch.look(owner) == OwnerLife("unheard")
    for _ in range(10):
        clock.advance(6)
        owner = replace(owner, renewed_at=owner.renewed_at + timedelta(seconds=5))
        assert watch.look(owner) == OwnerLife("living")
    clock.advance(19)
    assert watch.look(owner) == OwnerLife("living", silent_s=19.0)
    clock.advance(2)
    assert watch.look(owner) == OwnerLife("silent", silent_s=21.0)
    assert watch.look(replace(owner, run_id="b")) == OwnerLife("living", took_over=True)


def test_at_the_first_look_a_run_counts_as_silent_only_after_a_minute() -> None:
    for seconds, state in ((-300, "unheard"), (50, "unheard"), (70, "silent")):
        watch = OwnerWatch(ManualClock(START + timedelta(seconds=seconds)))
        assert watch.look(ELSEWHERE).state == state
        assert watch.look(replace(ELSEWHERE, renewed_at=START + timedelta(seconds=5))).state == "living"


def test_a_run_that_has_ended_or_died_is_told_from_one_that_runs() -> None:
    watch, process = OwnerWatch(ManualClock(START)), ProcessIdentity.current()
    mine, dead = (replace(ELSEWHERE, process=each) for each in (process, replace(process, start=1)))
    found = [watch.look(owner) for owner in (None, mine, dead, replace(mine, released=True))]
    assert [(life.state, life.runs) for life in found] == [
        ("none", False),
        ("unheard", True),
        ("gone", False),
        ("ended", False),
    ]

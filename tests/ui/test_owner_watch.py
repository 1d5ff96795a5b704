"""Whether a run is alive, as somebody sees it who has the root alone."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta

import psutil

from slackwater.ui.owner_watch import OwnerWatch
from state.clock import ManualClock
from state.owner import Owner
from tests.reading.written_root import START

ELSEWHERE = Owner("a", "flights", "another-machine", 1, 0.0, START, START, phase="running")


def test_a_run_is_silent_when_it_does_not_renew_itself_by_our_own_clock() -> None:
    clock = ManualClock(START)
    watch, owner = OwnerWatch(clock), ELSEWHERE
    assert watch.state(owner) == "running"
    for _ in range(10):
        clock.advance(6)
        owner = replace(owner, renewed_at=owner.renewed_at + timedelta(seconds=5))
        assert watch.state(owner) == "running"
    clock.advance(19)
    assert watch.state(owner) == "running"
    clock.advance(2)
    assert watch.state(owner) == "silent"
    assert watch.state(replace(owner, run_id="b")) == "running"


def test_at_the_first_look_a_run_counts_as_silent_only_after_a_minute() -> None:
    for seconds, state in ((-300, "running"), (50, "running"), (70, "silent")):
        assert OwnerWatch(ManualClock(START + timedelta(seconds=seconds))).state(ELSEWHERE) == state


def test_a_run_that_has_ended_or_died_is_told_from_one_that_lives() -> None:
    watch, process = OwnerWatch(ManualClock(START)), psutil.Process()
    mine = replace(ELSEWHERE, host=os.uname().nodename, pid=process.pid, pid_started=process.create_time())
    assert watch.state(None) == "none"
    assert watch.state(mine) == "running"
    assert watch.state(replace(mine, pid_started=1.0)) == "dead"
    assert watch.state(replace(mine, released=True)) == "ended"

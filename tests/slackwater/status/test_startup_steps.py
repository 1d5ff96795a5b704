"""Tests of the steps of a start: the running ones, and the durations of the others."""

from __future__ import annotations

import pytest

from slackwater.status.run_status import StartupStep
from slackwater.status.startup_steps import StartupSteps
from state.clock import ManualClock


def test_steps_are_told_while_they_last_and_when_they_are_over() -> None:
    clock, told = ManualClock(), list[str]()
    steps = StartupSteps(clock, lambda: told.append(steps.waits_for()))
    with steps.step("Ray"):
        clock.advance(2.0)
        with steps.step("Java"):
            clock.advance(1.5)
            assert steps.all() == (StartupStep("Ray", 3.5, False), StartupStep("Java", 1.5, False))
    clock.advance(9.0)
    assert steps.all() == (StartupStep("Ray", 3.5, True), StartupStep("Java", 1.5, True))
    assert told == [
        "starting; waiting for Ray",
        "starting; waiting for Ray, Java",
        "starting; waiting for Ray",
        "",
    ]


def test_a_step_that_fails_is_not_done_and_its_repetition_counts() -> None:
    clock = ManualClock()
    steps = StartupSteps(clock, lambda: None)
    with pytest.raises(ValueError), steps.step("executor"):
        clock.advance(1.0)
        raise ValueError
    assert [step.done for step in steps.all()] == [False]
    with steps.step("executor"):
        clock.advance(4.0)
    assert steps.all() == (StartupStep("executor", 4.0, True),)


def test_steps_that_follow_each_other_end_with_the_next_and_continue_when_they_come_again() -> None:
    clock = ManualClock()
    steps, changed = StartupSteps(clock, lambda: None), list[bool]()
    for name, seconds in (("first listing", 1.0), ("first files", 2.0), ("first files", 3.0), ("first listing", 4.0)):
        changed.append(steps.move_to(name))
        clock.advance(seconds)
    assert steps.all() == (StartupStep("first listing", 5.0, False), StartupStep("first files", 5.0, True))
    assert changed == [True, True, False, True]
    assert steps.waits_for() == "starting; waiting for first listing"
    steps.move_to("")
    clock.advance(9.0)
    assert steps.all() == (StartupStep("first listing", 5.0, True), StartupStep("first files", 5.0, True))

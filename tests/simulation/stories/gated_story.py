"""Random stories in which views hold results back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from slackwater.commands.operations import ReleaseCommand
from tests.simulation.stories.addition import Addition, after_start
from tests.simulation.stories.scenario import Scenario
from tests.simulation.stories.steps import ASK, BARRIER, EVENTS, SECONDS, START, Step

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument


def _with_gate(scenario: Scenario, random: Random) -> Scenario:
    steps = list(scenario.story)
    if START in steps:
        for _ in range(random.choice((0, 1, 1, 2, 3))):
            at = after_start(steps, random)
            steps[at:at] = _release(random)
    return replace(scenario, story=tuple(steps), gate=True)


GATED_STORIES = Addition(_with_gate, share=0.15)


def _release(random: Random) -> list[Step]:
    wait = random.choice((EVENTS(random.choice((5, 40))), SECONDS(random.choice((1, 5))), BARRIER))
    return [wait, ASK(ReleaseCommand()), *random.choice(([], [BARRIER], [SECONDS(2)]))]

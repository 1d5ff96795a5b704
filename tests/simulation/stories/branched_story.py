"""Random stories with branches of the root."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.simulation.stories.addition import Addition, after_start, may_die
from tests.simulation.stories.features import CONTENDED, EPOCHS_EXPIRE, READERS_DIE, STARTED
from tests.simulation.stories.scenario import Scenario
from tests.simulation.stories.steps import (
    BARRIER,
    BRANCH,
    CRASH,
    DROP_BRANCH,
    EVENTS,
    KILL,
    KILL_USERS,
    SECONDS,
    START,
    Step,
    file,
)

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument


def _with_branches(scenario: Scenario, random: Random) -> Scenario:
    steps, source = list(scenario.story), scenario.sources[0]
    for _ in range(random.choice((1, 2, 3))):
        name = random.choice("bc")
        added: list[Step] = [
            file(f"{source}/branched", rows=2),
            BARRIER,
            BRANCH(name),
            *_moment(scenario, random),
        ]
        added += [BARRIER, *random.choice(([], [BRANCH(name)], [BRANCH(random.choice("bc"))]))]
        added += [file(f"{source}/after", rows=random.choice((1, 3))), BARRIER]
        added += random.choice(([], [DROP_BRANCH(name), *_moment(scenario, random), DROP_BRANCH(name)]))
        at = after_start(steps, random)
        steps[at:at] = added
    return replace(scenario, story=tuple(steps))


BRANCHED_STORIES = Addition(
    _with_branches, share=0.3, requires=(STARTED, EPOCHS_EXPIRE), excludes=(CONTENDED, READERS_DIE)
)


def _moment(scenario: Scenario, random: Random) -> list[Step]:
    waits = [EVENTS(random.choice((1, 3, 10, 30)))]
    deaths: list[list[Step]] = [[CRASH("coordinator")], [KILL, START]] if may_die(scenario) else []
    return [*waits, *random.choice([[], [], [KILL_USERS], [SECONDS(5)], *deaths])]

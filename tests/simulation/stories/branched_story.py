"""Random stories with branches of the root."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

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

_BRANCHED = 0.3


def with_branches(scenario: Scenario, random: Random) -> Scenario:
    """Adds branches to a share of the stories in which epochs expire; the others stay as they are.

    Args:
        scenario: a story.
        random: makes every choice; not the one that made the story.
    """
    steps, text = list(scenario.story), repr(scenario.story)
    may_be = scenario.keep_epochs is not None and START in steps and not scenario.is_contended
    if not may_be or "DEATH(" in text or random.random() >= _BRANCHED:
        return scenario
    may_die = "kills=" not in text
    source = scenario.sources[0]
    for _ in range(random.choice((1, 2, 3))):
        name = random.choice("bc")
        added: list[Step] = [
            file(f"{source}/branched", rows=2),
            BARRIER,
            BRANCH(name),
            *_moment(random, may_die=may_die),
        ]
        added += [BARRIER, *random.choice(([], [BRANCH(name)], [BRANCH(random.choice("bc"))]))]
        added += [file(f"{source}/after", rows=random.choice((1, 3))), BARRIER]
        added += random.choice(([], [DROP_BRANCH(name), *_moment(random, may_die=may_die), DROP_BRANCH(name)]))
        at = random.randint(steps.index(START) + 1, len(steps))
        steps[at:at] = added
    return replace(scenario, story=tuple(steps))


def _moment(random: Random, *, may_die: bool) -> list[Step]:
    waits = [EVENTS(random.choice((1, 3, 10, 30)))]
    deaths: list[list[Step]] = [[CRASH("coordinator")], [KILL, START]] if may_die else []
    return [*waits, *random.choice([[], [], [KILL_USERS], [SECONDS(5)], *deaths])]

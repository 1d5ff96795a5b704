"""Random stories in which a view takes the place of another one of its name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.simulation.stories.addition import Addition, after_start, may_die
from tests.simulation.stories.features import CONTENDED, READERS_DIE, STARTED
from tests.simulation.stories.scenario import Scenario
from tests.simulation.stories.steps import (
    AT,
    BARRIER,
    CHANGE_VIEW,
    CRASH,
    EVENTS,
    FILTER_VIEW,
    KILL,
    SECONDS,
    START,
    STOP,
    STOPPED,
    VIEW_COMMIT,
    Step,
    file,
)

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

_MOMENTS = ("before view", "after view", "before commit", "after commit")


def _with_changed_views(scenario: Scenario, random: Random) -> Scenario:
    steps = [*scenario.story]
    for _ in range(random.choice((1, 2))):
        at = after_start(steps, random)
        steps[at:at] = _change(scenario, random)
    return replace(scenario, story=tuple(steps))


CHANGED_STORIES = Addition(_with_changed_views, share=0.06, requires=(STARTED,), excludes=(CONTENDED, READERS_DIE))


def _change(scenario: Scenario, random: Random) -> list[Step]:
    change = random.choice((FILTER_VIEW, FILTER_VIEW, CHANGE_VIEW))("groups")
    steps = [change, *random.choice(([STOP, STOPPED, START], [KILL, START], [START]))]
    deaths = [AT(random.choice(_MOMENTS), random.choice((KILL, CRASH("materializer"), CRASH("coordinator"))))]
    lost = VIEW_COMMIT(random.choice(("lost", "unanswered")))
    steps += random.choice(([lost], deaths if may_die(scenario) else [], [], []))
    steps += random.choice(([EVENTS(random.choice((10, 80)))], [SECONDS(random.choice((1, 20)))], [BARRIER]))
    more = file(f"{scenario.sources[0]}/changed", rows=random.choice((1, 3)))
    return [*steps, *random.choice(([], [more], [more, BARRIER])), *random.choice(([], [KILL, START]))]

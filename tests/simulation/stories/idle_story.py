"""Random stories in which sources are idle."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.simulation.stories.addition import Addition, after_start, may_die
from tests.simulation.stories.features import CLOSING, CONTENDED, IDLE, READERS_DIE, STARTED
from tests.simulation.stories.scenario import Scenario
from tests.simulation.stories.steps import BARRIER, CRASH, EVENTS, KILL, SECONDS, START, Step, fresh

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

_IDLE_S = (20.0, 60.0)
_AGO = (0.0, 0.0, 0.1, 0.5, 1.2, 3.0)
_WHO = ("coordinator", "dispatcher", "merger", "materializer", "fetch-0")


def _with_idle_sources(scenario: Scenario, random: Random) -> Scenario:
    steps, idle_s = [*scenario.story], random.choice(_IDLE_S)
    crashes = may_die(scenario) and not READERS_DIE.is_in(scenario)
    for number in range(random.choice((1, 2, 3))):
        at = after_start(steps, random)
        ago_s = idle_s * random.choice(_AGO)
        added: list[Step] = [fresh(f"{scenario.sources[0]}/fresh{number}", rows=random.choice((1, 3)), ago_s=ago_s)]
        added += random.choice(([BARRIER], [EVENTS(random.choice((3, 30)))], []))
        added += [random.choice((CRASH(random.choice(_WHO)), KILL))] if crashes and random.random() < 0.3 else []
        added += [SECONDS(idle_s * random.choice((0.4, 0.9, 1.1, 2.0)))]
        steps[at:at] = added + ([START] if KILL in added else [])
    return replace(scenario, story=tuple(steps), idle_s=idle_s)


IDLE_STORIES = Addition(_with_idle_sources, share=0.4, feature=IDLE, requires=(STARTED, CLOSING), excludes=(CONTENDED,))

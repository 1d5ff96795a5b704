"""Random stories in which sources are idle."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.simulation.stories.scenario import Scenario
from tests.simulation.stories.steps import BARRIER, CRASH, EVENTS, KILL, SECONDS, START, Step, fresh

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

_IDLE = 0.4
_IDLE_S = (20.0, 60.0)
_AGO = (0.0, 0.0, 0.1, 0.5, 1.2, 3.0)
_WHO = ("coordinator", "dispatcher", "merger", "materializer", "fetch-0")


def with_idle_sources(scenario: Scenario, random: Random) -> Scenario:
    """Makes the sources idle in a share of the stories with windows that close; the others stay as they are.

    Args:
        scenario: a story.
        random: makes every choice; not the one that made the story.
    """
    text = repr(scenario.story)
    goes_on = not scenario.clock_stands and not scenario.is_contended and "CLOCK(" not in text
    if not (scenario.closing and goes_on) or START not in scenario.story or random.random() >= _IDLE:
        return scenario
    steps, idle_s = [*scenario.story], random.choice(_IDLE_S)
    may_die = "kills=" not in text and "DEATH(" not in text
    for number in range(random.choice((1, 2, 3))):
        at = random.randint(steps.index(START) + 1, len(steps))
        ago_s = idle_s * random.choice(_AGO)
        added: list[Step] = [fresh(f"{scenario.sources[0]}/fresh{number}", rows=random.choice((1, 3)), ago_s=ago_s)]
        added += random.choice(([BARRIER], [EVENTS(random.choice((3, 30)))], []))
        added += [random.choice((CRASH(random.choice(_WHO)), KILL))] if may_die and random.random() < 0.3 else []
        added += [SECONDS(idle_s * random.choice((0.4, 0.9, 1.1, 2.0)))]
        steps[at:at] = added + ([START] if KILL in added else [])
    return replace(scenario, story=tuple(steps), idle_s=idle_s)

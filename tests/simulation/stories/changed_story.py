"""Random stories in which a view takes the place of another one of its name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

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

_CHANGED = 0.06
_MOMENTS = ("before view", "after view", "before commit", "after commit")


def with_changed_views(scenario: Scenario, random: Random) -> Scenario:
    """Changes the definition of a view in a share of the stories; the others stay as they are.

    Args:
        scenario: a story.
        random: makes every choice; not the one that made the story.
    """
    text = repr(scenario.story)
    is_apart = scenario.is_contended or "DEATH(" in text
    if START not in scenario.story or is_apart or random.random() >= _CHANGED:
        return scenario
    steps = [*scenario.story]
    for _ in range(random.choice((1, 2))):
        at = random.randint(steps.index(START) + 1, len(steps))
        steps[at:at] = _change(scenario, random, may_die="kills=" not in text)
    return replace(scenario, story=tuple(steps))


def _change(scenario: Scenario, random: Random, *, may_die: bool) -> list[Step]:
    change = random.choice((FILTER_VIEW, FILTER_VIEW, CHANGE_VIEW))("groups")
    steps = [change, *random.choice(([STOP, STOPPED, START], [KILL, START], [START]))]
    deaths = [AT(random.choice(_MOMENTS), random.choice((KILL, CRASH("materializer"), CRASH("coordinator"))))]
    steps += random.choice(([VIEW_COMMIT(random.choice(("lost", "unanswered")))], deaths if may_die else [], [], []))
    steps += random.choice(([EVENTS(random.choice((10, 80)))], [SECONDS(random.choice((1, 20)))], [BARRIER]))
    more = file(f"{scenario.sources[0]}/changed", rows=random.choice((1, 3)))
    return [*steps, *random.choice(([], [more], [more, BARRIER])), *random.choice(([], [KILL, START]))]

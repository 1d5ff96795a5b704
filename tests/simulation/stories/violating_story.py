"""Random stories in which the store of the sources violates its contract."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.simulation.stories.scenario import Scenario
from tests.simulation.stories.steps import START, Step, file, phantom, repeat, stale

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

_VIOLATING, _VIOLATING_WITH_FILES = 0.02, 0.15


def with_violations(scenario: Scenario, random: Random) -> Scenario:
    """Lets the store answer wrongly in a share of the stories: it repeats, it is stale, it deletes nothing.

    Args:
        scenario: a story.
        random: makes every choice; not the one that made the story.
    """
    share = _VIOLATING if scenario.after is None else _VIOLATING_WITH_FILES
    # Changed files end a run with on_change="fail", and readings of an old version look like that.
    may_be = START in scenario.story and not scenario.on_lance and scenario.on_change != "fail"
    if not may_be or random.random() >= share:
        return scenario
    steps = list(scenario.story)
    for _ in range(random.choice((1, 2, 3))):
        at = random.randint(steps.index(START), len(steps))
        steps[at:at] = _violation(scenario, random)
    return replace(scenario, story=tuple(steps))


def _violation(scenario: Scenario, random: Random) -> list[Step]:
    path = f"{scenario.sources[0]}/violated"
    number = random.choice((1, 1, 3))
    if scenario.after is not None and random.random() < 0.5:
        return [phantom(number), file(path, rows=2)]
    if scenario.on_change == "ignore":  # a version that was handed on and not read is not read later
        return [repeat(number)]
    return random.choice(([repeat(number)], [file(path, rows=1), stale(number), file(path, rows=3)]))

"""Random stories in which the store of the sources violates its contract."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.simulation.stories.addition import Addition
from tests.simulation.stories.features import FAILS, FILE_WORK, ON_LANCE, STARTED
from tests.simulation.stories.scenario import Scenario
from tests.simulation.stories.steps import START, Step, file, phantom, repeat, stale

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument


def _with_violations(scenario: Scenario, random: Random) -> Scenario:
    """The store repeats objects, returns old versions, or acknowledges deletions that it does not execute."""
    steps = list(scenario.story)
    for _ in range(random.choice((1, 2, 3))):
        at = random.randint(steps.index(START), len(steps))
        steps[at:at] = _violation(scenario, random)
    return replace(scenario, story=tuple(steps))


VIOLATING_STORIES = Addition(
    _with_violations,
    share=0.02,
    shares_with=((FILE_WORK, 0.15),),
    requires=(STARTED,),
    # Changed files end a run with on_change="fail", and readings of an old version look like that.
    excludes=(ON_LANCE, FAILS),
)


def _violation(scenario: Scenario, random: Random) -> list[Step]:
    path = f"{scenario.sources[0]}/violated"
    number = random.choice((1, 1, 3))
    if scenario.after is not None and random.random() < 0.5:
        return [phantom(number), file(path, rows=2)]
    if scenario.on_change == "ignore":  # a version that was handed on and not read is not read later
        return [repeat(number)]
    return random.choice(([repeat(number)], [file(path, rows=1), stale(number), file(path, rows=3)]))

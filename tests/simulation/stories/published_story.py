"""Random stories in which tables follow views."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.simulation.stories.addition import Addition, after_start, may_die
from tests.simulation.stories.features import BRANCHES, FILE_WORK, GATE, ON_LANCE, READERS_DIE, STARTED
from tests.simulation.stories.scenario import Scenario
from tests.simulation.stories.steps import (
    AT,
    BARRIER,
    CRASH_PUBLICATIONS,
    CUT_TABLE,
    EVENTS,
    KILL,
    SECONDS,
    SPOIL_TABLE,
    START,
    TABLES_DOWN,
    Step,
    file,
)

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

_MOMENTS = ("before publish", "after publish")


def _with_publications(scenario: Scenario, random: Random) -> Scenario:
    views = random.choice((("rows",), ("groups",), ("rows", "groups")))
    steps = list(scenario.story)
    for _ in range(random.choice((1, 2, 3))):
        at = after_start(steps, random)
        steps[at:at] = _fault(scenario, random, random.choice(views))
    return replace(scenario, story=tuple(steps), publishes=views)


PUBLISHED_STORIES = Addition(
    _with_publications,
    share=0.04,
    shares_with=((FILE_WORK, 0.5), (GATE, 0.5)),
    requires=(STARTED,),
    excludes=(ON_LANCE, BRANCHES, READERS_DIE),
)


def _fault(scenario: Scenario, random: Random, view: str) -> list[Step]:
    path = f"{scenario.sources[0]}/published"
    faults: list[list[Step]] = [
        [TABLES_DOWN(random.choice((5, 40, 200)))],
        [CUT_TABLE(view, random.choice((1, 3)))],
        [CRASH_PUBLICATIONS],
        [AT(random.choice(_MOMENTS), CRASH_PUBLICATIONS)],
    ]
    faults += [[AT(random.choice(_MOMENTS), KILL), SECONDS(2), START]] * 2 if may_die(scenario) else []
    faults += [[SPOIL_TABLE(view)]] if random.random() < 0.3 else []
    wait = random.choice((BARRIER, EVENTS(random.choice((5, 40))), SECONDS(random.choice((1, 12)))))
    return [*random.choice(faults), file(path, rows=random.choice((1, 3))), wait]

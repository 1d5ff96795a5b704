"""Random stories in which places overlap for a while, and runs that end while a table is behind."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from slackwater.plugins.after_commit.actions import Move
from tests.simulation.stories.addition import Addition, after_start, may_die
from tests.simulation.stories.features import PLACES
from tests.simulation.stories.scenario import Scenario
from tests.simulation.stories.steps import (
    AT,
    BARRIER,
    EVENTS,
    KILL,
    SECONDS,
    START,
    STOP,
    STOPPED,
    SUSPEND,
    TABLES_DOWN,
    Step,
    file,
    link,
    unlink,
)

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

_MOMENTS = ("before copy", "after copy", "after delete", "before publish", "after publish")


def _with_overlaps(scenario: Scenario, random: Random) -> Scenario:
    steps = list(scenario.story)
    for _ in range(random.choice((1, 1, 2))):
        at = after_start(steps, random)
        steps[at:at] = _news(scenario, random)
    return replace(scenario, story=tuple(steps))


OVERLAPPING_STORIES = Addition(_with_overlaps, share=0.25, requires=(PLACES,))


def _news(scenario: Scenario, random: Random) -> list[Step]:
    path = f"{scenario.sources[0]}/overlapping"
    wait = [random.choice((BARRIER, EVENTS(random.choice((5, 40))), SECONDS(random.choice((12, 60)))))]
    if scenario.publishes and may_die(scenario) and random.random() < 0.3:
        return [TABLES_DOWN(random.choice((20, 200))), file(path, rows=2), *wait, STOP, STOPPED, START]
    overlap = _link(scenario, random)
    moment = random.choice(_MOMENTS)
    begins = random.choice(([overlap], [AT(moment, overlap)], [AT(moment, overlap), AT(moment, SUSPEND(10))]))
    ends = random.choice(([unlink], [unlink], []))
    refused = [KILL, START, *wait, unlink, START] if may_die(scenario) and random.random() < 0.2 else []
    return [*begins, file(path, rows=2), *wait, *refused, SECONDS(random.choice((1, 12, 60))), *ends]


def _link(scenario: Scenario, random: Random) -> Step:
    tables = [f"tables/{view}" for view in scenario.publishes]
    sources = [f"sources/{source}" for source in scenario.sources]
    places = [*tables, *tables]
    if isinstance(scenario.after, Move):
        places += [f"archive/{source}" for source in scenario.sources]
    if scenario.after is not None:
        places += sources
    place = random.choice(places)
    target = random.choice([each for each in ("root", *sources, *tables) if each != place])
    return link(place, target + random.choice(("", "/x")))

"""Random stories in which tables follow views."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

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

_PUBLISHED, _PUBLISHED_WITH_FILES = 0.04, 0.5
_MOMENTS = ("before publish", "after publish")


def with_publications(scenario: Scenario, random: Random) -> Scenario:
    """Lets tables follow views in a share of the stories; the others stay as they are.

    Args:
        scenario: a story.
        random: makes every choice; not the one that made the story.
    """
    text = repr(scenario.story)
    share = _PUBLISHED if scenario.after is None and not scenario.gate else _PUBLISHED_WITH_FILES
    may_be = START in scenario.story and not scenario.on_lance and "BRANCH(" not in text and "DEATH(" not in text
    if not may_be or random.random() >= share:
        return scenario
    views = random.choice((("rows",), ("groups",), ("rows", "groups")))
    steps = list(scenario.story)
    for _ in range(random.choice((1, 2, 3))):
        at = random.randint(steps.index(START) + 1, len(steps))
        steps[at:at] = _fault(scenario, random, random.choice(views), may_die="kills=" not in text)
    return replace(scenario, story=tuple(steps), publishes=views)


def _fault(scenario: Scenario, random: Random, view: str, *, may_die: bool) -> list[Step]:
    path = f"{scenario.sources[0]}/published"
    faults: list[list[Step]] = [
        [TABLES_DOWN(random.choice((5, 40, 200)))],
        [CUT_TABLE(view, random.choice((1, 3)))],
        [CRASH_PUBLICATIONS],
        [AT(random.choice(_MOMENTS), CRASH_PUBLICATIONS)],
    ]
    faults += [[AT(random.choice(_MOMENTS), KILL), SECONDS(2), START]] * 2 if may_die else []
    faults += [[SPOIL_TABLE(view)]] if random.random() < 0.3 else []
    wait = random.choice((BARRIER, EVENTS(random.choice((5, 40))), SECONDS(random.choice((1, 12)))))
    return [*random.choice(faults), file(path, rows=random.choice((1, 3))), wait]

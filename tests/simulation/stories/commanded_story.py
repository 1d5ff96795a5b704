"""Random stories with further commands of users."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from actors.protocol.barrier import Pause, Resume
from slackwater.commands.operations import ForgetCommand, RetryViewCommand
from tests.simulation.stories.scenario import Scenario
from tests.simulation.stories.steps import (
    ASK,
    CLEAR_QUARANTINE,
    CRASH,
    RECOVERED,
    SECONDS,
    START,
    Step,
    file,
)

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

_CLEARED, _PAUSED, _FAILED, _ANEW = 0.3, 0.03, 0.08, 0.2
_BAD = ("bad=", "bad_row=")
_WHO = ("coordinator", "dispatcher", "merger", "materializer", "fetch-0")


def with_commands(scenario: Scenario, random: Random) -> Scenario:
    """Adds commands to a share of the stories; the others stay as they are.

    Args:
        scenario: a story.
        random: makes every choice; not the one that made the story.

    Returns:
        The same, or with clearings of the quarantine, a pause over a recovery, a view that fails, or one with closed
        windows that is built anew.
    """
    steps, text = list(scenario.story), repr(scenario.story)
    if any(each in text for each in _BAD) and random.random() < _CLEARED:
        for _ in range(random.choice((1, 2, 3))):
            steps.insert(random.randint(1, len(steps)), CLEAR_QUARANTINE)
    if START in steps and not scenario.is_contended and "DEATH(" not in text and random.random() < _PAUSED:
        at = random.randint(steps.index(START) + 1, len(steps))
        steps[at:at] = _pause(scenario, random)
    if START in steps and not scenario.is_contended and random.random() < _FAILED:
        at = random.randint(steps.index(START) + 1, len(steps))
        steps[at:at] = _failing_view(scenario, random)
    if START in steps and scenario.closing and random.random() < _ANEW:
        at = random.randint(steps.index(START) + 1, len(steps))
        steps[at:at] = [SECONDS(random.choice((1, 20))), ASK(RetryViewCommand(view="closed"))]
    return replace(scenario, story=tuple(steps))


def _failing_view(scenario: Scenario, random: Random) -> list[Step]:
    """A view fails over a row of a file; the file is corrected or forgotten, or is not, and the view is retried."""
    views = ["rows", "groups", *(["late"] if scenario.backfill else []), *(["full"] if scenario.full_view else [])]
    views += [*([] if scenario.join is None else ["pairs"]), *(["closed"] if scenario.closing else [])]
    view = random.choice(views)
    source = random.choice(scenario.sources) if view not in ("groups", "closed") else scenario.sources[0]
    path = "failing" if len(scenario.sources) == 1 else f"{source}/failing"
    steps: list[Step] = [file(path, rows=3, kill_row=random.choice((0, 1, 2)), fails=view)]
    cures = [[], [file(path, rows=2)]]
    if scenario.stores_rows and scenario.order is None:
        cures += [[ASK(ForgetCommand(file="failing"))]] * 2
    for _ in range(random.choice((0, 1, 1, 2))):
        steps += [SECONDS(random.choice((1, 5, 20))), *random.choice(cures), SECONDS(random.choice((1, 20)))]
        steps.append(ASK(RetryViewCommand(view=view)))
        steps += [CRASH(random.choice(_WHO))] if random.random() < 0.3 and "DEATH(" not in repr(scenario.story) else []
    return steps


def _pause(scenario: Scenario, random: Random) -> list[Step]:
    path = "paused" if len(scenario.sources) == 1 else f"{random.choice(scenario.sources)}/paused"
    death = [file(path, rows=3), CRASH(random.choice(_WHO)), RECOVERED]
    return [ASK(Pause()), SECONDS(3), *death, SECONDS(random.choice((2, 20))), ASK(Resume())]

"""Random stories with further commands of users."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from actors.protocol.barrier import Pause, Resume
from slackwater.commands.operations import ForgetCommand, RetryViewCommand
from tests.simulation.stories.addition import Addition, after_start
from tests.simulation.stories.features import BAD_RECORDS, CLOSING, CONTENDED, READERS_DIE, STARTED
from tests.simulation.stories.scenario import Scenario
from tests.simulation.stories.steps import (
    ASK,
    CLEAR_QUARANTINE,
    CRASH,
    RECOVERED,
    SECONDS,
    Step,
    file,
)

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

_WHO = ("coordinator", "dispatcher", "merger", "materializer", "fetch-0")


def _with_clearings(scenario: Scenario, random: Random) -> Scenario:
    steps = list(scenario.story)
    for _ in range(random.choice((1, 2, 3))):
        steps.insert(random.randint(1, len(steps)), CLEAR_QUARANTINE)
    return replace(scenario, story=tuple(steps))


def _with_steps(added: Callable[[Scenario, Random], list[Step]], scenario: Scenario, random: Random) -> Scenario:
    steps = list(scenario.story)
    at = after_start(steps, random)
    steps[at:at] = added(scenario, random)
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
        steps += [CRASH(random.choice(_WHO))] if random.random() < 0.3 and not READERS_DIE.is_in(scenario) else []
    return steps


def _pause(scenario: Scenario, random: Random) -> list[Step]:
    path = "paused" if len(scenario.sources) == 1 else f"{random.choice(scenario.sources)}/paused"
    death = [file(path, rows=3), CRASH(random.choice(_WHO)), RECOVERED]
    return [ASK(Pause()), SECONDS(3), *death, SECONDS(random.choice((2, 20))), ASK(Resume())]


def _rebuilt_windows(scenario: Scenario, random: Random) -> list[Step]:
    return [SECONDS(random.choice((1, 20))), ASK(RetryViewCommand(view="closed"))]


COMMANDED_STORIES = (
    Addition(_with_clearings, share=0.3, requires=(BAD_RECORDS,)),
    Addition(partial(_with_steps, _pause), share=0.03, requires=(STARTED,), excludes=(CONTENDED, READERS_DIE)),
    Addition(partial(_with_steps, _failing_view), share=0.08, requires=(STARTED,), excludes=(CONTENDED,)),
    Addition(partial(_with_steps, _rebuilt_windows), share=0.2, requires=(STARTED, CLOSING)),
)

"""Random stories in which files are deleted or moved after the commit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from slackwater.plugins.after_commit.actions import Delete, Move
from tests.simulation.stories.addition import Addition, after_start, may_die
from tests.simulation.stories.features import BRANCHES, FILE_WORK, IDLE, ON_LANCE, PINS, READERS_DIE, STARTED
from tests.simulation.stories.scenario import Scenario
from tests.simulation.stories.steps import (
    ADD_VIEW,
    AT,
    BARRIER,
    CHANGE_VIEW,
    CLOCK,
    CRASH,
    DROP_VIEW,
    EVENTS,
    FREEZE,
    KILL,
    LATER,
    SECONDS,
    STAND,
    START,
    STOP,
    STOPPED,
    SUSPEND,
    THAW,
    Step,
    again,
    archived,
    cut,
    file,
    mount,
    refuse,
    unmount,
)

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

_KEEP_S = (0.0, 0.0, 5.0, 60.0, 600.0)
_ARCHIVE = "s3://simulated/archive"
_MOMENTS = ("before delete", "after delete", "before copy", "after copy", "before note", "after note", "before read")
_JUMPS_S = (-86_400, -3_600, 3_600, 86_400)


def _with_file_work(scenario: Scenario, random: Random) -> Scenario:
    keep_s = random.choice(_KEEP_S)
    after = Delete(keep_s=keep_s) if random.random() < 0.6 else Move(_ARCHIVE, keep_s=keep_s)
    steps = list(scenario.story)
    may_set_clock = not (IDLE.is_in(scenario) or PINS.is_in(scenario))
    for _ in range(random.choice((1, 2, 2, 3))):
        at = after_start(steps, random)
        steps[at:at] = _news(scenario, random, keep_s, may_set_clock=may_set_clock)
    bucket_clock = random.random() < 0.5
    return replace(scenario, story=tuple(steps), after=after, bucket_clock=bucket_clock)


AFTER_COMMIT_STORIES = Addition(
    _with_file_work,
    share=0.15,
    shares_with=((BRANCHES, 0.5),),
    feature=FILE_WORK,
    requires=(STARTED,),
    excludes=(ON_LANCE, READERS_DIE),
)


def _news(scenario: Scenario, random: Random, keep_s: float, *, may_set_clock: bool) -> list[Step]:
    """A file comes, something happens while it waits, and time passes."""
    path = f"{scenario.sources[0]}/kept{random.randrange(3)}"
    steps: list[Step] = [file(path, rows=random.choice((1, 3))), *_wait(random)]
    kind = random.random()
    if kind < 0.25 and may_set_clock and keep_s:
        change = CLOCK(random.choice(_JUMPS_S))
        restart = [KILL, change, START] if may_die(scenario) and random.random() < 0.3 else [change]
        return [*steps, SECONDS(12), *restart, SECONDS(keep_s * random.choice((0.4, 1.1)) + 15)]
    if kind < 0.5:
        return [*steps, *_changed_views(path, random, keep_s)]
    kinds = [_changed_file, _refused, *([_death] * 2 if may_die(scenario) else [])]
    steps += random.choice(kinds)(path, random)
    if may_set_clock and random.random() < 0.4:
        jump = random.choice((CLOCK, CLOCK, SUSPEND, STAND))
        by_s = random.choice(_JUMPS_S)
        steps.insert(random.randint(0, len(steps)), jump(by_s if jump is CLOCK else abs(by_s)))
    return [*steps, SECONDS(keep_s * random.choice((0.4, 1.1, 2.5)) + random.choice((1, 15)))]


def _wait(random: Random) -> list[Step]:
    return [random.choice((BARRIER, EVENTS(random.choice((5, 40))), SECONDS(random.choice((1, 12)))))]


def _changed_file(path: str, random: Random) -> list[Step]:
    """A file is rewritten while it waits, or comes back after it was removed."""
    if random.random() < 0.25:
        return [
            mount(random.choice(("m", "b/m"))),
            file(f"{path}-too", rows=2),
            SECONDS(25),
            *([unmount] * random.choice((0, 1))),
        ]
    change = random.choice((file(path, rows=2), again(path), again(path)))
    return [*random.choice(([AT(random.choice(_MOMENTS), change)], [SECONDS(random.choice((1, 15))), change]))]


def _refused(path: str, random: Random) -> list[Step]:
    """The bucket or the archive refuses."""
    return [random.choice((refuse(random.choice((1, 3))), cut(random.choice((1, 2))), archived(path)))]


def _changed_views(path: str, random: Random, keep_s: float) -> list[Step]:
    """Views are added or changed, in this process or in the next one."""
    kind = random.random()
    if kind < 0.35:
        name = random.choice(("extra", "more"))
        return [ADD_VIEW(name), *random.choice(([], [*_wait(random), DROP_VIEW(name)]))]
    change = random.choice((CHANGE_VIEW("groups"), ADD_VIEW("extra")))
    ended = random.choice(([STOP, STOPPED], [KILL]))
    if kind < 0.7:
        return [*ended, LATER(1.2 * keep_s), change, START, *_wait(random), SECONDS(12)]
    return [*ended, file(f"{path}-too", rows=2), change, START, *_wait(random), *random.choice(([], [KILL, START]))]


def _death(path: str, random: Random) -> list[Step]:
    """The process dies or stands still between two steps of the work on files."""
    moment = random.choice(_MOMENTS)
    kind = random.random()
    if kind < 0.5:
        return [AT(moment, KILL), SECONDS(random.choice((1, 15))), START]
    if kind < 0.75:
        return [AT(moment, FREEZE), SECONDS(random.choice((1, 15))), START, *_wait(random), THAW]
    return [AT(moment, CRASH(random.choice(("coordinator", "materializer", "fetch-0"))))]

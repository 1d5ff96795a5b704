"""Random stories that run on a branch, and merge it into its root."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.simulation.stories.addition import Addition, after_start, may_die
from tests.simulation.stories.features import CONTENDED, PINS, READERS_DIE, RUNNING_BRANCH, STARTED
from tests.simulation.stories.scenario import Scenario
from tests.simulation.stories.steps import (
    ADD_VIEW,
    AT,
    BARRIER,
    BRANCH,
    BRANCHED,
    CAUGHT_UP,
    CHANGE_VIEW,
    CLOCK,
    COMMIT,
    CRASH,
    DROP_BRANCH,
    EVENTS,
    FILTER_VIEW,
    KILL,
    KILL_USERS,
    MERGE,
    ON,
    SECONDS,
    START,
    START_IF_FREE,
    STOP,
    STOPPED,
    VIEW_COMMIT,
    Step,
    file,
)

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

_NAME = "m"
_WHO = ("coordinator", "dispatcher", "merger", "materializer", "fetch-0")
_MOMENTS = ("before view", "after view", "before commit", "after commit", "before tag", "after tag")


def _with_merge(scenario: Scenario, random: Random) -> Scenario:
    steps = [*scenario.story]
    at = after_start(steps, random)
    steps[at:at] = _MergedStory(scenario, random).steps()
    return replace(scenario, story=tuple(steps))


MERGED_STORIES = Addition(
    _with_merge, share=0.06, feature=RUNNING_BRANCH, requires=(STARTED,), excludes=(CONTENDED, READERS_DIE)
)


class _MergedStory:
    """The steps about one branch.

    Args:
        scenario: the story around them.
        random: makes every choice.
    """

    def __init__(self, scenario: Scenario, random: Random) -> None:
        self._scenario, self._random = scenario, random

    def steps(self) -> list[Step]:
        random = self._random
        begun = [self._file("early"), CAUGHT_UP, BRANCH(_NAME), BRANCHED, BRANCH(_NAME), BRANCHED]
        stands = [STOP, STOPPED] if random.random() < 0.4 else self._in_root()
        return [
            *begun,
            *stands,
            *self._on_branch(),
            *self._meeting(),
            STOP,
            STOPPED,
            *self._merge(),
            *random.choice(([], [START], [START, BARRIER])),
            *random.choice(([], [DROP_BRANCH(_NAME), BRANCHED], [self._file("late"), *self._merge()])),
        ]

    def _in_root(self) -> list[Step]:
        """The user changes a view of the root, too; with a clock that was set back, in epochs of the same numbers."""
        random = self._random
        if random.random() < 0.6:
            return []
        may_set_clock = not PINS.is_in(self._scenario) and random.random() < 0.5
        clock = [CLOCK(-3600)] if may_set_clock else []
        return [*clock, *random.choice(([ADD_VIEW("extra")], [FILTER_VIEW("groups"), STOP, STOPPED, START]))]

    def _meeting(self) -> list[Step]:
        """Root and branch read the same files, or one of them is ahead of the other."""
        random = self._random
        ends = [ON(_NAME, STOP), ON(_NAME, STOPPED)]
        kind = random.random()
        if kind < 0.15:
            return [ON(_NAME, CAUGHT_UP), *ends, self._file("ahead"), CAUGHT_UP]
        if kind < 0.3:
            return [CAUGHT_UP, STOP, STOPPED, self._file("ahead"), ON(_NAME, CAUGHT_UP)]
        return [CAUGHT_UP, ON(_NAME, CAUGHT_UP), *(ends if kind < 0.7 else [])]

    def _on_branch(self) -> list[Step]:
        """The user changes views, and runs them on the branch, where processes die."""
        random = self._random
        changes = [
            random.choice((CHANGE_VIEW, FILTER_VIEW))("groups"),
            ADD_VIEW("extra"),
            ADD_VIEW("more"),
            ADD_VIEW("joined"),
        ]
        changes += [CHANGE_VIEW("nested")] if self._scenario.nested_view else []
        random.shuffle(changes)
        found = [ON(_NAME, change) for change in changes[: random.choice((1, 2, 5))]]
        first = random.randint(0, len(found))
        steps = [*found[:first], ON(_NAME, START), *found[first:]]
        for _ in range(random.choice((1, 2, 3))):
            steps += random.choice(([self._file("middle")], [ON(_NAME, BARRIER)], [SECONDS(random.choice((1, 20)))]))
            steps += [ON(_NAME, self._misfortune())] if random.random() < 0.5 else []
        return [*steps, ON(_NAME, START_IF_FREE)]

    def _misfortune(self) -> Step:
        random = self._random
        fates = [COMMIT("lost"), COMMIT("unanswered"), VIEW_COMMIT("lost"), VIEW_COMMIT("unanswered"), KILL, START]
        fates += map(CRASH, _WHO) if may_die(self._scenario) else ()
        return random.choice(fates)

    def _merge(self) -> list[Step]:
        """A merge, in half of all cases with a misfortune, after which it is repeated."""
        random = self._random
        if random.random() < 0.5:
            return [MERGE(_NAME), BRANCHED]
        kind = random.random()
        if kind < 0.5:
            cut = [AT(random.choice(_MOMENTS), random.choice((KILL_USERS, KILL_USERS, START))), MERGE(_NAME)]
        elif kind < 0.8:
            cut = [COMMIT(random.choice(("lost", "unanswered", "late"))), MERGE(_NAME)]
        else:
            cut = [VIEW_COMMIT(random.choice(("lost", "unanswered"))), MERGE(_NAME)]
        return [*cut, random.choice((BRANCHED, EVENTS(random.choice((1, 10))))), STOP, STOPPED, MERGE(_NAME), BRANCHED]

    def _file(self, name: str) -> Step:
        random = self._random
        return file(f"{random.choice(self._scenario.sources)}/{name}", rows=random.choice((1, 3)))

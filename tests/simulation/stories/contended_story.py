"""Random stories with several processes that contend for one root."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.simulation.stories.addition import Addition
from tests.simulation.stories.features import ON_LANCE, PINS
from tests.simulation.stories.scenario import Scenario
from tests.simulation.stories.steps import (
    AT,
    CLOCK,
    EVENTS,
    FREEZE,
    KILL,
    OWNER_SILENCE,
    OWNER_WRITE,
    POWER_CUT,
    SECONDS,
    START,
    START_IF_FREE,
    STOP,
    THAW,
    Step,
)
from tests.simulation.world.ownerships import OwnerFate

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

_FATES: tuple[OwnerFate, ...] = ("lost", "unanswered", "repeated", "late")
_MOMENTS = ("before look", "after look", "before owner", "after owner")
_STARTS = (START, START_IF_FREE, START_IF_FREE)


def _with_contenders(scenario: Scenario, random: Random) -> Scenario:
    return _ContendedStory(random).of(scenario)


CONTENDED_STORIES = Addition(_with_contenders, share=0.1, excludes=(ON_LANCE,))


class _ContendedStory:
    """Adds misfortunes of owners to a story.

    Args:
        random: makes every choice; not the one that made the story.
    """

    def __init__(self, random: Random) -> None:
        self._random = random

    def of(self, scenario: Scenario) -> Scenario:
        """The same with up to four misfortunes of the ownership of its root."""
        random, steps = self._random, list(scenario.story)
        self._may_set_clock = not PINS.is_in(scenario)
        for _ in range(random.choice((1, 2, 2, 4))):
            at = random.randint(0, len(steps))
            steps[at:at] = self._misfortune()
        return replace(scenario, story=tuple(steps), is_contended=True)

    def _misfortune(self) -> list[Step]:
        random = self._random
        kind = random.random()
        if kind < 0.2:
            return [self._start(), *self._start_sometimes(), *self._wait()]
        if kind < 0.35:
            return [KILL, *self._fault_sometimes(), START_IF_FREE, *self._start_sometimes(), *self._wait()]
        if kind < 0.5:
            frozen = [FREEZE, *self._wait(), self._start(), *self._wait()]
            return [self._sometime(FREEZE) if random.random() < 0.5 else FREEZE, *frozen[1:], THAW]
        if kind < 0.6:
            return [STOP, *self._wait(), self._start(), *self._start_sometimes()]
        if kind < 0.65:
            return [POWER_CUT, self._start(), *self._start_sometimes(), *self._wait()]
        if kind < 0.75 and self._may_set_clock:
            return [self._start(), EVENTS(random.choice((1, 5))), CLOCK(random.choice((-3600, 3600))), *self._wait()]
        if kind < 0.85:
            return [self._sometime(random.choice((KILL, START, START_IF_FREE))), *self._wait(), self._start()]
        return [*self._faults(), *self._wait(), *self._start_sometimes()]

    def _start(self) -> Step:
        return self._random.choice(_STARTS)

    def _start_sometimes(self) -> list[Step]:
        return [self._start()] if self._random.random() < 0.5 else []

    def _fault_sometimes(self) -> list[Step]:
        return self._faults() if self._random.random() < 0.3 else []

    def _faults(self) -> list[Step]:
        """Some of the next requests for `owner.json` fail; in one case so many that its owner looks dead."""
        random = self._random
        kind = random.random()
        if kind < 0.25:
            return [OWNER_SILENCE(random.choice((1, 2, 5)))]
        if kind < 0.35:
            return [OWNER_WRITE("lost") for _ in range(6)]
        return [OWNER_WRITE(random.choice(_FATES)) for _ in range(random.choice((1, 1, 2, 3)))]

    def _sometime(self, step: Step) -> Step:
        return AT(self._random.choice(_MOMENTS), step)

    def _wait(self) -> list[Step]:
        random = self._random
        kind = random.random()
        if kind < 0.2:
            return []
        if kind < 0.6:
            return [EVENTS(random.choice((5, 20, 80)))]
        return [SECONDS(random.choice((0.5, 5, 10, 30)))]

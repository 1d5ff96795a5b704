"""Additions: features that some random stories get."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.simulation.stories.features import KILLING_FILES, Feature
from tests.simulation.stories.steps import START, Step

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

    from tests.simulation.stories.scenario import Scenario


@dataclass(frozen=True)
class Addition:
    """A feature that a share of the random stories gets; the others stay as they are.

    Args:
        added: makes the scenario with the feature; the random numbers make every choice.
        share: of the stories that can have the feature, from 0 to 1.
        shares_with: other shares, of the stories that have such a feature already.
        feature: its own requirements hold, too; None for an addition that every scenario can have.
        requires: the features that a story must have already.
        excludes: the features that it must not have.
    """

    added: Callable[[Scenario, Random], Scenario]
    share: float
    shares_with: tuple[tuple[Feature, float], ...] = ()
    feature: Feature | None = None
    requires: tuple[Feature, ...] = ()
    excludes: tuple[Feature, ...] = ()

    def of(self, scenario: Scenario, random: Random) -> Scenario:
        """The scenario, with the feature in a share of all cases.

        Args:
            scenario: a story.
            random: not the one that made the story, so that stories without the feature stay the same.
        """
        is_fit = (
            (self.feature is None or self.feature.fits(scenario))
            and all(other.is_in(scenario) for other in self.requires)
            and not any(other.is_in(scenario) for other in self.excludes)
        )
        return self.added(scenario, random) if is_fit and random.random() < self._share(scenario) else scenario

    def _share(self, scenario: Scenario) -> float:
        return next((share for other, share in self.shares_with if other.is_in(scenario)), self.share)


def after_start(steps: list[Step], random: Random) -> int:
    """A random place in the story after its first start."""
    return random.randint(steps.index(START) + 1, len(steps))


def may_die(scenario: Scenario) -> bool:
    """True if actors may die by chance: such deaths, and a file that kills, together accuse the wrong file."""
    return not KILLING_FILES.is_in(scenario)

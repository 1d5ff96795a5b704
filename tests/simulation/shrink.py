"""From a story that breaks a promise to the shortest one that still does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any

from state.errors import SettingsError
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.simulation import Simulation
from tests.simulation.stories.scenario import Scenario

_ORDERS = 20


@dataclass(frozen=True)
class Failure:
    """A story, the seed of the order in which it was told, and the promise that it broke."""

    scenario: Scenario
    seed: int
    broken: PromiseBroken

    def __str__(self) -> str:
        return f"{self.broken}\n  simulate({self.scenario!r}, seed={self.seed})"


def failure_of(scenario: Scenario, seed: int) -> Failure | None:
    """What is wrong with a story told in one order; None if every promise holds."""
    try:
        Simulation(scenario, seed).run()
    except PromiseBroken as broken:
        return Failure(scenario, seed, broken)
    return None


def shrink(failure: Failure) -> Failure:
    """Leaves out whatever can be left out: greedily, again and again, until every further omission makes it hold.

    Only valid stories are told.  A shorter one takes other choices out of the same seed, so each is told in several
    orders.
    """
    shorter: Failure | None = failure
    while shorter is not None:
        failure = shorter
        shorter = next((found for each in _simpler(failure.scenario) if (found := _same(failure, each))), None)
    return failure


def _same(failure: Failure, scenario: Scenario) -> Failure | None:
    """How a simpler story breaks the same promise, if it does."""
    for seed in range(failure.seed, failure.seed + _ORDERS):
        found = failure_of(scenario, seed)
        if found is not None and found.broken.promise == failure.broken.promise:
            return found
    return None


def _simpler(scenario: Scenario) -> Iterator[Scenario]:
    """The valid stories with fewer steps, or with a setting at its default."""
    for changes in _omissions(scenario):
        with suppress(SettingsError):
            yield replace(scenario, **changes)


def _omissions(scenario: Scenario) -> Iterator[dict[str, Any]]:
    story = scenario.story
    for length in (len(story) // 2, len(story) // 4, 1):
        for at in range(0, len(story), length or 1):
            if length:
                yield {"story": (*story[:at], *story[at + length :])}
    for each in fields(Scenario):
        if each.name not in ("story", "sources") and getattr(scenario, each.name) != each.default:
            yield {each.name: each.default}

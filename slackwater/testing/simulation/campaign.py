"""Many seeds, one after the other or in several processes."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from random import Random  # noqa: TID251 - a seed becomes a story here

from slackwater.testing.simulation.shrink import failure_of
from slackwater.testing.simulation.stories.random_story import RandomStory
from slackwater.testing.simulation.stories.scenario import Scenario

_SEEDS_AT_ONCE = 50


def scenario_of(seed: int) -> Scenario:
    """The story of a seed: the same on every machine."""
    return RandomStory(Random(seed)).scenario()


def first_failing_seed(start: int, seeds: int) -> int | None:
    """The first of the seeds whose story breaks a promise."""
    return next((failing[0] for _, failing in failing_seeds(start, seeds) if failing), None)


def failing_seeds(start: int, seeds: int, jobs: int = 1) -> Iterator[tuple[int, list[int]]]:
    """Tells the stories of `seeds` seeds from `start` on.

    Args:
        start: the first seed.
        seeds: how many.
        jobs: processes that share the work.

    Yields:
        After each share of the seeds how many these were, and which of them broke a promise.
    """
    shares = [
        range(first, min(first + _SEEDS_AT_ONCE, start + seeds))
        for first in range(start, start + seeds, _SEEDS_AT_ONCE)
    ]
    if jobs == 1:
        yield from map(_failing, shares)
        return
    with ProcessPoolExecutor(jobs) as processes:
        yield from processes.map(_failing, shares)


def _failing(seeds: range) -> tuple[int, list[int]]:
    # A world is full of cycles; looking for them during a simulation costs a third of the time.
    gc.disable()
    try:
        return len(seeds), [seed for seed in seeds if failure_of(scenario_of(seed), seed) is not None]
    finally:
        gc.enable()

"""Many seeds, one after the other or in several processes."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from random import Random  # noqa: TID251 - a seed becomes a story here

from tests.simulation.shrink import failure_of
from tests.simulation.stories.addition import Addition
from tests.simulation.stories.after_commit_story import AFTER_COMMIT_STORIES
from tests.simulation.stories.branched_story import BRANCHED_STORIES
from tests.simulation.stories.changed_story import CHANGED_STORIES
from tests.simulation.stories.commanded_story import COMMANDED_STORIES
from tests.simulation.stories.contended_story import CONTENDED_STORIES
from tests.simulation.stories.gated_story import GATED_STORIES
from tests.simulation.stories.idle_story import IDLE_STORIES
from tests.simulation.stories.merged_story import MERGED_STORIES
from tests.simulation.stories.overlapping_story import OVERLAPPING_STORIES
from tests.simulation.stories.published_story import PUBLISHED_STORIES
from tests.simulation.stories.random_story import RandomStory
from tests.simulation.stories.scenario import Scenario
from tests.simulation.stories.violating_story import VIOLATING_STORIES

_SEEDS_AT_ONCE = 50
# The additions of a name share random numbers, which only the seed and the name decide.  The order counts: an addition
# depends on the features that the story already has.
_ADDITIONS: dict[str, tuple[Addition, ...]] = {
    "contended": (CONTENDED_STORIES,),
    "commanded": COMMANDED_STORIES,
    "changed": (CHANGED_STORIES,),
    "idle": (IDLE_STORIES,),
    "branched": (BRANCHED_STORIES,),
    "merged": (MERGED_STORIES,),
    "gated": (GATED_STORIES,),
    "kept": (AFTER_COMMIT_STORIES,),
    "published": (PUBLISHED_STORIES,),
    "overlapping": (OVERLAPPING_STORIES,),
    "violating": (VIOLATING_STORIES,),
}


def scenario_of(seed: int) -> Scenario:
    """The story of a seed: the same on every machine."""
    scenario = RandomStory(Random(seed)).scenario()
    for name, additions in _ADDITIONS.items():
        random = Random(f"{seed} {name}")
        for addition in additions:
            scenario = addition.of(scenario, random)
    return scenario


def first_failing_seed(start: int, seeds: int, among: Callable[[Scenario], bool] = lambda _: True) -> int | None:
    """The first of the seeds whose story breaks a promise; None if there is none.

    Args:
        start: the first seed.
        seeds: the number of seeds.
        among: only the stories for which it is true are told.
    """
    for share in _shares(start, seeds):
        with _no_garbage_collection():
            for seed in share:
                scenario = scenario_of(seed)
                if among(scenario) and failure_of(scenario, seed) is not None:
                    return seed
    return None


def failing_seeds(start: int, seeds: int, jobs: int = 1) -> Iterator[tuple[int, list[int]]]:
    """Tells the stories of `seeds` seeds from `start` on.

    Args:
        start: the first seed.
        seeds: their number.
        jobs: processes that share the work.

    Yields:
        After each share of the seeds how many these were, and which of them broke a promise.
    """
    if jobs == 1:
        yield from map(_failing, _shares(start, seeds))
        return
    with ProcessPoolExecutor(jobs) as processes:
        yield from processes.map(_failing, _shares(start, seeds))


def _shares(start: int, seeds: int) -> Iterator[range]:
    for first in range(start, start + seeds, _SEEDS_AT_ONCE):
        yield range(first, min(first + _SEEDS_AT_ONCE, start + seeds))


def _failing(seeds: range) -> tuple[int, list[int]]:
    with _no_garbage_collection():
        return len(seeds), [seed for seed in seeds if failure_of(scenario_of(seed), seed) is not None]


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """A world is full of cycles: to look for them during a simulation costs a third of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()

"""Tells a story in many orders."""

from __future__ import annotations

from math import ceil
from typing import Protocol

import pytest

from tests.cases import few
from tests.simulation.simulation import Outcome, simulate
from tests.simulation.stories.scenario import Scenario
from tests.simulation.stories.steps import Step

_SOME = 1 / 20


class Simulated(Protocol):
    """Tells a story in many orders; every promise must hold in each.

    Args:
        story: the steps.
        seeds: the number of orders; `make test` tells some of them, `make test-more` the others.
        settings: of the scenario.

    Returns:
        The end of each.
    """

    def __call__(self, *story: Step, seeds: int = 40, **settings: object) -> list[Outcome]: ...


@pytest.fixture(params=few(["some orders", "the others"], "some orders"))
def simulated(request: pytest.FixtureRequest) -> Simulated:
    def run(*story: Step, seeds: int = 40, **settings: object) -> list[Outcome]:
        scenario = Scenario(story, **settings)  # type: ignore[arg-type]
        some = ceil(seeds * _SOME)
        orders = range(some) if request.param == "some orders" else range(some, seeds)
        return [simulate(scenario, seed=seed) for seed in orders]

    return run

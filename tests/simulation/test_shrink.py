"""A story that fails shrinks to the shortest valid one that fails the same way."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation import shrink as shrinking
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.shrink import Failure, shrink
from tests.simulation.stories.scenario import Scenario
from tests.simulation.stories.steps import BARRIER, START, file, hide

_BROKEN = PromiseBroken("G1", "a row is missing")


def _shortest(scenario: Scenario, fails: Callable[[Scenario], bool], monkeypatch: pytest.MonkeyPatch) -> Scenario:
    def failure_of(scenario: Scenario, seed: int) -> Failure | None:
        return Failure(scenario, seed, _BROKEN) if fails(scenario) else None

    monkeypatch.setattr(shrinking, "failure_of", failure_of)
    return shrink(Failure(scenario, 7, _BROKEN)).scenario


def test_steps_and_settings_that_the_fault_does_not_need_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = Scenario((file("a"), START, BARRIER, file("b")), fetchers=3, backfill=True, name_actors=2)
    shortest = _shortest(scenario, lambda each: START in each.story and each.name_actors == 2, monkeypatch)
    assert shortest == Scenario((START,), name_actors=2)


@pytest.mark.parametrize("settings", [{"materialize": True}, {"on_change": "replace"}], ids=repr)
def test_a_full_view_keeps_its_stored_rows(settings: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = Scenario((file("a"), START), full_view=True, **settings)  # type: ignore[arg-type]
    shortest = _shortest(scenario, lambda each: each.full_view, monkeypatch)
    assert shortest == Scenario((), full_view=True, **settings)  # type: ignore[arg-type]


def test_files_that_several_listings_lack_keep_the_limits_of_removals(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = hide("a", listings=3)
    scenario = Scenario((START, hidden), on_change="replace", max_removed_share=0.0, max_removed_files=0)
    shortest = _shortest(scenario, lambda each: hidden in each.story, monkeypatch)
    assert shortest == Scenario((hidden,), on_change="replace", max_removed_share=0.0, max_removed_files=0)

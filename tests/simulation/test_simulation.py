"""Tests of the simulator itself: it finds faults, reports them shortly, and repeats itself."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys

import pytest

from actors.coordination.coordinate_executor import CoordinateExecutor
from actors.exchange.edge import Inlet
from actors.exchange.merge_executor import MergeExecutor
from actors.listing.list_executor import ListExecutor
from actors.protocol import barrier
from actors.protocol.messages import Envelope, Message
from slackwater.commands import operations
from slackwater.plugins.after_commit import actions
from tests.simulation import simulation
from tests.simulation.campaign import failing_seeds, first_failing_seed, scenario_of
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.shrink import failure_of, shrink
from tests.simulation.simulation import Simulation, simulate
from tests.simulation.stories import steps
from tests.simulation.stories.scenario import Scenario
from tests.simulation.stories.steps import CAUGHT_UP, CRASH, EVENTS, START, file

_DIGEST = """
from hashlib import sha256
from tests.simulation.campaign import scenario_of
from tests.simulation.simulation import Simulation
digest = sha256()
for seed in range(20):
    Simulation(scenario_of(seed), seed, lambda line: digest.update(line.partition("(")[0].encode())).run()
print(digest.hexdigest())
"""


@pytest.mark.parametrize(
    "start", [pytest.param(each, marks=pytest.mark.xdist_group(f"seeds from {each}")) for each in range(0, 300, 50)]
)
def test_fifty_seeds_keep_every_promise(start: int) -> None:
    assert [seed for _, failing in failing_seeds(start, 50) for seed in failing] == []


@pytest.mark.more
def test_a_file_that_changes_while_its_retry_is_under_way_is_not_lost() -> None:
    assert [seed for _, failing in failing_seeds(1664, 1) for seed in failing] == []


@pytest.mark.more
def test_seeds_may_be_shared_between_processes() -> None:
    assert sum(done for done, _ in failing_seeds(0, 60, jobs=2)) == 60


@pytest.mark.more
def test_a_seed_is_the_same_whatever_the_order_of_hashes() -> None:
    digests = {
        subprocess.run(
            [sys.executable, "-c", _DIGEST],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(digests) == 1


def test_the_example_of_the_documentation_is_true() -> None:
    found = doctest.DocTestFinder().find(simulation.simulate, globs={"simulate": simulate})
    runner = doctest.DocTestRunner()
    assert [runner.run(each).failed for each in found] == [0]
    assert runner.summarize(verbose=False).attempted >= 3


def test_a_scenario_prints_as_it_is_written() -> None:
    for seed in range(100):
        scenario = scenario_of(seed)
        again = eval(
            repr(scenario), {**vars(actions), **vars(barrier), **vars(operations), **vars(steps), "Scenario": Scenario}
        )
        assert repr(again) == repr(scenario)


def _in_the_order_of_arrival(inlet: Inlet, envelope: Envelope) -> list[Message]:
    return [envelope.message]


@pytest.mark.more
def test_a_fault_is_found_and_its_story_shrinks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Inlet, "receive", _in_the_order_of_arrival)
    seed = first_failing_seed(0, 100)
    assert seed is not None
    failure = failure_of(scenario_of(seed), seed)
    assert failure is not None
    shortest = shrink(failure)
    assert len(shortest.scenario.story) <= min(2, len(failure.scenario.story))
    with pytest.raises(PromiseBroken) as broken:
        simulate(shortest.scenario, seed=shortest.seed)
    assert broken.value.promise == failure.broken.promise


@pytest.mark.parametrize(
    ("executor", "handler"),
    [(ListExecutor, "on_page"), (MergeExecutor, "on_release"), (CoordinateExecutor, "on_progress")],
    ids=["list", "merge", "coordinate"],
)
def test_a_bug_that_a_guard_catches_ends_the_story(
    executor: type, handler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raises(*_: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(executor, handler, raises)
    with pytest.raises(PromiseBroken, match=r"no bug: .*KeyError: 'a bug'"):
        simulate([file("a"), START, CAUGHT_UP])


def test_a_trace_tells_every_event_and_every_step() -> None:
    lines: list[str] = []
    scenario = Scenario((file("a"), START, EVENTS(10), CRASH("merger")))
    outcome = Simulation(scenario, 0, lines.append).run()
    assert [line for line in lines if line.startswith("-- ")][:4] == [f"-- {step!r}" for step in scenario.story]
    assert sum(not line.startswith("-- ") for line in lines) == outcome.events

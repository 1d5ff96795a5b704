"""The runtime of simulated actors: a call of a dead actor says so, and a dead actor does nothing more."""

from __future__ import annotations

from random import Random

from actors.shells.runtime import ActorDiedError
from tests.simulation.hosting.simulated_runtime import SimulatedActor
from tests.simulation.simulated_world import World
from tests.simulation.stories.scenario import Scenario
from tests.simulation.world.schedule import Life
from tests.simulation.world.surroundings import Surroundings


class Echo:
    """A shell that answers when it may."""

    def __init__(self, actor: SimulatedActor[Echo]) -> None:
        self.may_answer = actor.runtime.event()
        self.heard: list[str] = []

    async def hear(self, word: str) -> str:
        self.heard.append(word)
        await self.may_answer.wait()
        return word


class Two:
    """An actor that calls, and one that is called."""

    def __init__(self) -> None:
        scenario = Scenario(())
        self.world = World(scenario, Surroundings(scenario, Random(0), Random(0), lambda: False))
        process = Life("process")
        self.caller: SimulatedActor[Echo] = SimulatedActor("caller", process, self.world)
        self.called: SimulatedActor[Echo] = SimulatedActor("called", process, self.world)
        self.called.shell = Echo(self.called)
        self.answers: list[object] = []

    async def ask(self, word: str) -> None:
        try:
            self.answers.append(await self.caller.runtime.call(self.called, Echo.hear, word))
        except ActorDiedError as error:
            self.answers.append(error.cause)

    def settle(self) -> None:
        while self.world.schedule.step():
            pass


def test_an_answer_comes_when_it_is_there() -> None:
    two = Two()
    two.caller.runtime.beside(two.ask, "a")
    two.settle()
    assert (two.called.shell.heard, two.answers) == (["a"], [])
    two.called.shell.may_answer.set()
    two.settle()
    assert two.answers == ["a"]


def test_a_call_of_an_actor_that_is_dead_or_dies_says_so() -> None:
    two = Two()
    two.caller.runtime.beside(two.ask, "a")
    two.settle()
    two.called.end()
    two.caller.runtime.beside(two.ask, "b")
    two.settle()
    assert (two.called.shell.heard, two.answers) == (["a"], ["killed", "killed"])


def test_an_actor_that_has_died_hears_no_answer() -> None:
    two = Two()
    two.caller.runtime.beside(two.ask, "a")
    two.settle()
    two.caller.end()
    two.called.shell.may_answer.set()
    two.settle()
    assert two.answers == []

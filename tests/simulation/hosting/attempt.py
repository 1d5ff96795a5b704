"""One attempt of a run, as `slackwater.running.attempt` and `RunClient` follow it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from actors.protocol.barrier import Mutation
from actors.protocol.run_state import RunState
from actors.recovery.attempt_plan import AttemptPlan
from actors.shells.coordinator_shell import CoordinatorShell
from actors.shells.runtime import ActorDiedError
from actors.sources.pipeline_definition import PipelineDefinition
from spark_bridge.plans.view_definition import ViewDefinition
from state.errors import RunFailedError
from tests.simulation.hosting.materializer import SimulatedMaterializer
from tests.simulation.hosting.owner_client import SimulatedOwnerClient
from tests.simulation.hosting.simulated_actors import SimulatedActors
from tests.simulation.hosting.simulated_runtime import SimulatedActor, SimulatedRuntime
from tests.simulation.world.schedule import Life

if TYPE_CHECKING:
    from tests.simulation.hosting.process import SimulatedProcess

_Arguments = ParamSpec("_Arguments")


class SimulatedAttempt(Life):
    """From a recovery to a stop or a failure.

    Args:
        process: the process that it is part of.
        plan: the results of the attempts before this one.
    """

    process: SimulatedProcess

    def __init__(self, process: SimulatedProcess, plan: AttemptPlan) -> None:
        super().__init__(f"{process.name}/{plan.number}", process)
        self.plan, self.world = plan, process.world
        self.declared: Mapping[str, ViewDefinition] = process.declared.definitions
        self.dropped: Mapping[str, int] = process.declared.dropped
        self.definition: PipelineDefinition = replace(process.definition, views=process.declared.reads)
        self.actors = SimulatedActors(self)
        self.coordinator: SimulatedActor[CoordinatorShell] = self.actors.coordinator
        self.runtime = SimulatedRuntime(self, self.world)
        self.materializer: SimulatedMaterializer | None = None
        self.client = SimulatedOwnerClient(self.coordinator, process, self.world)
        self.state: RunState = RunState(
            version=0, phase="starting", term=0, epoch=plan.so_far.epoch, epochs=plan.so_far.epochs,
            totals=plan.so_far.counts,
        )  # fmt: skip

    @property
    def is_running(self) -> bool:
        """True while mutations and marks are understood."""
        return self.materializer is not None

    def request(self, mutation: Mutation) -> int:
        """Puts a mutation on the next barrier.  Returns its number, see `RunState.requests_over`."""
        return self._answer(CoordinatorShell.request, mutation)

    def rescale(self, fewest: int, most: int) -> int:
        """Requests a number of fetch actors.  Returns the number of the request, see `RunState.rescalings_over`."""
        return self._answer(CoordinatorShell.rescale, fewest, most)

    def add_view(self, definition: ViewDefinition) -> Future[None]:
        """See `MaterializerLoop.add_view`; the attempt runs."""
        assert self.materializer is not None
        return self.materializer.add_view(definition)

    def readers(self, *names: str) -> tuple[str, ...]:
        """See `MaterializerLoop.readers`; the attempt runs."""
        assert self.materializer is not None
        return self.materializer.readers(*names)

    def drop_view(self, name: str) -> Future[None]:
        """See `MaterializerLoop.drop_view`; the attempt runs."""
        assert self.materializer is not None
        return self.materializer.drop_view(name)

    def retry_view(self, name: str) -> Future[None]:
        """See `MaterializerLoop.retry_view`; the attempt runs."""
        assert self.materializer is not None
        return self.materializer.retry_view(name)

    def release(self) -> Future[None]:
        """See `MaterializerLoop.release`; the attempt runs."""
        assert self.materializer is not None
        return self.materializer.release()

    def close(self) -> None:
        """Ends the attempt, and the changes that wait for it."""
        self.end()
        if self.materializer is not None:
            self.materializer.close()

    def _answer(
        self,
        method: Callable[Concatenate[CoordinatorShell, _Arguments], Coroutine[Any, Any, int]],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> int:
        try:
            return self.runtime.answer_now(self.coordinator, method, *arguments, **named)
        except ActorDiedError as error:
            raise error.ending("the coordinator died") from error

    def start(self) -> None:
        """Takes the root over, recovers, and follows the flow to its end."""
        self.runtime.beside(self._run)

    def crash(self, name: str) -> None:
        """An actor dies, with all that it knows; for the materializer it is Spark that dies."""
        actor = self.actors.by_name.get(name)
        if actor is not None and actor.alive:
            actor.end()
            if actor is self.materializer:
                self.on_failure(RunFailedError("the Spark session has died"))

    def lose_node(self, names: Iterable[str]) -> None:
        """A node dies with some actors, all at once."""
        for actor in [self.actors.by_name.get(name) for name in names]:
            if isinstance(actor, SimulatedActor) and actor.alive:
                actor.end_with_node()

    def on_failure(self, error: Exception) -> None:
        """The process hears at some moment that the attempt has failed."""
        self.world.schedule.soon(self, self.process.on_failure, self, error)

    async def _run(self) -> None:
        try:
            await self._follow()
        except ActorDiedError as error:
            self.process.on_failure(self, error.ending("the coordinator died"))
        except Exception as error:
            self.process.on_failure(self, error)

    async def _follow(self) -> None:
        call, coordinator = self.runtime.call, self.coordinator
        recovered = await call(coordinator, CoordinatorShell.start)
        self.state = await call(coordinator, CoordinatorShell.watch, -1, 0)
        self.materializer = SimulatedMaterializer(self, recovered)
        self.actors.by_name[self.materializer.name] = self.materializer
        self.materializer.turn_soon()
        self.process.on_started(self)
        while self.state.phase != "stopped":
            before = self.state
            self.state = (await call(coordinator, CoordinatorShell.watch, before.version, before.epoch)).after(before)
            if self.state.failure is not None:
                raise self.state.failure
            if _seen_by_loop(self.state) != _seen_by_loop(before):
                self.materializer.turn_soon()
            self.process.on_state(self)
        await call(coordinator, CoordinatorShell.join)
        self.process.on_stopped(self)


def _seen_by_loop(state: RunState) -> tuple[object, ...]:
    """The part of a state that gives the materializer's loop work, or lets it begin work."""
    return state.schemas, state.epoch, state.files_in_flight > 0

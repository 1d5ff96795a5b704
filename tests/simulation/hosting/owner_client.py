"""Work on the root by the coordinator, as calls that wait."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from actors.shells.coordinator_shell import CoordinatorShell
from actors.shells.runtime import ActorDiedError
from state.store.store import StateStore
from state.upkeep.vacuum import Vacuumed
from tests.simulation.hosting.simulated_runtime import SimulatedActor, SimulatedRuntime
from tests.simulation.world.schedule import Life

if TYPE_CHECKING:
    from tests.simulation.simulated_world import World

_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")


class SimulatedOwnerClient:
    """See `OwnerClient`.

    Args:
        coordinator: of the attempt.
        process: the life that calls; it outlives the attempt, and hears of its end.
        world: everything else.
    """

    def __init__(self, coordinator: SimulatedActor[CoordinatorShell], process: Life, world: World) -> None:
        self._coordinator, self._process, self._world = coordinator, process, world
        self._runtime = SimulatedRuntime(process, world)

    def change(self, action: Callable[[StateStore], _Answer]) -> _Answer:
        return self._answer(CoordinatorShell.change, action)

    def vacuum(self) -> Vacuumed:
        return self._answer(CoordinatorShell.vacuum)

    def _answer(
        self,
        method: Callable[Concatenate[CoordinatorShell, _Arguments], Coroutine[Any, Any, _Answer]],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> _Answer:
        answers: list[_Answer] = []
        errors: list[Exception] = []

        async def call() -> None:
            try:
                answers.append(await self._runtime.call(self._coordinator, method, *arguments, **named))
            except ActorDiedError as error:
                errors.append(error.ending("the coordinator died"))
            except Exception as error:
                errors.append(error)
            self._world.threads.wake(self._process)

        self._runtime.act(call)
        self._world.threads.wait_until(lambda: bool(answers or errors))
        if errors:
            raise errors[0]
        return answers[0]

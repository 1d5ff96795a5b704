"""The coordinator of one attempt as a Ray actor."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import ray

from actors.hosting.hosted_shells import call
from actors.hosting.ray_runtime import RayRuntime
from actors.recovery.attempt_plan import AttemptPlan
from actors.shells.coordinator_shell import CoordinatorShell
from actors.sources.pipeline_definition import COORDINATOR, PipelineDefinition

if TYPE_CHECKING:
    from actors.shells.actor_group import ActorFactory


class Coordinator(CoordinatorShell):
    """See `CoordinatorShell`."""

    def __init__(self, definition: PipelineDefinition, plan: AttemptPlan) -> None:
        from state.allocation import share_arenas
        from state.lance.lance_root import LanceRoot
        from state.upkeep.pin import pinned_epochs

        share_arenas()
        runtime = RayRuntime(COORDINATOR)
        super().__init__(
            runtime=runtime,
            definition=definition,
            plan=plan,
            root=LanceRoot(definition.root, runtime.clock),
            make_actors=partial(_ray_actors, definition, self),
            pinned=partial(pinned_epochs, definition.root, runtime.clock),
        )

    async def call_hosted(self, key: tuple[str, str], method: str, *arguments: Any, **named: Any) -> Any:
        """Calls a method of a shell in this process, see `HostedShell`."""
        return await call(key, method, *arguments, **named)


def _ray_actors(definition: PipelineDefinition, shell: CoordinatorShell) -> ActorFactory:
    # Every actor loads this module for its reference to the coordinator, and none needs all the others.
    from actors.hosting.ray_actors import RayActors

    return RayActors(ray.get_runtime_context().current_actor, shell, definition)

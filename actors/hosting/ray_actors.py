"""Makes the Ray actors of one attempt, each with its place and its resources.

With few fetch actors, the dispatcher and the merger live in the process of the coordinator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from actors.hosting.exchange_actors import DispatcherActor, MergerActor
from actors.hosting.fetch_actor import FetchActor
from actors.hosting.hosted_shells import host_shell
from actors.hosting.list_actor import ListActor
from actors.hosting.name_actor import NameActor
from actors.protocol.vnode_mapping import VnodeMapping
from actors.shells.actor_shell import ActorShell, Coordinating
from actors.shells.coordinator_shell import CoordinatorShell
from actors.shells.exchange_shells import DispatcherShell, MergerShell, Sender
from actors.shells.fetch_shell import FetchShell, FetchStart
from actors.shells.list_shell import ListShell, ListStart
from actors.shells.name_shell import NameShell
from actors.shells.runtime import Actor
from actors.sources.pipeline_definition import PipelineDefinition
from actors.sources.placement import ActorResources, PlacementSettings

_Shell = TypeVar("_Shell")
_Exchange = TypeVar("_Exchange", bound=ActorShell[Any])
_ONCE = {"max_restarts": 0, "max_concurrency": 1000}


class RayActors:
    """Makes and ends actors.  See `ActorFactory`.

    Args:
        coordinator: the actor that all of them report to, whose process this is.
        shell: the shell of the coordinator.
    """

    def __init__(
        self, coordinator: Actor[Coordinating], shell: CoordinatorShell, definition: PipelineDefinition
    ) -> None:
        self._coordinator, self._shell, self._root = coordinator, shell, definition.root
        self._shares_process = definition.shares_process
        self._host_id = ray.get_runtime_context().get_actor_id()
        placement = definition.placement
        self._control = control_options(placement, near=ray.get_runtime_context().get_node_id())
        self._fetch, self._names = spread_options(placement.fetch), spread_options(placement.names)

    def make_list(self, name: str, edges: Sequence[str], start: ListStart) -> Actor[ListShell]:
        return self._make(ListActor, self._control, name=name, edges=edges, root=self._root, start=start)

    def make_names(self, name: str, edges: Sequence[str]) -> Actor[NameShell]:
        return self._make(NameActor, self._names, name=name, edges=edges)

    def make_dispatcher(self, name: str, edges: Sequence[str], mapping: VnodeMapping) -> Actor[DispatcherShell]:
        return self._make_exchange(DispatcherActor, name=name, edges=edges, mapping=mapping)

    def make_fetcher(self, name: str, edges: Sequence[str], start: FetchStart) -> Actor[FetchShell]:
        return self._make(FetchActor, self._fetch, name=name, edges=edges, root=self._root, start=start)

    def make_merger(self, name: str, edges: Sequence[str], senders: Mapping[str, Actor[Sender]]) -> Actor[MergerShell]:
        return self._make_exchange(MergerActor, name=name, edges=edges, senders=senders)

    def end(self, actor: Actor[FetchShell]) -> None:
        ray.kill(actor)

    def _make_exchange(self, shell: type[_Exchange], **arguments: Any) -> Actor[_Exchange]:
        if not self._shares_process:
            return self._make(shell, self._control, **arguments)
        coordinator = host_shell(self._coordinator, self._host_id, self._shell)
        return host_shell(self._coordinator, self._host_id, shell(coordinator=coordinator, **arguments))

    def _make(self, shell: type[_Shell], options: Mapping[str, Any], **arguments: Any) -> Actor[_Shell]:
        actor: Actor[_Shell] = ray.remote(shell).options(**options).remote(coordinator=self._coordinator, **arguments)
        return actor


def control_options(placement: PlacementSettings, near: str) -> dict[str, Any]:
    """Options of an actor that computes little: on a node if it has the resources, else on any node."""
    return {
        **_ONCE,
        **placement.control.options(),
        "scheduling_strategy": NodeAffinitySchedulingStrategy(near, soft=True),
    }


def spread_options(resources: ActorResources) -> dict[str, Any]:
    """Options of an actor that computes much, or holds much: on the node that has the fewest."""
    return {**_ONCE, **resources.options(), "scheduling_strategy": "SPREAD"}

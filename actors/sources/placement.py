"""On which nodes of a cluster the actors of a run are: what each asks for, and whether there is room."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from state.errors import SettingsError

_CPU, _MEMORY = "CPU", "memory"


@dataclass(frozen=True, kw_only=True)
class ActorResources:
    """What one actor asks of its node.  Ray gives no node more than it has; what is asked for is not measured.

    Args:
        num_cpus: logical CPUs; 0 takes a place anywhere.
        memory_bytes: of the node's memory for processes.
        resources: custom resources, which only some nodes have.
    """

    num_cpus: float = 0
    memory_bytes: int = 0
    resources: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for option in ("num_cpus", "memory_bytes"):
            if not _is_amount(getattr(self, option)):
                raise SettingsError(f"ActorResources({option}={getattr(self, option)!r}): give a number, 0 or above")
        for name, amount in self.resources.items():
            if name in (_CPU, "GPU", _MEMORY):
                raise SettingsError(
                    f"ActorResources(resources={{{name!r}: ...}}): give num_cpus or memory_bytes instead"
                )
            if not _is_amount(amount) or amount == 0:
                raise SettingsError(f"ActorResources(resources={{{name!r}: {amount!r}}}): give a number above 0")

    def options(self) -> dict[str, Any]:
        """As Ray takes them."""
        memory = {_MEMORY: self.memory_bytes} if self.memory_bytes else {}
        return {"num_cpus": self.num_cpus, "resources": dict(self.resources), **memory}

    def places_on(self, node: Mapping[str, float]) -> float:
        """How many such actors a node with these resources has room for."""
        asked = {_CPU: self.num_cpus, _MEMORY: self.memory_bytes, **self.resources}
        return min((node.get(name, 0) // amount for name, amount in asked.items() if amount), default=float("inf"))

    def __str__(self) -> str:
        asked = {_CPU: self.num_cpus, _MEMORY: self.memory_bytes, **self.resources}
        return ", ".join(f"{name} {amount:g}" for name, amount in asked.items() if amount) or "nothing"


@dataclass(frozen=True, kw_only=True)
class PlacementSettings:
    """Which nodes of a Ray cluster the actors of a run take.

    Args:
        fetch: of each fetch actor; they are spread over the nodes.
        control: of the coordinator, and of each list, dispatcher and merger actor, which compute little; they are on
            the driver's node if it has what they ask for, since a run does not outlive that node anyway.
    """

    fetch: ActorResources = field(default_factory=ActorResources)
    control: ActorResources = field(default_factory=ActorResources)


def without_room(
    placement: PlacementSettings, *, fetchers: int, controls: int, nodes: Iterable[Mapping[str, float]]
) -> str:
    """What to say of actors that the cluster has no room for; nothing if it has.

    Args:
        placement: what they ask for.
        fetchers: how many fetch actors there are to be.
        controls: and how many others.
        nodes: all resources of each living node, as Ray names them.
    """
    there = list(nodes)
    wanted = (("fetch", placement.fetch, fetchers), ("control", placement.control, controls))
    short = [
        f"{count} {kind} actors ask for {asked} each, and the {len(there)} nodes have room for {int(room)}"
        for kind, asked, count in wanted
        if (room := sum(asked.places_on(node) for node in there)) < count
    ]
    return "; ".join(short)


def _is_amount(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, (int, float)) and 0 <= value < float("inf")

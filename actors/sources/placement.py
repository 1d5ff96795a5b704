"""Placement of the actors of a run on the nodes of a Ray cluster: the resources of each, and room for all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from state.errors import SettingsError

_CPU, _MEMORY = "CPU", "memory"


@dataclass(frozen=True, kw_only=True)
class ActorResources:
    """The resources that one actor requests of its node.  Ray counts requests; it does not measure use.

    Args:
        num_cpus: the number of logical CPUs; 0 fits any node.
        memory_bytes: the memory for the process, in bytes.
        resources: custom resource → amount; only nodes that declare it have it.
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
        """The options of `ray.remote`."""
        memory = {_MEMORY: self.memory_bytes} if self.memory_bytes else {}
        return {"num_cpus": self.num_cpus, "resources": dict(self.resources), **memory}

    def places_on(self, node: Mapping[str, float]) -> float:
        """The number of such actors that fit on a node with these resources."""
        asked = {_CPU: self.num_cpus, _MEMORY: self.memory_bytes, **self.resources}
        return min((node.get(name, 0) // amount for name, amount in asked.items() if amount), default=float("inf"))

    def __str__(self) -> str:
        asked = {_CPU: self.num_cpus, _MEMORY: self.memory_bytes, **self.resources}
        return ", ".join(f"{name} {amount:g}" for name, amount in asked.items() if amount) or "nothing"


@dataclass(frozen=True, kw_only=True)
class PlacementSettings:
    """The nodes of a Ray cluster on which the actors of a run are placed.

    Args:
        fetch: the resources of each fetch actor; fetch actors are spread over the nodes.
        names: the resources of each name actor, see `Listing`; name actors are spread over the nodes.
        control: the resources of the coordinator and of each list, dispatcher and merger actor.  They compute little
            and stand on the driver's node if they fit there: a run does not outlive that node in any case.  With up to
            eight fetch actors the dispatcher and the merger live in the process of the coordinator.
    """

    fetch: ActorResources = field(default_factory=ActorResources)
    names: ActorResources = field(default_factory=ActorResources)
    control: ActorResources = field(default_factory=ActorResources)


def without_room(
    placement: PlacementSettings, *, fetchers: int, names: int, controls: int, nodes: Iterable[Mapping[str, float]]
) -> str:
    """A text about the actors that do not fit into the cluster; empty if all fit.

    Args:
        placement: the resources of the actors.
        fetchers: the number of fetch actors.
        names: the number of name actors.
        controls: the number of all other actors.
        nodes: the resources of each living node, by Ray's names.
    """
    there = list(nodes)
    wanted = (
        ("fetch", placement.fetch, fetchers),
        ("name", placement.names, names),
        ("control", placement.control, controls),
    )
    short = [
        f"{count} {kind} actors request {asked} each, and the {len(there)} nodes have room for {int(room)}"
        for kind, asked, count in wanted
        if (room := sum(asked.places_on(node) for node in there)) < count
    ]
    return "; ".join(short)


def _is_amount(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, (int, float)) and 0 <= value < float("inf")

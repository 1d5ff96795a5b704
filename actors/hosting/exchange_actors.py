"""The dispatcher and the merger as Ray actors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from actors.hosting.ray_runtime import RayRuntime
from actors.protocol.vnode_mapping import VnodeMapping
from actors.shells.actor_shell import Coordinating
from actors.shells.exchange_shells import DispatcherShell, MergerShell, Sender
from actors.shells.runtime import Actor


class DispatcherActor(DispatcherShell):
    """See `DispatcherShell`."""

    def __init__(
        self, *, name: str, edges: Sequence[str], coordinator: Actor[Coordinating], mapping: VnodeMapping
    ) -> None:
        super().__init__(name=name, edges=edges, coordinator=coordinator, runtime=RayRuntime(name), mapping=mapping)


class MergerActor(MergerShell):
    """See `MergerShell`."""

    def __init__(
        self, *, name: str, edges: Sequence[str], coordinator: Actor[Coordinating], senders: Mapping[str, Actor[Sender]]
    ) -> None:
        super().__init__(name=name, edges=edges, coordinator=coordinator, runtime=RayRuntime(name), senders=senders)

"""One shard of the names of a source as a Ray actor."""

from __future__ import annotations

from collections.abc import Sequence

from actors.hosting.ray_runtime import RayRuntime
from actors.shells.actor_shell import Coordinating
from actors.shells.name_shell import NameShell
from actors.shells.runtime import Actor


class NameActor(NameShell):
    """See `NameShell`."""

    def __init__(self, *, name: str, edges: Sequence[str], coordinator: Actor[Coordinating]) -> None:
        super().__init__(name=name, edges=edges, coordinator=coordinator, runtime=RayRuntime(name))

"""The shell of a name actor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from actors.names.name_executor import NameExecutor
from actors.names.seen_piece import SeenLoader, SeenPiece
from actors.protocol.instructions import FlowInstruction
from actors.protocol.messages import Message
from actors.shells.actor_shell import ActorShell, Coordinating, Receiver
from actors.shells.runtime import Actor, Runtime


class NameShell(ActorShell[FlowInstruction]):
    """Hosts a `NameExecutor`; its edges go to the list actor of its source, and come from there."""

    def __init__(self, *, name: str, edges: Sequence[str], coordinator: Actor[Coordinating], runtime: Runtime) -> None:
        super().__init__(name=name, edges=edges, coordinator=coordinator, runtime=runtime)
        self._seen = SeenLoader()

    async def take_seen(self, piece: SeenPiece) -> None:
        """Takes names of its vnodes that were handed on before the last commit; all of them come before `connect`."""
        self._seen.add(piece)

    async def connect(self, receivers: Mapping[str, Actor[Receiver]]) -> None:
        """Opens the edge to the list actor; the executor begins with the names that have come."""
        self._executor = NameExecutor(actor=self.name, index=self._seen.index())
        await super().connect(receivers)

    def on_message(self, edge: str, message: Message) -> list[FlowInstruction]:
        return self._executor.on_message(message)

    def perform(self, instruction: FlowInstruction) -> None:
        self.perform_flow(instruction)

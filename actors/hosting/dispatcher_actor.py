"""The dispatch step on Ray."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from actors.exchange.dispatch_executor import DispatchExecutor
from actors.hosting.shell import ActorShell
from actors.protocol.instructions import Instruction
from actors.protocol.messages import Message
from actors.protocol.vnode_mapping import VnodeMapping


class DispatcherActor(ActorShell):
    """Hosts a `DispatchExecutor`."""

    def __init__(self, *, name: str, edges: Sequence[str], coordinator: Any, mapping: VnodeMapping) -> None:
        super().__init__(name=name, edges=edges, coordinator=coordinator)
        self._executor = DispatchExecutor(actor=name, edges=edges, mapping=mapping)

    def on_message(self, edge: str, message: Message) -> list[Instruction]:
        return self._executor.on_message(edge, message)

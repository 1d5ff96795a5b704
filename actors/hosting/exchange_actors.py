"""The dispatcher and the merger as Ray actors."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from actors.exchange.dispatch_executor import DispatchExecutor
from actors.exchange.merge_executor import Deliver, Grant, MergeExecutor, MergeInstruction
from actors.hosting.shell import ActorShell
from actors.protocol.instructions import FlowInstruction
from actors.protocol.messages import Message
from actors.protocol.reports import EpochBlocks
from actors.protocol.vnode_mapping import VnodeMapping


class DispatcherActor(ActorShell[FlowInstruction]):
    """Hosts a `DispatchExecutor`."""

    def __init__(self, *, name: str, edges: Sequence[str], coordinator: Any, mapping: VnodeMapping) -> None:
        super().__init__(name=name, edges=edges, coordinator=coordinator)
        self._executor = DispatchExecutor(actor=name, edges=edges, mapping=mapping)

    def on_message(self, edge: str, message: Message) -> list[FlowInstruction]:
        return self._executor.on_message(edge, message)

    def perform(self, instruction: FlowInstruction) -> None:
        self.perform_flow(instruction)


class MergerActor(ActorShell[MergeInstruction]):
    """Hosts a `MergeExecutor`.

    Args:
        senders: edge → the fetch actor at its other end, to give credit back to.
    """

    def __init__(self, *, name: str, edges: Sequence[str], coordinator: Any, senders: Mapping[str, Any]) -> None:
        super().__init__(name=name, edges=edges, coordinator=coordinator)
        self._executor = MergeExecutor(actor=name, edges=edges)
        self._senders = dict(senders)
        self._epochs: asyncio.Queue[EpochBlocks] = asyncio.Queue()

    async def add_senders(self, senders: Mapping[str, Any]) -> None:
        """Opens further edges in; they count from the barrier on that moves vnodes to them."""
        self._senders |= senders
        for edge in senders:
            self._inlet.add(edge)

    def on_message(self, edge: str, message: Message) -> list[MergeInstruction]:
        return self._executor.on_message(edge, message)

    def perform(self, instruction: MergeInstruction) -> None:
        match instruction:
            case Deliver():
                self._epochs.put_nowait(instruction.epoch)
            case Grant():
                self._senders[instruction.edge].grant.options(num_returns=0).remote(instruction.nbytes)
            case _:
                self.perform_flow(instruction)

    async def take(self) -> EpochBlocks:
        """The next epoch; waits for it."""
        return await self._epochs.get()

    async def release(self, epoch: int) -> None:
        """Spark has read the epoch's blocks: their bytes are free again."""
        with self._guard():
            self.do(self._executor.on_release(epoch))

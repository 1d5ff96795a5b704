"""The shells of the dispatcher and of the merger."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Protocol

from actors.exchange.dispatch_executor import DispatchExecutor
from actors.exchange.merge_executor import Deliver, Grant, MergeExecutor, MergeInstruction
from actors.protocol.instructions import FlowInstruction
from actors.protocol.messages import Message
from actors.protocol.reports import EpochBlocks
from actors.protocol.vnode_mapping import VnodeMapping
from actors.shells.actor_shell import ActorShell, Coordinating
from actors.shells.runtime import Actor, Runtime


class Sender(Protocol):
    """The shell at the beginning of an edge whose data is limited by credit."""

    async def grant(self, nbytes: int) -> None: ...


class DispatcherShell(ActorShell[FlowInstruction]):
    """Hosts a `DispatchExecutor`."""

    def __init__(
        self,
        *,
        name: str,
        edges: Sequence[str],
        coordinator: Actor[Coordinating],
        runtime: Runtime,
        mapping: VnodeMapping,
    ) -> None:
        super().__init__(name=name, edges=edges, coordinator=coordinator, runtime=runtime)
        self._executor = DispatchExecutor(actor=name, edges=edges, mapping=mapping)

    def on_message(self, edge: str, message: Message) -> list[FlowInstruction]:
        return self._executor.on_message(edge, message)

    def perform(self, instruction: FlowInstruction) -> None:
        self.perform_flow(instruction)


class MergerShell(ActorShell[MergeInstruction]):
    """Hosts a `MergeExecutor`.

    Args:
        senders: edge → the fetch actor at its other end, which gets credit back.
    """

    def __init__(
        self,
        *,
        name: str,
        edges: Sequence[str],
        coordinator: Actor[Coordinating],
        runtime: Runtime,
        senders: Mapping[str, Actor[Sender]],
    ) -> None:
        super().__init__(name=name, edges=edges, coordinator=coordinator, runtime=runtime)
        self._executor = MergeExecutor(actor=name, edges=edges)
        self._senders = dict(senders)
        self._epochs: deque[EpochBlocks] = deque()
        self._delivered = runtime.event()

    async def add_senders(self, senders: Mapping[str, Actor[Sender]]) -> None:
        """Opens further edges in; they count from the barrier on that moves vnodes to them."""
        self._senders |= senders
        for edge in senders:
            self._inlet.add(edge)

    async def take(self) -> EpochBlocks:
        """The next epoch; waits for it."""
        while not self._epochs:
            self._delivered.clear()
            await self._delivered.wait()
        return self._epochs.popleft()

    async def release(self, epoch: int) -> None:
        """Spark has read the epoch's blocks: their bytes are free again."""
        with self.guard():
            self.do(self._executor.on_release(epoch))

    def on_message(self, edge: str, message: Message) -> list[MergeInstruction]:
        return self._executor.on_message(edge, message)

    def perform(self, instruction: MergeInstruction) -> None:
        match instruction:
            case Deliver():
                self._epochs.append(instruction.epoch)
                self._delivered.set()
            case Grant():
                self._runtime.notify(self._senders[instruction.edge], Sender.grant, instruction.nbytes)
            case _:
                self.perform_flow(instruction)

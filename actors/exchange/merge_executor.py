"""The merge step without Ray: blocks of all fetch actors are gathered by epoch, and their credit is given back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from actors.exchange.barrier_aligner import BarrierAligner
from actors.protocol.barrier import Barrier, BarrierKind, Update
from actors.protocol.blocks import BadRecords, Block, Correction
from actors.protocol.instructions import Collect, End, FlowInstruction, Instruction
from actors.protocol.messages import Message
from actors.protocol.reports import CollectReport, EpochBlocks
from state.errors import ProtocolError


class MergeExecutor:
    """The step between fetch and the materializer.

    It counts the bytes that each epoch holds in the object store, and gives the credit back when Spark has released
    them.

    Args:
        actor: this actor's name in reports.
        edges: names of the edges from the fetch actors at the start.
    """

    def __init__(self, *, actor: str, edges: Sequence[str]) -> None:
        self._actor = actor
        self._aligner = BarrierAligner(edges, _owners_after)
        self._blocks: dict[str, list[Block]] = {}
        self._corrections: list[Correction] = []
        self._bad_records = Counter[str]()
        self._delivered: dict[int, dict[str, int]] = {}

    def on_message(self, edge: str, message: Message) -> list[MergeInstruction]:
        """Keeps a block or a correction; delivers the epoch when its barrier has come on all edges."""
        instructions: list[MergeInstruction] = []
        for passed in self._aligner.on_message(edge, message):
            match passed:
                case Block():
                    self._blocks.setdefault(passed.source, []).append(passed)
                case Correction():
                    self._corrections.append(passed)
                case BadRecords():
                    self._bad_records.update(passed.counts)
                case Barrier():
                    instructions += self._on_barrier(passed)
                case _:
                    raise ProtocolError(f"{self._actor}: the merge step takes no {type(passed).__name__}")
        return instructions

    def on_release(self, epoch: int) -> list[MergeInstruction]:
        """Gives back the credit of an epoch whose blocks Spark has read."""
        held = self._delivered.pop(epoch, None)
        if held is None:
            raise ProtocolError(f"{self._actor}: epoch {epoch} was released twice, or before its delivery")
        return [Grant(edge, nbytes) for edge, nbytes in held.items()]

    def _on_barrier(self, barrier: Barrier) -> list[MergeInstruction]:
        blocks, self._blocks = self._blocks, {}
        corrections, self._corrections = tuple(self._corrections), []
        bad, self._bad_records = self._bad_records, Counter()
        # The credit stays taken after the delivery: the blocks are in the object store until Spark has read them.
        held: dict[str, int] = {}
        for block in (block for group in blocks.values() for block in group):
            held[block.origin] = held.get(block.origin, 0) + block.nbytes
        self._delivered[barrier.epoch.prev] = held
        if barrier.kind is BarrierKind.INITIAL and blocks:
            raise ProtocolError(f"{self._actor}: rows before the initial barrier")
        epoch = EpochBlocks(barrier, {source: tuple(group) for source, group in blocks.items()}, corrections, dict(bad))
        instructions: list[MergeInstruction] = [Collect(CollectReport(self._actor, barrier.epoch.prev)), Deliver(epoch)]
        return [*instructions, End()] if barrier.is_stop else instructions


def _owners_after(barrier: Barrier) -> tuple[str, ...] | None:
    """The edges behind a barrier that changes the fetch actors; None if they stay."""
    return barrier.mutation.after.owners if isinstance(barrier.mutation, Update) else None


@dataclass(frozen=True)
class Deliver(Instruction):
    """Hands the blocks of one epoch to the materializer."""

    epoch: EpochBlocks


@dataclass(frozen=True)
class Grant(Instruction):
    """Gives credit back to the fetch actor at the other end of an edge."""

    edge: str
    nbytes: int


MergeInstruction: TypeAlias = FlowInstruction | Deliver | Grant

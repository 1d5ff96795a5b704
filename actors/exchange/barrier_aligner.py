"""Chandy-Lamport alignment: an input that delivered the barrier is blocked until all have.

Inputs are blocked or active, as in RisingWave's `DynamicReceivers`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from actors.protocol.barrier import Barrier
from actors.protocol.messages import Message
from state.errors import ProtocolError


class BarrierAligner:
    """Merges the messages of several edges so that no data crosses a barrier.

    A barrier can change the inputs: messages of new ones are held until it has passed, and come behind it.

    Args:
        edges: names of the inputs, at least one.
        edges_after: barrier → names of the inputs behind it; None if they stay.
    """

    def __init__(
        self, edges: Iterable[str], edges_after: Callable[[Barrier], Iterable[str] | None] = lambda barrier: None
    ) -> None:
        self._edges_after = edges_after
        self._early: dict[str, deque[Message]] = {}
        self._held: dict[str, deque[Message]] = {edge: deque() for edge in edges}
        self._blocked: set[str] = set()
        self._barrier: Barrier | None = None

    def on_message(self, edge: str, message: Message) -> list[Message]:
        """The messages that may pass now, in order.  One barrier comes out for one from every edge."""
        if edge not in self._held:
            self._early.setdefault(edge, deque()).append(message)
            return []
        self._held[edge].append(message)
        if edge in self._blocked:
            return []
        passed: list[Message] = []
        self._drain(edge, passed)
        # A loop: the inputs may hold later barriers already, and the last message completes several alignments then.
        while self._barrier is not None and len(self._blocked) == len(self._held):
            passed.append(self._barrier)
            self._change_edges(self._barrier)
            self._barrier = None
            self._blocked.clear()
            for each in self._held:
                self._drain(each, passed)
        return passed

    def _change_edges(self, barrier: Barrier) -> None:
        edges = self._edges_after(barrier)
        if edges is None:
            return
        before, self._held = self._held, {}
        for edge in edges:
            self._held[edge] = before.pop(edge) if edge in before else self._early.pop(edge, deque())
        for edge, held in before.items():
            if held:
                raise ProtocolError(f"edge {edge} has delivered messages behind its last barrier {barrier.epoch}")

    def _drain(self, edge: str, passed: list[Message]) -> None:
        """Passes what `edge` holds, up to and excluding its next barrier, which blocks the edge."""
        held = self._held[edge]
        while held:
            message = held.popleft()
            if not isinstance(message, Barrier):
                passed.append(message)
                continue
            if self._barrier is not None and self._barrier.epoch != message.epoch:
                raise ProtocolError(f"edge {edge} delivered barrier {message.epoch}, others {self._barrier.epoch}")
            self._barrier = message
            self._blocked.add(edge)
            return

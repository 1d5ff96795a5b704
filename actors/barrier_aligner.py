"""Chandy-Lamport alignment: an input that delivered the barrier is blocked until all have.

Blocked and active inputs are the whole of it, as in RisingWave's `DynamicReceivers`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from actors.messages import Barrier, Message
from state.errors import ProtocolError


class BarrierAligner:
    """Merges the messages of several edges so that no data crosses a barrier.

    Args:
        edges: names of the inputs, at least one.
    """

    def __init__(self, edges: Iterable[str]) -> None:
        self._held: dict[str, deque[Message]] = {edge: deque() for edge in edges}
        self._blocked: set[str] = set()
        self._barrier: Barrier | None = None

    def on_message(self, edge: str, message: Message) -> list[Message]:
        """The messages that may pass now, in order.  One barrier comes out for one from every edge."""
        self._held[edge].append(message)
        if edge in self._blocked:
            return []
        passed: list[Message] = []
        self._drain(edge, passed)
        while self._barrier is not None and len(self._blocked) == len(self._held):
            passed.append(self._barrier)
            self._barrier = None
            self._blocked.clear()
            for each in self._held:
                self._drain(each, passed)
        return passed

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

"""The two ends of an edge between two actors.

Ray does not promise that calls to an asynchronous actor start in the order they were made, so the sender numbers its
messages and the receiver puts them in order.  Credits in bytes limit data, with one account for each edge (a shared
pool would deadlock alignment); barriers need no credit.  RisingWave has the same two kinds of permit, in
`exchange/permit.rs`.
"""

from __future__ import annotations

from collections.abc import Iterable

from actors.protocol.messages import Envelope, Message
from state.errors import ProtocolError


class Outlet:
    """The sending end: numbers messages and counts the credit that is in use.

    Args:
        edge: name of the edge, unique at its receiver.
        credit_bytes: bytes that may be in flight; None where something else limits the data.
    """

    def __init__(self, edge: str, credit_bytes: int | None = None) -> None:
        self._edge = edge
        self._sequence = 0
        self._credit_bytes = credit_bytes
        self._in_flight_bytes = 0

    @property
    def in_flight_bytes(self) -> int:
        """Bytes whose credit has not come back yet."""
        return self._in_flight_bytes

    def may_send(self, nbytes: int) -> bool:
        """True if the credit is enough.  A message larger than the whole credit passes when the edge is empty."""
        if self._credit_bytes is None or self._in_flight_bytes == 0:
            return True  # else a block that is larger than the whole credit would wait for ever
        return self._in_flight_bytes + nbytes <= self._credit_bytes

    def reserve(self, nbytes: int) -> None:
        """Takes credit for a message that is about to be sent."""
        self._in_flight_bytes += nbytes

    def send(self, message: Message) -> Envelope:
        """The message with its number, ready to travel."""
        envelope = Envelope(self._edge, self._sequence, message)
        self._sequence += 1
        return envelope

    def grant(self, nbytes: int) -> None:
        """Gives back the credit of bytes that were released."""
        self._in_flight_bytes -= nbytes
        if self._in_flight_bytes < 0:
            raise ProtocolError(f"edge {self._edge}: more credit has come back than was taken")


class Inlet:
    """The receiving end of one or more edges: puts the messages of each edge in the order of their numbers."""

    def __init__(self, edges: Iterable[str]) -> None:
        self._next = dict.fromkeys(edges, 0)
        self._early: dict[str, dict[int, Message]] = {edge: {} for edge in self._next}

    def add(self, edge: str) -> None:
        """Adds an edge, unless it is here already."""
        self._next.setdefault(edge, 0)
        self._early.setdefault(edge, {})

    def receive(self, envelope: Envelope) -> list[Message]:
        """The messages that are in order now: none, or this message and the messages that waited for it."""
        edge, sequence = envelope.edge, envelope.sequence
        if edge not in self._next:
            raise ProtocolError(f"a message has come on the unknown edge {edge}")
        early = self._early[edge]
        if sequence < self._next[edge] or sequence in early:
            raise ProtocolError(f"edge {edge}: message {sequence} came twice")
        early[sequence] = envelope.message
        ready = []
        while (message := early.pop(self._next[edge], None)) is not None:
            ready.append(message)
            self._next[edge] += 1
        return ready

    def gaps(self) -> dict[str, int]:
        """Edge → the number that later messages wait for.  A gap that lasts is an error."""
        return {edge: self._next[edge] for edge, early in self._early.items() if early}

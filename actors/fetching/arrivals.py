"""What comes to a fetch actor with the vnodes that it gains, and what has to wait until all of that is there."""

from __future__ import annotations

from collections import deque
from collections.abc import Set

from actors.fetching.handover import Handover
from actors.protocol.messages import Message
from state.errors import ProtocolError


class Arrivals:
    """The handovers to one fetch actor, which may come before or behind the barrier that announces them."""

    def __init__(self) -> None:
        self._epoch = 0
        self._missing: Set[str] = frozenset()
        self._here: dict[tuple[int, str], Handover] = {}
        self._waiting: deque[Message] = deque()

    @property
    def is_waiting(self) -> bool:
        """Whether messages have to wait."""
        return bool(self._missing)

    def expect(self, epoch: int, givers: Set[str]) -> None:
        """Vnodes come from these with the barrier that begins an epoch."""
        self._epoch, self._missing = epoch, givers

    def add(self, handover: Handover) -> None:
        """Something has come."""
        key = handover.epoch, handover.giver
        if key in self._here:
            raise ProtocolError(f"{handover.giver} has handed its vnodes of epoch {handover.epoch} over twice")
        self._here[key] = handover

    def take(self) -> list[Handover]:
        """What was expected, once, when all of it is there; nothing before."""
        keys = [(self._epoch, giver) for giver in sorted(self._missing)]
        if not all(key in self._here for key in keys):
            return []
        self._missing = frozenset()
        return [self._here.pop(key) for key in keys]

    def hold(self, message: Message) -> None:
        """A message comes behind the barrier, and may be about what has not come."""
        self._waiting.append(message)

    def next_held(self) -> Message | None:
        """The next message that waits no more."""
        return None if self._missing or not self._waiting else self._waiting.popleft()

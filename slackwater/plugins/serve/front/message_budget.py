"""Memory for messages: all clients of an endpoint share it."""

from __future__ import annotations

_FREE_BYTES = 64 << 10


class MessageBudget:
    """Bytes of messages that are not answered yet.

    Args:
        largest: the most bytes of all clients together, in addition to 64 KiB of each client.
    """

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self.taken = 0

    def share(self) -> MessageShare:
        """A share for one group of messages."""
        return MessageShare(self)

    def take(self, nbytes: int) -> bool:
        """Takes some bytes; False if they are not there."""
        if self.taken + nbytes > self._largest:
            return False
        self.taken += nbytes
        return True

    def give_back(self, nbytes: int) -> None:
        """Returns bytes that were taken."""
        self.taken -= nbytes


class MessageShare:
    """The bytes that one group of messages has taken from the budget.

    The first 64 KiB are free, so that ordinary statements are served when other clients have taken everything.
    """

    def __init__(self, budget: MessageBudget) -> None:
        self._budget = budget
        self._taken = 0

    def resize(self, nbytes: int) -> bool:
        """Changes the size of the group to some bytes; False, and no change, if the budget has too few."""
        taken = max(0, nbytes - _FREE_BYTES)
        if taken > self._taken and not self._budget.take(taken - self._taken):
            return False
        if taken < self._taken:
            self._budget.give_back(self._taken - taken)
        self._taken = taken
        return True

    def release(self) -> None:
        """Returns the whole share; a second call does nothing."""
        self.resize(0)

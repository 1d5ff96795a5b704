"""Which messages of a queue are done with: those whose files are all in committed epochs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class QueueMessage:
    """A message as it was received.

    Args:
        message_id: the same at every delivery.
        receipt: by which this delivery is deleted or kept invisible.
        body: what it says.
        sent_s: when it was sent, in seconds since 1970.
        deliveries: how often it was received, this time included.
    """

    message_id: str
    receipt: str
    body: str
    sent_s: float
    deliveries: int = 1


@dataclass
class _Tracked:
    message: QueueMessage
    invisible_until_s: float
    waiting: set[str] = field(default_factory=set)
    epoch: int = 0


class MessageTracker:
    """Knows what became of the paths that messages name, and so which messages may be deleted.

    A message that is received again while it is tracked is the same one with another receipt: whoever reads the queue
    has been slower than its visibility, and nothing is done twice.

    Args:
        visibility_s: how long a message stays invisible after it was received, or its visibility was extended.
    """

    def __init__(self, visibility_s: float) -> None:
        self._visibility_s = visibility_s
        self._tracked: dict[str, _Tracked] = {}
        self._by_path: dict[str, set[str]] = {}
        self._committed = 0
        self.redelivered = 0

    def __len__(self) -> int:
        return len(self._tracked)

    @property
    def oldest_sent_s(self) -> float | None:
        """When the oldest message was sent that is not done with; None if there is none."""
        return min((each.message.sent_s for each in self._tracked.values()), default=None)

    def receive(self, message: QueueMessage, paths: Iterable[str], now_s: float) -> bool:
        """A message has come, in which these paths are named.

        Returns:
            Whether they are to be looked at; they are already if the message is tracked.
        """
        if message.deliveries > 1:
            self.redelivered += 1
        tracked = self._tracked.get(message.message_id)
        if tracked is not None:
            tracked.message, tracked.invisible_until_s = message, now_s + self._visibility_s
            return False
        tracked = _Tracked(message, now_s + self._visibility_s, set(paths))
        self._tracked[message.message_id] = tracked
        for path in tracked.waiting:
            self._by_path.setdefault(path, set()).add(message.message_id)
        return True

    def settle(self, path: str, epoch: int) -> None:
        """What the messages say of a path is in this epoch; in one that is committed already if nothing was to do."""
        for message_id in self._by_path.pop(path, ()):
            tracked = self._tracked[message_id]
            tracked.waiting.discard(path)
            tracked.epoch = max(tracked.epoch, epoch)

    def on_committed(self, epoch: int) -> None:
        """All epochs up to this one are committed."""
        self._committed = max(self._committed, epoch)

    def take_done(self) -> list[QueueMessage]:
        """The messages that may be deleted; they are forgotten here."""
        done = [key for key, each in self._tracked.items() if not each.waiting and each.epoch <= self._committed]
        return [self._tracked.pop(key).message for key in done]

    def take_due(self, now_s: float) -> list[QueueMessage]:
        """The messages whose visibility must be extended now: half of it is over."""
        due = [each for each in self._tracked.values() if each.invisible_until_s - now_s <= self._visibility_s / 2]
        for each in due:
            each.invisible_until_s = now_s + self._visibility_s
        return [each.message for each in due]

    @property
    def next_due_s(self) -> float | None:
        """When `take_due` has something again; None while nothing is tracked."""
        until = min((each.invisible_until_s for each in self._tracked.values()), default=None)
        return None if until is None else until - self._visibility_s / 2

"""Tracker of a queue's messages: a message is done with when all its files are in committed epochs."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class QueueMessage:
    """A message of a queue, as received.

    Args:
        message_id: its id, the same at every delivery.
        receipt: the handle of this delivery, to delete it or to keep it invisible.
        sent_s: the time when it was sent, in seconds since 1970.
        deliveries: number of times it was received, this one included.
    """

    message_id: str
    receipt: str
    body: str
    sent_s: float
    deliveries: int = 1


@dataclass(frozen=True)
class QueueDepth:
    """Number of messages in a queue, as the queue estimates it.

    Args:
        visible: messages that wait to be received.
        in_flight: messages that were received and are neither deleted nor visible again.
    """

    visible: int
    in_flight: int


@dataclass
class _Tracked:
    message: QueueMessage
    number: int
    invisible_until_s: float
    waiting: set[str] = field(default_factory=set)
    epoch: int = 0


class MessageTracker:
    """Follows the paths that messages name, until the messages may be deleted.

    A path goes through three stages: named by messages, being looked at, looked at.  The result of a look settles the
    messages that came before it, and none that came while it was under way.  A message that is received again while it
    is tracked is the same one with another receipt: its work took longer than its visibility, and is not done twice.

    Args:
        visibility_s: seconds for which a message stays invisible after it was received or extended.
    """

    def __init__(self, visibility_s: float) -> None:
        self._visibility_s = visibility_s
        # In the order in which they become visible again; a dictionary keeps the order of its insertions.
        self._tracked: dict[str, _Tracked] = {}
        self._unsettled: dict[str, int] = {}
        self._settled: list[tuple[int, str]] = []
        self._named: dict[str, set[str]] = {}
        self._looking: dict[str, set[str]] = {}
        self._looked: dict[str, set[str]] = {}
        self._sent: list[tuple[float, str]] = []
        self._committed = 0
        self.received = self.redelivered = self.deleted = 0

    def __len__(self) -> int:
        return len(self._tracked)

    @property
    def received_once(self) -> int:
        """Number of tracked messages that were received once: no other reader can have deleted them."""
        return sum(each.message.deliveries == 1 for each in self._tracked.values())

    @property
    def oldest_sent_s(self) -> float | None:
        """The time when the oldest tracked message was sent, in seconds since 1970; None without messages."""
        while self._sent and self._sent[0][1] not in self._tracked:
            heapq.heappop(self._sent)
        return self._sent[0][0] if self._sent else None

    @property
    def last(self) -> int:
        """The number of the last message; numbers grow."""
        return self.received

    def is_settled(self, last: int) -> bool:
        """Whether all paths that the messages up to this number name are handed on."""
        return next(iter(self._unsettled.values()), last + 1) > last

    def receive(self, message: QueueMessage, paths: Iterable[str], now_s: float, epoch: int = 0) -> bool:
        """A message has come.

        Args:
            paths: the paths that it names.
            now_s: of the monotonic clock.
            epoch: an epoch that must be committed before it is deleted, apart from those of the paths.

        Returns:
            Whether the paths must be looked at: False for a message that is tracked already.
        """
        self.redelivered += message.deliveries > 1
        tracked = self._tracked.pop(message.message_id, None)
        if tracked is not None:
            tracked.message, tracked.invisible_until_s = message, now_s + self._visibility_s
            self._tracked[message.message_id] = tracked
            return False
        self.received += 1
        key = message.message_id
        tracked = _Tracked(message, self.received, now_s + self._visibility_s, set(paths), epoch)
        self._tracked[key] = tracked
        heapq.heappush(self._sent, (message.sent_s, key))
        if tracked.waiting:
            self._unsettled[key] = tracked.number
        else:
            heapq.heappush(self._settled, (epoch, key))
        for path in tracked.waiting:
            self._named.setdefault(path, set()).add(key)
        return True

    def look(self, paths: Iterable[str]) -> None:
        """A look at these paths begins."""
        for path in paths:
            self._looking[path] = self._named.pop(path, set())

    def on_looked(self, path: str, *, again: bool) -> None:
        """A look at a path has ended; its result counts, or it is looked at again."""
        stage = self._named if again else self._looked
        stage.setdefault(path, set()).update(self._looking.pop(path, ()))

    def settle(self, path: str, epoch: int) -> None:
        """The results of looks at a path are in this epoch; 0 if they changed nothing."""
        for key in self._looked.pop(path, ()):
            tracked = self._tracked[key]
            tracked.waiting.discard(path)
            tracked.epoch = max(tracked.epoch, epoch)
            if not tracked.waiting:
                del self._unsettled[key]
                heapq.heappush(self._settled, (tracked.epoch, key))

    def on_committed(self, epoch: int) -> None:
        """All epochs up to this one are committed."""
        self._committed = max(self._committed, epoch)

    def take_done(self) -> list[QueueMessage]:
        """Takes the messages that may be deleted out of the tracker."""
        done = []
        while self._settled and self._settled[0][0] <= self._committed:
            _, key = heapq.heappop(self._settled)
            done.append(self._tracked.pop(key).message)
        self.deleted += len(done)
        return done

    def take_due(self, now_s: float) -> list[QueueMessage]:
        """The messages whose visibility must be extended now, because half of it is over."""
        due = []
        while (at := self.next_due_s) is not None and at <= now_s:
            key = next(iter(self._tracked))
            tracked = self._tracked[key] = self._tracked.pop(key)
            tracked.invisible_until_s = now_s + self._visibility_s
            due.append(tracked.message)
        return due

    def take_all(self) -> list[QueueMessage]:
        """Takes all messages out of the tracker."""
        everything = [each.message for each in self._tracked.values()]
        for each in (self._tracked, self._unsettled, self._settled, self._named, self._looking, self._looked):
            each.clear()
        return everything

    @property
    def next_due_s(self) -> float | None:
        """The time at which `take_due` has messages again; None while no message is tracked."""
        first = next(iter(self._tracked.values()), None)
        return None if first is None else first.invisible_until_s - self._visibility_s / 2

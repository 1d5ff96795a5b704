"""Which messages of a queue are done with: those whose files are all in committed epochs."""

from __future__ import annotations

import heapq
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


@dataclass(frozen=True)
class QueueDepth:
    """How many messages a queue holds, as it estimates that itself.

    Args:
        visible: that wait to be received.
        in_flight: that were received and are neither deleted nor visible again.
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
    """Knows what became of the paths that messages name, and so which messages may be deleted.

    A path goes through three stages: named by messages, being looked at, looked at.  What a look has found settles the
    messages that came before it, and none that came while it was under way.  A message that is received again while it
    is tracked is the same one with another receipt: whoever reads the queue has been slower than its visibility, and
    nothing is done twice.

    Args:
        visibility_s: how long a message stays invisible after it was received, or its visibility was extended.
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
    def oldest_sent_s(self) -> float | None:
        """When the oldest message was sent that is not done with; None if there is none."""
        while self._sent and self._sent[0][1] not in self._tracked:
            heapq.heappop(self._sent)
        return self._sent[0][0] if self._sent else None

    @property
    def last(self) -> int:
        """The number of the last message that has come; numbers grow."""
        return self.received

    def is_settled(self, last: int) -> bool:
        """Whether everything that the messages up to this number say has been handed on."""
        return next(iter(self._unsettled.values()), last + 1) > last

    def receive(self, message: QueueMessage, paths: Iterable[str], now_s: float, epoch: int = 0) -> bool:
        """A message has come, in which these paths are named.

        Args:
            message: it.
            paths: to look at.
            now_s: of the monotonic clock.
            epoch: that must be committed whatever the paths are.

        Returns:
            Whether they are to be looked at; they are already if the message is tracked.
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
        """These paths are being looked at from here on."""
        for path in paths:
            self._looking[path] = self._named.pop(path, set())

    def on_looked(self, path: str, *, again: bool) -> None:
        """What is there is known; or not, and it is looked at again."""
        stage = self._named if again else self._looked
        stage.setdefault(path, set()).update(self._looking.pop(path, ()))

    def settle(self, path: str, epoch: int) -> None:
        """What was seen of a path is in this epoch; in one that is committed already if nothing was to do."""
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
        """The messages that may be deleted; they are forgotten here."""
        done = []
        while self._settled and self._settled[0][0] <= self._committed:
            _, key = heapq.heappop(self._settled)
            done.append(self._tracked.pop(key).message)
        self.deleted += len(done)
        return done

    def take_due(self, now_s: float) -> list[QueueMessage]:
        """The messages whose visibility must be extended now: half of it is over."""
        due = []
        while (at := self.next_due_s) is not None and at <= now_s:
            key = next(iter(self._tracked))
            tracked = self._tracked[key] = self._tracked.pop(key)
            tracked.invisible_until_s = now_s + self._visibility_s
            due.append(tracked.message)
        return due

    def take_all(self) -> list[QueueMessage]:
        """Every message that is not done with; nothing is known of them from here on."""
        everything = [each.message for each in self._tracked.values()]
        for known in (self._tracked, self._unsettled, self._settled, self._named, self._looking, self._looked):
            known.clear()
        return everything

    @property
    def next_due_s(self) -> float | None:
        """When `take_due` has something again; None while nothing is tracked."""
        first = next(iter(self._tracked.values()), None)
        return None if first is None else first.invisible_until_s - self._visibility_s / 2

"""A queue of a bucket's events that breaks every promise except that it forgets few of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from actors.files import PathKey
from actors.notifications.message_tracker import QueueDepth, QueueMessage
from tests.simulation.world.simulated_clock import SimulatedClock

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

BUCKET = "simulated"
VISIBILITY_S = 30.0
POLLERS = 2
_LOST, _TWICE, _LATE, _POISON, _AGAIN, _NOT_DELETED, _STALE = 0.08, 0.15, 0.2, 0.05, 0.05, 0.1, 0.5
_LATE_S = (1.0, 10.0, 60.0)
_AT_ONCE = 10


@dataclass
class _Sent:
    """A message in the queue.

    Args:
        message_id: its id.
        body: its text.
        sent_s: time at which it was sent.
        visible_s: time from which it can be received.
        change: path and number of the change behind it; None for poison.
    """

    message_id: str
    body: str
    sent_s: float
    visible_s: float
    change: tuple[PathKey, int] | None
    deliveries: int = 0
    receipt: str = ""


def queue_url(source: str) -> str:
    """The queue of a source."""
    return f"https://queue/{source}"


class EventQueue:
    """Messages come twice, late, in any order, again while they are worked on, and after they were deleted.

    Args:
        source: the source of the events.
        random: makes every choice.
        clock: tells when messages become visible.
        loses: whether some messages never come.
    """

    def __init__(self, source: str, random: Random, clock: SimulatedClock, *, loses: bool) -> None:
        self.url = queue_url(source)
        self._source, self._random, self._clock, self._loses = source, random, clock, loses
        self._messages: dict[str, _Sent] = {}
        self._numbers = 0
        self.poison: set[str] = set()
        self.lost: set[tuple[PathKey, int]] = set()

    def on_change(self, path: str, size: int | None, change: int) -> None:
        """An object has changed to this size, or is gone."""
        chance = self._random.random
        if self._loses and chance() < _LOST:
            self.lost.add(((self._source, path), change))
        else:
            for _ in range(1 + (chance() < _TWICE)):
                self._send(_body(path, size), ((self._source, path), change))
        if chance() < _POISON:
            self._send("what is this?", None)

    def receive(self) -> list[QueueMessage]:
        """Some of the messages that can be received, in any order."""
        now_s, random = self._clock.monotonic(), self._random
        visible = [each for each in self._messages.values() if each.visible_s <= now_s or random.random() < _AGAIN]
        random.shuffle(visible)
        return [self._deliver(each, now_s) for each in visible[: random.randint(1, _AT_ONCE)]]

    @property
    def depth(self) -> QueueDepth:
        """Number of visible and of invisible messages."""
        visible = sum(each.visible_s <= self._clock.monotonic() for each in self._messages.values())
        return QueueDepth(visible, len(self._messages) - visible)

    @property
    def next_s(self) -> float:
        """Time at which the next message can be received."""
        return min((each.visible_s for each in self._messages.values()), default=float("inf"))

    def extend(self, messages: Iterable[QueueMessage], visibility_s: float) -> None:
        """Keeps messages invisible for another while, if their receipts are the last."""
        for message in messages:
            sent = self._messages.get(message.message_id)
            if sent is not None and sent.receipt == message.receipt:
                sent.visible_s = self._clock.monotonic() + visibility_s

    def delete(self, messages: Iterable[QueueMessage]) -> list[tuple[str, tuple[PathKey, int] | None]]:
        """Deletes messages, or not.  Returns the ids of the deleted ones, and the changes behind them."""
        gone = []
        for message in messages:
            sent = self._messages.get(message.message_id)
            if sent is None:
                continue
            gone.append((sent.message_id, sent.change))
            is_stale = sent.receipt != message.receipt and self._random.random() < _STALE
            if not is_stale and self._random.random() >= _NOT_DELETED:
                del self._messages[message.message_id]
        return gone

    def _send(self, body: str, change: tuple[PathKey, int] | None) -> None:
        self._numbers += 1
        now_s, random = self._clock.monotonic(), self._random
        late_s = random.choice(_LATE_S) if random.random() < _LATE else 0.0
        message_id = f"{self._source}-{self._numbers}"
        if change is None:
            self.poison.add(message_id)
        self._messages[message_id] = _Sent(message_id, body, now_s, now_s + late_s, change)

    def _deliver(self, sent: _Sent, now_s: float) -> QueueMessage:
        sent.deliveries += 1
        sent.receipt = f"{sent.message_id}/{sent.deliveries}"
        sent.visible_s = now_s + VISIBILITY_S
        return QueueMessage(sent.message_id, sent.receipt, sent.body, sent.sent_s, sent.deliveries)


def _body(path: str, size: int | None) -> str:
    item = {"key": path} if size is None else {"key": path, "size": size, "eTag": "0"}
    record = {
        "eventName": "ObjectRemoved:Delete" if size is None else "ObjectCreated:Put",
        "eventTime": "2020-01-01T00:00:00.000Z",
        "s3": {"bucket": {"name": BUCKET}, "object": item},
    }
    return json.dumps({"Records": [record]})

"""What a queue of events asks a source to look at.

An event is a hint, and the bucket is the truth: every object that an event names is looked at, and what is there now
counts.  So events that come twice, late, in any order or about an object that has changed again do no harm.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from actors.bucket_event import PoisonMessageError, bucket_events
from actors.message_tracker import MessageTracker, QueueMessage
from actors.path_filter import PathFilter


@dataclass(frozen=True)
class PoisonMessage:
    """A message that says nothing of this source's bucket, and never will."""

    message: QueueMessage
    reason: str


class EventFeed:
    """The messages of one source's queue, from their receipt to their deletion.

    Args:
        bucket: that the source reads.
        prefix: of its objects' keys; empty, or with a slash at its end.
        path_filter: which paths below it the source takes.
        visibility_s: see `MessageTracker`.
        most_messages: how many are tracked at once.
    """

    def __init__(
        self, *, bucket: str, prefix: str, path_filter: PathFilter, visibility_s: float, most_messages: int
    ) -> None:
        self._bucket, self._prefix, self._filter = bucket, prefix, path_filter
        self._tracker = MessageTracker(visibility_s)
        self._most_messages = most_messages
        # In the order in which they were named; a dictionary is an ordered set.
        self._to_look_at: dict[str, None] = {}
        self._poison: list[PoisonMessage] = []

    @property
    def tracker(self) -> MessageTracker:
        """What became of the messages."""
        return self._tracker

    @property
    def room(self) -> int:
        """How many more messages may be received."""
        return max(0, self._most_messages - len(self._tracker))

    def receive(self, messages: Iterable[QueueMessage], now_s: float) -> None:
        """Messages have come."""
        for message in messages:
            try:
                paths = self._paths(message)
            except PoisonMessageError as error:
                self._poison.append(PoisonMessage(message, str(error)))
                continue
            if self._tracker.receive(message, paths, now_s):
                self._to_look_at |= dict.fromkeys(paths)

    def take_paths(self, limit: int) -> tuple[str, ...]:
        """The next paths to look at."""
        taken = tuple(path for path, _ in zip(self._to_look_at, range(limit), strict=False))
        for path in taken:
            del self._to_look_at[path]
        return taken

    def take_poison(self) -> list[PoisonMessage]:
        """The messages that are none, since the last call."""
        poison, self._poison = self._poison, []
        return poison

    def _paths(self, message: QueueMessage) -> list[str]:
        """Paths of the source that a message names, relative to its URL.

        Raises:
            PoisonMessageError: it is no message of this bucket.
        """
        events = bucket_events(message.body)
        foreign = next((each.bucket for each in events if each.bucket != self._bucket), None)
        if foreign is not None:
            raise PoisonMessageError(f"it is about the bucket {foreign!r}, and the source reads {self._bucket!r}")
        below = [each.key.removeprefix(self._prefix) for each in events if each.key.startswith(self._prefix)]
        return list(dict.fromkeys(path for path in below if self._filter.accepts(path)))

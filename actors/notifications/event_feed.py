"""Feed of one source's events: from messages of a queue to paths to look at.

An event is a hint, and the bucket is the truth: every object that an event names is looked at, and its state then
counts.  So events that come twice, late, out of order or about an object that has changed again do no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from actors.notifications.bucket_event import PoisonMessageError, bucket_events
from actors.notifications.message_tracker import MessageTracker, QueueMessage
from actors.sources.path_filter import PathFilter
from state.places.table_signs import sign_of
from state.tables.delta import DeltaBuilder
from state.tables.fingerprint import path_fingerprint
from state.tables.keys import encode_key
from state.vnode import vnode_of


@dataclass(frozen=True)
class PoisonMessage:
    """A message that is not an event of this source's bucket.

    Args:
        queue: the URL of its queue.
        reason: the fault of the message, for the user.
    """

    message: QueueMessage
    queue: str
    reason: str

    def quarantine(self, delta: DeltaBuilder, source: str) -> None:
        """Keeps it among the bad records of a source: without a row, with the queue's URL and its id as path."""
        path = f"{self.queue}#{self.message.message_id}"
        version = path_fingerprint(source, path)[:8]
        delta.put(
            "quarantine",
            encode_key(source, path, version, 0),
            vnode_of(path),
            source=source,
            path=path,
            version=version,
            row=None,
            raw=self.message.body.encode(),
            reason=self.reason,
        )


class EventFeed:
    """The messages of one source's queue, from their receipt to their deletion.

    Args:
        queue: the URL of the queue.
        bucket: the name of the bucket that the source reads.
        prefix: the prefix of its objects' keys; empty, or with a slash at its end.
        path_filter: the paths below the prefix that the source takes.
        visibility_s: see `MessageTracker`.
        most_messages: the most messages that are tracked at once.

    Attributes:
        tracker: the messages that are not done with.
        signs: paths of tables and roots among the names of events, see `sign_of`; who reads them clears the list.
    """

    def __init__(
        self, *, queue: str, bucket: str, prefix: str, path_filter: PathFilter, visibility_s: float, most_messages: int
    ) -> None:
        self.queue = queue
        self._bucket, self._prefix, self._filter = bucket, prefix, path_filter
        self._most_messages = most_messages
        self.tracker = MessageTracker(visibility_s)
        self.signs: list[str] = []
        # In the order of their events; a dictionary is an ordered set.
        self._to_look_at: dict[str, None] = {}

    @property
    def room(self) -> int:
        """Number of messages that may still be received."""
        return max(0, self._most_messages - len(self.tracker))

    @property
    def waiting(self) -> int:
        """Number of paths that wait for a look."""
        return len(self._to_look_at)

    def receive(self, messages: Iterable[QueueMessage], now_s: float, epoch: int) -> list[PoisonMessage]:
        """Takes messages that have come.

        Args:
            now_s: of the monotonic clock.

        Returns:
            The poison messages among them, which are done with when this epoch is committed.
        """
        poison = []
        for message in messages:
            try:
                paths = self._paths(message)
            except PoisonMessageError as error:
                if self.tracker.receive(message, (), now_s, epoch):
                    poison.append(PoisonMessage(message, self.queue, str(error)))
                continue
            if self.tracker.receive(message, paths, now_s):
                self.look_at(paths)
        return poison

    def look_at(self, paths: Iterable[str]) -> None:
        """Adds paths to look at, which an event or the list step names."""
        self._to_look_at |= dict.fromkeys(paths)

    def take_paths(self, limit: int) -> Sequence[str]:
        """Takes up to `limit` paths for one look, which begins now."""
        taken = [path for path, _ in zip(self._to_look_at, range(limit), strict=False)]
        for path in taken:
            del self._to_look_at[path]
        self.tracker.look(taken)
        return taken

    def _paths(self, message: QueueMessage) -> list[str]:
        """The paths of the source that a message names, relative to the source's URL.

        Raises:
            PoisonMessageError: the message is not an event of this bucket.
        """
        events = bucket_events(message.body)
        foreign = next((each.bucket for each in events if each.bucket != self._bucket), None)
        if foreign is not None:
            raise PoisonMessageError(f"it is about the bucket {foreign!r}, and the source reads {self._bucket!r}")
        below = [each.key.removeprefix(self._prefix) for each in events if each.key.startswith(self._prefix)]
        self.signs += [path for path in below if sign_of(path) is not None]
        return list(dict.fromkeys(path for path in below if self._filter.accepts(path)))

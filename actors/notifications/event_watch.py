"""Watch of one source's queue: when to receive messages, look at paths, and delete messages that are committed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from actors.notifications.event_feed import EventFeed, PoisonMessage
from actors.notifications.instructions import DeleteMessages, ExtendMessages, LookAt, Receive, ReleaseMessages
from actors.notifications.instructions import EventInstruction as Instruction
from actors.notifications.message_tracker import QueueDepth, QueueMessage
from actors.protocol.reports import MessageProgress

_PER_REQUEST = 10
_LONG_POLL_S = 20.0
# SQS asks all of its servers only if it may wait: a poll without a wait may miss messages.
_SHORT_POLL_S = 1.0
_AGAIN_S = 1.0
_LOOKED_AT_ONCE = 256


class EventWatch:
    """Decides; its shell receives, looks and deletes.

    One look, at many paths, is under way at a time, so that of two looks at a path the later one shows the later state.

    Args:
        pollers: number of requests that wait for messages side by side.

    Attributes:
        queue: the URL of the queue.
    """

    def __init__(self, feed: EventFeed, pollers: int) -> None:
        self.queue = feed.queue
        self._feed, self._pollers = feed, pollers
        self._receiving = 0
        self._looking: frozenset[str] = frozenset()
        self._doubtful: set[str] = set()
        # The last mark after which the queue was empty once, and the number of the last message before that.
        self._drained_mark, self._drained_at = 0, 0
        self._asks_for_mark = False
        self._again_s = 0.0
        self._poison = 0

    def ask(self, now_s: float, mark: int, *, may_go_on: bool) -> list[Instruction]:
        """Instructions for now.

        Args:
            now_s: of the monotonic clock.
            mark: the last mark, see `ListExecutor.on_mark`; 0 if it is complete.
            may_go_on: whether messages may be received and paths looked at.
        """
        instructions: list[Instruction] = []
        tracker = self._feed.tracker
        if done := tracker.take_done():
            instructions.append(DeleteMessages(tuple(done)))
        if due := tracker.take_due(now_s):
            instructions.append(ExtendMessages(tuple(due)))
        if not may_go_on:
            return instructions
        if not self._looking and self._feed.waiting:
            paths = tuple(self._feed.take_paths(_LOOKED_AT_ONCE))
            self._looking = frozenset(paths)
            instructions.append(LookAt(paths))
        return [*instructions, *self._receive(now_s, mark)]

    def wakes(self, mark: int, *, may_go_on: bool) -> list[float]:
        """Times at which to call `ask` again; arguments as for `ask`."""
        due_s = self._feed.tracker.next_due_s
        waits = may_go_on and mark > self._drained_mark and not self._asks_for_mark
        return [*([] if due_s is None else [due_s]), *([self._again_s] if waits else [])]

    def on_messages(
        self, receive: Receive, messages: Sequence[QueueMessage], depth: QueueDepth | None, now_s: float, epoch: int
    ) -> list[PoisonMessage]:
        """A `Receive` has ended.

        Args:
            messages: the messages that have come.
            depth: the depth of the queue; None if it was not asked for.
            now_s: of the monotonic clock.

        Returns:
            The poison messages among them.
        """
        if receive.is_extra:
            self._asks_for_mark = False
        else:
            self._receiving -= 1
        poison = self._feed.receive(messages, now_s, epoch)
        self._poison += len(poison)
        if depth is not None:
            # A message that another reader has received and not deleted may come back.  One that came again does not
            # count as in flight here: its earlier reader may have deleted it.
            if not messages and depth.visible == 0 and depth.in_flight <= self._feed.tracker.received_once:
                self._drained_mark = max(self._drained_mark, receive.mark)
                self._drained_at = self._feed.tracker.last
            elif receive.is_extra:
                self._again_s = now_s + _AGAIN_S
        return poison

    def take_signs(self) -> list[str]:
        """Takes the names of events that show a table or a root."""
        signs, self._feed.signs = self._feed.signs, []
        return signs

    def on_looked(self) -> frozenset[str]:
        """The `LookAt` has ended.

        Returns:
            Paths of which a version was handed on meanwhile: the look may be older, and is made again.
        """
        doubtful = frozenset(self._doubtful)
        for path in self._looking:
            self._feed.tracker.on_looked(path, again=path in doubtful)
        self._feed.look_at(sorted(doubtful))
        self._looking, self._doubtful = frozenset(), set()
        return doubtful

    def look_at(self, paths: Iterable[str]) -> None:
        """Has paths looked at that no event has named."""
        self._feed.look_at(paths)

    def on_handed_on(self, path: str) -> None:
        """A version of a path was handed on: a look at it that is under way may show the state before."""
        if path in self._looking:
            self._doubtful.add(path)

    @property
    def is_looking(self) -> bool:
        """Whether a look is under way or a path waits for one."""
        return bool(self._looking or self._feed.waiting)

    def settle(self, path: str, epoch: int) -> None:
        """The results of looks at a path are in this epoch; see `MessageTracker.settle`."""
        self._feed.tracker.settle(path, epoch)

    def on_committed(self, epoch: int) -> None:
        """All epochs up to this one are committed."""
        self._feed.tracker.on_committed(epoch)

    def is_complete(self, mark: int) -> bool:
        """Whether every file is handed on that the messages before this mark name."""
        return self._drained_mark >= mark and self._feed.tracker.is_settled(self._drained_at)

    def release(self) -> list[Instruction]:
        """Ends the watch: the next reader can receive at once the messages that are not done with."""
        messages = self._feed.tracker.take_all()
        return [ReleaseMessages(tuple(messages))] if messages else []

    def state(self) -> dict[str, object]:
        """Columns of the table `list_state`."""
        progress = self.progress()
        oldest_s = progress.oldest_sent_s
        return {
            "messages": progress.received,
            "redelivered": progress.redelivered,
            "poison": progress.poison,
            "tracked": progress.tracked,
            "oldest_sent_at": None if oldest_s is None else datetime.fromtimestamp(oldest_s, UTC),
        }

    def progress(self) -> MessageProgress:
        """Counts of messages since the start."""
        tracker = self._feed.tracker
        return MessageProgress(
            received=tracker.received,
            redelivered=tracker.redelivered,
            poison=self._poison,
            deleted=tracker.deleted,
            tracked=len(tracker),
            oldest_sent_s=tracker.oldest_sent_s,
        )

    def _receive(self, now_s: float, mark: int) -> list[Instruction]:
        instructions: list[Instruction] = []
        if mark > self._drained_mark and not self._asks_for_mark and now_s >= self._again_s:
            # The other requests began before the mark, and may wait for long.
            self._asks_for_mark = True
            instructions.append(Receive(mark, _SHORT_POLL_S, is_extra=True))
        while self._receiving < self._pollers and self._feed.room >= _PER_REQUEST * (self._receiving + 1):
            self._receiving += 1
            instructions.append(Receive(mark, _LONG_POLL_S))
        return instructions

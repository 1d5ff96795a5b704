"""How the files of a run's sources are found, over all of its attempts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from actors.protocol.reports import ListProgress, MessageProgress
from actors.protocol.run_state import RunState
from state.tables.discovery_progress import DiscoveryProgress, QueueProgress


class DiscoveryTotals:
    """Adds what the list actors of this attempt say of messages to what those of the earlier ones have said.

    Nothing is taken back: what an attempt had received when it failed comes again, and counts again.

    Args:
        queues: source → URL of its queue of events, if it has one.
    """

    def __init__(self, queues: Mapping[str, str]) -> None:
        self._queues = dict(queues)
        self._before: dict[str, ListProgress] = {}

    def begin(self, last: RunState) -> None:
        """An attempt begins; `last` is how far the one before it came."""
        self._before |= {lister.source: self.of(lister) for lister in last.lists}

    def of(self, lister: ListProgress) -> ListProgress:
        """What a list actor says, with the messages of all attempts and the last listing of any."""
        before = self._before.get(lister.source)
        if before is None:
            return lister
        listed = lister if _is_later(lister.listed_at, before.listed_at) else before
        messages = _sum(before.messages, lister.messages)
        return replace(lister, messages=messages, listed_at=listed.listed_at, found=listed.found)

    def progress(self, state: RunState) -> dict[str, DiscoveryProgress]:
        """Source → what there is to say of it, as of the state of the attempt that runs."""
        # A list actor that has not said anything yet has no period.
        return {each.source: self._progress(self.of(each)) for each in state.lists if each.period_s}

    def queue(self, source: str) -> str | None:
        """The URL of its queue; None if it has none."""
        return self._queues.get(source)

    def _progress(self, lister: ListProgress) -> DiscoveryProgress:
        queue, messages = None, lister.messages
        if messages is not None:
            queue = QueueProgress(
                url=self.queue(lister.source),
                in_flight=messages.tracked,
                oldest_sent_at=_time(messages.oldest_sent_s),
                received=messages.received,
                redelivered=messages.redelivered,
            )
        return DiscoveryProgress(lister.listed_at, lister.found, lister.period_s, queue)


def _sum(before: MessageProgress | None, now: MessageProgress | None) -> MessageProgress | None:
    if before is None:
        return now
    now = now or MessageProgress()
    return replace(
        now,
        received=before.received + now.received,
        redelivered=before.redelivered + now.redelivered,
        poison=before.poison + now.poison,
        deleted=before.deleted + now.deleted,
    )


def _is_later(time: datetime | None, other: datetime | None) -> bool:
    return other is None or (time is not None and time >= other)


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)

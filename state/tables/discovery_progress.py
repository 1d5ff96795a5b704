"""Progress of discovery: listings of a source and its queue of events, as `owner.json` and `list_state` keep them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

from state.json_document import moment_of


@dataclass(frozen=True)
class QueueProgress:
    """Progress of a source's queue of events.  Counts start with the run.

    Args:
        url: the URL of the queue; None until it is known.
        in_flight: the number of messages received and not yet finished.
        oldest_sent_at: the time at which the oldest of them was sent; None without messages in flight.
        received: the number of messages received.
        redelivered: the number of deliveries of messages that this or another receiver had received before.
    """

    url: str | None = None
    in_flight: int = 0
    oldest_sent_at: datetime | None = None
    received: int = 0
    redelivered: int = 0


@dataclass(frozen=True)
class DiscoveryProgress:
    """Progress of discovery of one source.

    Args:
        listed_at: the end of the last listing; None before the first.
        found: the number of new and changed files in it without an event.
        period_s: seconds from the start of one listing to the start of the next; None if unknown.
        queue: the progress of its queue of events; None for a source without a queue.
        paused_removals: the number of missing files whose rows stay in the views until their removal is allowed.
        paused: the reason why the source hands no file on, with the next step; None while it is read.
    """

    listed_at: datetime | None = None
    found: int = 0
    period_s: float | None = None
    queue: QueueProgress | None = None
    paused_removals: int = 0
    paused: str | None = None

    def at_rest(self) -> DiscoveryProgress:
        """The same progress without messages in flight."""
        queue = None if self.queue is None else replace(self.queue, in_flight=0, oldest_sent_at=None)
        return replace(self, queue=queue)

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> DiscoveryProgress:
        """The progress from a row of the table `list_state`, as of the last epoch that handed on a file."""
        queue = None
        if row["queue"] is not None or row["messages"] is not None:
            queue = QueueProgress(
                url=row["queue"],
                in_flight=row["tracked"] or 0,
                oldest_sent_at=row["oldest_sent_at"],
                received=row["messages"] or 0,
                redelivered=row["redelivered"] or 0,
            )
        return cls(row["listed_at"], row["found"] or 0, row["period_s"], queue)

    @classmethod
    def of_json(cls, recorded: Mapping[str, Any]) -> DiscoveryProgress:
        """The progress from JSON, with times as text; unknown fields are ignored."""
        queue = recorded.get("queue")
        return cls(**{**_known(cls, recorded), "queue": None if queue is None else _queue_of(queue)})


def _queue_of(recorded: Mapping[str, Any]) -> QueueProgress:
    return QueueProgress(**_known(QueueProgress, recorded))


def _known(kind: type[DiscoveryProgress] | type[QueueProgress], recorded: Mapping[str, Any]) -> dict[str, Any]:
    names = {each.name for each in fields(kind)}
    return {
        name: moment_of(value) if name.endswith("_at") and value else value
        for name, value in recorded.items()
        if name in names
    }

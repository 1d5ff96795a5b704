"""How the files of a source are being found, in the words of `owner.json` and of the table `list_state`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class QueueProgress:
    """What became of the messages of a source's queue of events.  Counts run from the start of the run.

    Args:
        url: of the queue; None if that is not known yet.
        in_flight: messages that are being worked on.
        oldest_sent_at: when the oldest of them was sent; None if there is none.
        received: messages.
        redelivered: deliveries of messages that had been received before, by whomever.
    """

    url: str | None = None
    in_flight: int = 0
    oldest_sent_at: datetime | None = None
    received: int = 0
    redelivered: int = 0


@dataclass(frozen=True)
class DiscoveryProgress:
    """How the files of a source are being found.

    Args:
        listed_at: when the last listing ended; None if none has.
        found: new and changed files that it found, of which no event had told.
        period_s: seconds from the beginning of one listing to that of the next; None if that is not known.
        queue: of its events; None if there is none.
    """

    listed_at: datetime | None = None
    found: int = 0
    period_s: float | None = None
    queue: QueueProgress | None = None

    def at_rest(self) -> DiscoveryProgress:
        """The same while nobody works on a message."""
        queue = None if self.queue is None else replace(self.queue, in_flight=0, oldest_sent_at=None)
        return replace(self, queue=queue)

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> DiscoveryProgress:
        """What a row of the table `list_state` says: as of the last epoch that handed something on."""
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
        """What JSON says of the fields of one, with times as text; fields that are not known are left out."""
        queue = recorded.get("queue")
        return cls(**{**_known(cls, recorded), "queue": None if queue is None else _queue_of(queue)})


def _queue_of(recorded: Mapping[str, Any]) -> QueueProgress:
    return QueueProgress(**_known(QueueProgress, recorded))


def _known(kind: type[DiscoveryProgress] | type[QueueProgress], recorded: Mapping[str, Any]) -> dict[str, Any]:
    names = {each.name for each in fields(kind)}
    return {
        name: datetime.fromisoformat(value) if name.endswith("_at") and value else value
        for name, value in recorded.items()
        if name in names
    }

"""What the store knows of a source's listings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from actors.sources.source import SourceDefinition


@dataclass(frozen=True)
class ListedState:
    """The last listing of a source before the last commit that handed something on.

    Args:
        listed_at: when it ended; None if none has.
        queue: URL of the queue that has told of everything since; None if none has.
        found: new and changed files that it found.
    """

    listed_at: datetime | None = None
    queue: str | None = None
    found: int = 0

    @classmethod
    def of_rows(cls, rows: Iterable[Mapping[str, object]]) -> dict[str, ListedState]:
        """Source → what the table `list_state` says of it."""
        return {
            str(row["source"]): cls(row["listed_at"], row["queue"], row["found"] or 0)  # type: ignore[arg-type]
            for row in rows
        }


NEVER_LISTED = ListedState()


def wait_for_listing_s(listed: ListedState, source: SourceDefinition, queue: str, now: datetime) -> float | None:
    """Seconds until the next listing of a source that has a queue of events.

    Args:
        listed: what the store knows.
        source: it.
        queue: the URL of its queue.
        now: the time of the wall clock.

    Returns:
        None if a listing must have ended before the queue can have told of everything.
    """
    if listed.listed_at is None or listed.queue != queue:
        return None
    return max(0.0, source.discovery.relist_s - (now - listed.listed_at).total_seconds())

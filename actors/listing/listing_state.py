"""State of a source's listings: the row of `list_state` that a restart continues from, and the counts behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from actors.listing.listing_pace import ListingPace
from actors.notifications.event_watch import EventWatch
from actors.sources.source import SourceDefinition


@dataclass(frozen=True)
class ListedState:
    """The last listing of a source whose files were all handed on and committed.

    Args:
        listed_at: its end; None before the first one.
        queue: URL of the queue that has told of every change since; None without one.
        found: number of new and changed files that it found.
    """

    listed_at: datetime | None = None
    queue: str | None = None
    found: int = 0

    @classmethod
    def of_rows(cls, rows: Iterable[Mapping[str, object]]) -> dict[str, ListedState]:
        """Source → its state, from rows of the table `list_state`."""
        return {
            str(row["source"]): cls(row["listed_at"], row["queue"], row["found"] or 0)  # type: ignore[arg-type]
            for row in rows
        }


NEVER_LISTED = ListedState()


def wait_for_listing_s(listed: ListedState, source: SourceDefinition, queue: str, now: datetime) -> float | None:
    """Seconds until the next listing of a source that has a queue of events.

    Args:
        listed: the state in the store.
        source: the definition of the source.
        queue: the URL of its queue.
        now: the time of the wall clock.

    Returns:
        None if a listing must end before the queue can have told of every file.
    """
    if listed.listed_at is None or listed.queue != queue:
        return None
    # The clock may have been set back since: the time to the next listing is never longer than between two listings.
    age_s = max(0.0, (now - listed.listed_at).total_seconds())
    return max(0.0, source.discovery.relist_s - age_s)


class ListingTally:
    """Counts of the listings of one source since the start of its list step.

    Args:
        listed: the state in the store at the start.
        must_list: see `ListExecutor`.

    Attributes:
        listings: complete listings.
        requests: LIST requests.
        found: new and changed files that the last complete listing found.
        listed_at: the end of the last listing whose files are all handed on; None before the first one.
        must_list: True while the events may miss files, until a listing has ended.
    """

    def __init__(self, listed: ListedState, *, must_list: bool) -> None:
        self.listings = self.requests = 0
        self.found, self.listed_at, self.must_list = listed.found, listed.listed_at, must_list
        self._found_now = self._listed = self._listed_now = 0
        self._ended_at: datetime | None = None

    @property
    def listed(self) -> int:
        """Objects in the last complete listing, or in the one under way if it has more."""
        return max(self._listed, self._listed_now)

    def on_page(self, requests: int, objects: int) -> None:
        """Counts the requests of a page, and its objects that the source takes."""
        self.requests += requests
        self._listed_now += objects

    def drop_listing(self) -> None:
        """The listing under way does not count."""
        self._found_now = self._listed_now = 0

    def on_found(self) -> None:
        """The listing under way has a new or changed file."""
        self._found_now += 1

    def end_listing(self, now: datetime) -> None:
        """A listing has ended, at a time of the wall clock."""
        self._ended_at = now
        self.listings += 1
        self._listed, self._listed_now = self._listed_now, 0
        self.found, self._found_now = self._found_now, 0

    def on_all_sent(self) -> None:
        """No file is unsent: a restart need not repeat the listing that has ended."""
        if self._ended_at is not None:
            self.listed_at, self._ended_at, self.must_list = self._ended_at, None, False

    def row(
        self, pace: ListingPace, events: EventWatch | None, now_s: float, *, needs_listing: bool
    ) -> dict[str, object]:
        """The source's row in `list_state`, without its name.

        Args:
            pace: the times of its listings.
            events: the watch of its queue of events; None without one.
            now_s: time of the monotonic clock.
            needs_listing: whether a restart must list, as it has to find missing names again.
        """
        return {
            "listed_at": self.listed_at,
            "pages": self.listings,
            "requests": self.requests,
            "requests_last_hour": pace.budget.last_hour(now_s),
            "period_s": pace.period_s,
            "stretched_by": pace.stretched_by,
            "found": self.found,
            # Before the first listing has ended, the queue has not told of the files that were there already.
            "queue": None if events is None or self.must_list or needs_listing else events.queue,
            **({} if events is None else events.state()),
        }

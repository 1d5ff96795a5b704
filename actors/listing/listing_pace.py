"""When a source is listed again, and what makes that later than asked for."""

from __future__ import annotations

from actors.listing.request_budget import RequestBudget

STRETCHED_BY_BUDGET = "max_requests_per_hour"
STRETCHED_BY_LENGTH = "listing takes longer"
STRETCHED_BY_BACKLOG = "files wait to be read"
_BUSY_SHARE = 10


class ListingPace:
    """The times of one source's listings.

    A listing that costs n requests is made at most `max_requests_per_hour / n` times an hour; and if that does not keep
    the budget, since listings become longer or others were made before, single pages wait for it.  While files wait to
    be read, a listing would find what has to wait, too: then listings take at most a tenth of the time.

    Args:
        interval_s: from the end of one listing to the beginning of the next, at least.
        budget: of LIST requests.
        first_s: when the first listing begins, of the monotonic clock.
    """

    def __init__(self, interval_s: float, budget: RequestBudget, first_s: float = 0.0) -> None:
        self._interval_s, self.budget = interval_s, budget
        self._began_s, self._next_s, self._busy_next_s = 0.0, first_s, first_s
        self._asked = self._cost = 0
        self.period_s = interval_s
        self.stretched_by: str | None = None

    def begin(self, now_s: float) -> None:
        """A listing begins."""
        self._began_s, self._cost = now_s, 0

    def next_s(self, now_s: float, *, is_listing: bool, is_busy: bool = False) -> float:
        """When the next page may be asked for; `is_listing` if a listing is under way, `is_busy` while files wait."""
        next_s = self._busy_next_s if is_busy else self._next_s
        if is_listing or now_s >= next_s:
            return now_s + self.budget.wait_s(now_s)
        return next_s

    def ask(self, most: int, now_s: float) -> int:
        """Up to so many pages are asked for now, by a request each: returns how many may be."""
        pages = self.budget.left(now_s, most)
        self._asked = pages
        self.budget.take(pages, now_s)
        return pages

    def on_page(self, requests: int, now_s: float) -> None:
        """What was asked for is there; it took so many requests."""
        self._settle(requests, now_s)
        self._cost += requests

    def end(self, now_s: float, pause_s: float | None = None, *, is_busy: bool = False) -> None:
        """The listing has ended; the next one follows after `pause_s` if that is less than the interval."""
        self._settle(0, now_s)
        took_s = now_s - self._began_s
        wanted_s = now_s + min(self._interval_s, self._interval_s if pause_s is None else pause_s)
        allowed_s = self._began_s + self.budget.period_s(self._cost)
        self._next_s = max(wanted_s, allowed_s)
        # What is looked at a second time, to see whether it is complete, waits for the listing and not for a reader.
        self._busy_next_s = self._next_s if pause_s else max(self._next_s, self._began_s + _BUSY_SHARE * took_s)
        self.period_s = (self._busy_next_s if is_busy else self._next_s) - self._began_s
        if is_busy and self._busy_next_s > self._next_s:
            self.stretched_by = STRETCHED_BY_BACKLOG
        elif allowed_s > wanted_s:
            self.stretched_by = STRETCHED_BY_BUDGET
        else:
            self.stretched_by = STRETCHED_BY_LENGTH if took_s > self._interval_s else None

    def _settle(self, made: int, now_s: float) -> None:
        self.budget.take(max(0, made - self._asked), now_s)
        self.budget.give_back(max(0, self._asked - made), now_s)
        self._asked = 0

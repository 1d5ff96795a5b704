"""Times of one source's listings, and the reason why they may be further apart than the source asks for."""

from __future__ import annotations

from typing import Literal

from actors.listing.request_budget import RequestBudget

StretchedBy = Literal["max_requests_per_hour", "listing takes longer", "files wait to be read"]
"""A reason for a longer period: the budget of requests, the length of a listing, or files that are not read yet."""

_BUSY_SHARE = 10


class ListingPace:
    """Decides when the next listing begins and when its pages may be asked for.

    A listing that costs n requests is made at most `max_requests_per_hour / n` times an hour.  If that does not keep
    the budget, because listings become longer or others were made before, single pages wait for it.  Files that a
    listing finds while others wait to be read would wait as well: then listings take at most a tenth of the time.

    Args:
        interval_s: seconds from the end of one listing to the beginning of the next, at least.
        budget: the budget of LIST requests.
        first_s: when the first listing begins, of the monotonic clock.

    Attributes:
        period_s: seconds from the beginning of the last listing to that of the next.
        stretched_by: the reason why that is longer than the interval; None if it is not.
    """

    def __init__(self, interval_s: float, budget: RequestBudget, first_s: float = 0.0) -> None:
        self._interval_s, self.budget = interval_s, budget
        self._began_s, self._next_s, self._busy_next_s = 0.0, first_s, first_s
        self._asked = self._cost = 0
        self.period_s = interval_s
        self.stretched_by: StretchedBy | None = None

    def begin(self, now_s: float) -> None:
        """A listing begins."""
        self._began_s, self._cost = now_s, 0

    def next_s(self, now_s: float, *, is_listing: bool, is_busy: bool = False) -> float:
        """The time when the next page may be asked for.

        Args:
            now_s: of the monotonic clock.
            is_listing: whether a listing is under way.
            is_busy: whether files wait to be read.
        """
        next_s = self._busy_next_s if is_busy else self._next_s
        if is_listing or now_s >= next_s:
            return now_s + self.budget.wait_s(now_s)
        return next_s

    def ask(self, most: int, now_s: float) -> int:
        """Pages that may be asked for now, up to `most`; their requests, one each, are taken from the budget."""
        pages = self.budget.left(now_s, most)
        self._asked = pages
        self.budget.take(pages, now_s)
        return pages

    def on_page(self, requests: int, now_s: float) -> None:
        """The pages that were asked for have come; `requests` is the number of their requests."""
        self._settle(requests, now_s)
        self._cost += requests

    def end(self, now_s: float, pause_s: float | None = None, *, is_busy: bool = False) -> None:
        """The listing has ended.

        Args:
            now_s: of the monotonic clock.
            pause_s: seconds until a second listing of settling files or missing names, if less than the interval; None
                if the interval is soon enough.
            is_busy: whether files wait to be read.
        """
        self._settle(0, now_s)
        took_s = now_s - self._began_s
        wanted_s = now_s + min(self._interval_s, self._interval_s if pause_s is None else pause_s)
        allowed_s = self._began_s + self.budget.period_s(self._cost)
        self._next_s = max(wanted_s, allowed_s)
        # The second listing of settling files does not wait for readers.
        self._busy_next_s = self._next_s if pause_s else max(self._next_s, self._began_s + _BUSY_SHARE * took_s)
        self.period_s = (self._busy_next_s if is_busy else self._next_s) - self._began_s
        if is_busy and self._busy_next_s > self._next_s:
            self.stretched_by = "files wait to be read"
        elif allowed_s > wanted_s:
            self.stretched_by = "max_requests_per_hour"
        else:
            self.stretched_by = "listing takes longer" if took_s > self._interval_s else None

    def request(self, now_s: float) -> None:
        """A caller waits for a listing: it begins now if half of the requests of an hour stay for all others.

        Otherwise a program that waits in a loop would leave no request for the rest of the hour.
        """
        if self.budget.has_half(now_s, self._cost):
            self.hurry(now_s)

    def hurry(self, now_s: float) -> None:
        """The next listing begins now, as far as the budget allows."""
        self._next_s, self._busy_next_s = min(self._next_s, now_s), min(self._busy_next_s, now_s)

    def rest_until(self, at_s: float) -> None:
        """The next listing begins at this time, or later."""
        self._next_s, self._busy_next_s = max(self._next_s, at_s), max(self._busy_next_s, at_s)

    def _settle(self, made: int, now_s: float) -> None:
        self.budget.take(max(0, made - self._asked), now_s)
        self.budget.give_back(max(0, self._asked - made), now_s)
        self._asked = 0

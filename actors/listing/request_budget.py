"""Limit of requests in any hour."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

_HOUR_S = 3_600.0
_MINUTE_S = 60.0
_TOGETHER_S = 1.0


class RequestBudget:
    """Counts requests over a sliding hour; the requests of one second together, until an hour after its end.

    Args:
        per_hour: the most requests; None for no limit.
        spent: the requests of the hour before, see `spent`.
        now_s: of the monotonic clock.
    """

    def __init__(self, per_hour: int | None, spent: Sequence[int] = (), now_s: float = 0.0) -> None:
        self._per_hour = per_hour
        # Only the minute is known: each request may have been made at its end.
        before = [(now_s - minutes * _MINUTE_S, requests) for minutes, requests in enumerate(spent) if requests]
        self._taken: deque[tuple[float, int]] = deque(reversed(before))
        self._total = sum(spent)

    def take(self, requests: int, now_s: float) -> None:
        """Counts requests that are made now."""
        if not requests:
            return
        self._total += requests
        if self._taken and now_s - self._taken[-1][0] < _TOGETHER_S:
            began_s, before = self._taken.pop()
            self._taken.append((began_s, before + requests))
        else:
            self._taken.append((now_s, requests))

    def give_back(self, requests: int, now_s: float) -> None:
        """Uncounts requests that were taken and not made; those before this second stay counted."""
        if self._taken and now_s - self._taken[-1][0] < _TOGETHER_S:
            began_s, before = self._taken.pop()
            given = min(before, requests)
            self._total -= given
            if before > given:
                self._taken.append((began_s, before - given))

    def last_hour(self, now_s: float) -> int:
        """Number of requests of the last hour."""
        while self._taken and self._taken[0][0] + _TOGETHER_S + _HOUR_S <= now_s:
            self._total -= self._taken.popleft()[1]
        return self._total

    def left(self, now_s: float, most: int) -> int:
        """Number of requests that may be made now, up to `most`."""
        return most if self._per_hour is None else max(0, min(most, self._per_hour - self.last_hour(now_s)))

    def has_half(self, now_s: float, requests: int) -> bool:
        """True if at least half of the hourly requests are left after this number of further requests."""
        return self._per_hour is None or 2 * (self.last_hour(now_s) + requests) <= self._per_hour

    def wait_s(self, now_s: float) -> float:
        """Seconds until a request may be made; 0 if one may be made now."""
        excess = 0 if self._per_hour is None else self.last_hour(now_s) - self._per_hour + 1
        wait_s = 0.0
        for began_s, requests in self._taken:
            if excess <= 0:
                break
            excess -= requests
            wait_s = began_s + _TOGETHER_S + _HOUR_S - now_s
        return wait_s

    def period_s(self, requests: int) -> float:
        """Seconds from one listing to the next that keep the budget, at this number of requests per listing."""
        return 0.0 if self._per_hour is None else _HOUR_S * requests / self._per_hour

    def spent(self, now_s: float) -> tuple[int, ...]:
        """Requests by the minute, the last minute first, for the next process that continues with this budget."""
        if not self.last_hour(now_s):
            return ()
        minutes = [0] * 60
        for began_s, requests in self._taken:
            minutes[min(59, max(0, int((now_s - began_s - _TOGETHER_S) / _MINUTE_S)))] += requests
        return tuple(minutes)

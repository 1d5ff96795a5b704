"""Limits on files, bytes and rows a second."""

from __future__ import annotations

import sys

from actors.protocol.barrier import Throttle
from actors.settings import FetchSettings

_BURST_S = 1.0
_NOW_S = 1e-6
"""Waits below the precision of a clock are rounding errors, and count as none."""


class TokenBucket:
    """A token bucket that may go into debt: after a `take` beyond its level, the next one waits for the rest.

    So one take may be larger than the rate of a second, and its size may be known only afterwards.

    Args:
        per_second: the rate; None for no limit.
        now_s: time of the monotonic clock.
    """

    def __init__(self, per_second: float | None, now_s: float) -> None:
        self._per_second = per_second
        self._level = 0.0
        self._filled_s = now_s

    def wait_s(self, now_s: float) -> float:
        """Seconds until the next take; 0 for now."""
        if self._per_second is None:
            return 0.0
        filled = self._level + (now_s - self._filled_s) * self._per_second
        self._level, self._filled_s = min(filled, _BURST_S * self._per_second), now_s
        wait_s = -self._level / self._per_second
        return wait_s if wait_s > _NOW_S else 0.0

    def take(self, amount: float) -> None:
        """Takes an amount; a negative one is given back."""
        self._level -= amount


class FetchLimits:
    """One fetch actor's share of every limit: an equal one, as each has equally many vnodes.

    Attributes:
        opened, read, emitted: rates of files, bytes and rows.
        most_files: number of files that may end in one epoch.

    Args:
        settings: the limits while no throttle is in force.
    """

    def __init__(self, settings: FetchSettings, num_fetchers: int) -> None:
        self._settings = settings
        self._throttle = Throttle()
        self.share(num_fetchers, 0.0)

    def share(self, num_fetchers: int, now_s: float) -> None:
        """Shares the limits among another number of fetch actors."""
        self._num_fetchers = num_fetchers
        limit = self._settings.max_files_per_epoch
        self.most_files = sys.maxsize if limit is None else max(1, limit // num_fetchers)
        self.throttle(self._throttle, now_s)

    def throttle(self, throttle: Throttle, now_s: float) -> None:
        """Puts a throttle in force, in place of the one before."""
        self._throttle = throttle
        most_rows = throttle.rows_per_second or self._settings.max_rows_per_second
        rates = (throttle.files_per_second, throttle.bytes_per_second, most_rows)
        shares = [None if rate is None else rate / self._num_fetchers for rate in rates]
        self.opened, self.read, self.emitted = (TokenBucket(share, now_s) for share in shares)

    def times_s(self, now_s: float, *, reads: bool, emits: bool) -> list[float]:
        """Times of the monotonic clock at which a limit lets the next thing pass; empty if no limit is in the way.

        Args:
            now_s: time of the monotonic clock.
            reads: whether there is something to read.
            emits: whether there is something to emit.
        """
        waits_s = [self.read.wait_s(now_s) or self.opened.wait_s(now_s)] if reads else []
        waits_s += [self.emitted.wait_s(now_s)] if emits else []
        return [now_s + wait_s for wait_s in waits_s if wait_s]

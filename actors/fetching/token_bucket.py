"""So much each second, and what was not used for one second more."""

from __future__ import annotations

_BURST_S = 1.0
_NOW_S = 1e-6
"""Less than what a clock shows: a rounding error would otherwise be waited for."""


class TokenBucket:
    """Lets things happen at a rate.  What is taken may exceed what is there: then the debt is waited for.

    So the size of a thing may be larger than what a second allows, and may be known only when it is done.

    Args:
        per_second: the rate; None for no limit.
        now_s: of the monotonic clock.
    """

    def __init__(self, per_second: float | None, now_s: float) -> None:
        self._per_second = per_second
        self._level = 0.0
        self._filled_s = now_s

    def wait_s(self, now_s: float) -> float:
        """Seconds until something may be taken; 0 for now."""
        if self._per_second is None:
            return 0.0
        filled = self._level + (now_s - self._filled_s) * self._per_second
        self._level, self._filled_s = min(filled, _BURST_S * self._per_second), now_s
        wait_s = -self._level / self._per_second
        return wait_s if wait_s > _NOW_S else 0.0

    def take(self, amount: float) -> None:
        """Something happens; a negative amount is given back."""
        self._level -= amount

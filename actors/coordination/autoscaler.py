"""The number of fetch actors that the work needs, decided by their reports."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import pairwise

_LOOK_S = 5.0
_OVERLOADED_S = 15.0
_QUIET_S = 300.0
_TARGET_S = 30.0
_SPARE = 0.5


@dataclass(frozen=True)
class Workload:
    """The work of the fetch actors at a moment.

    Args:
        num_fetchers: the number of fetch actors.
        waiting: files that are listed and not begun.
        finished: files that are done, quarantined or vanished.
        is_held_back: whether something else limits the fetch actors: the run is paused or throttled, Spark takes no
            more, or vnodes are moving.
    """

    num_fetchers: int
    waiting: int
    finished: int
    is_held_back: bool


@dataclass(frozen=True)
class _Look:
    at_s: float
    waiting: int
    finished: int


@dataclass(frozen=True)
class ScalingDecision:
    """Another number of fetch actors, with the reason in words."""

    num_fetchers: int
    reason: str


class Autoscaler:
    """Doubles the fetch actors when the waiting files would take them long, and halves them after a quiet time.

    It doubles when, for 15 seconds, more files have waited than are read in 30, and only the fetch actors were the
    reason.  It halves when, for 5 minutes, hardly a file has waited, and half as many fetch actors would have had time
    to spare throughout, by the rate of each when it was last busy.  After a decision both times begin again.

    Args:
        fewest, most: bounds of the number of fetch actors.
    """

    def __init__(self, fewest: int, most: int) -> None:
        self._fewest, self._most = fewest, most
        self._looked_s = float("-inf")
        self._looks: deque[_Look] = deque()
        self._busy_rate: float | None = None

    @property
    def is_on(self) -> bool:
        """True if the bounds leave a choice."""
        return self._fewest < self._most

    def wake_s(self, now_s: float) -> float | None:
        """The time of the next look; None if it is off.

        Args:
            now_s: time of the monotonic clock.
        """
        return max(now_s, self._looked_s + _LOOK_S) if self.is_on else None

    def on_workload(self, now_s: float, workload: Workload) -> ScalingDecision | None:
        """Looks at the work, at most every five seconds.

        Args:
            now_s: time of the monotonic clock.
            workload: the work as of now.
        """
        if not self.is_on or now_s < self._looked_s + _LOOK_S:
            return None
        self._looked_s = now_s
        if workload.is_held_back:
            self._looks.clear()
            return None
        self._looks.append(_Look(now_s, workload.waiting, workload.finished))
        while len(self._looks) > 1 and self._looks[1].at_s <= now_s - _QUIET_S:
            self._looks.popleft()
        decision = self._grown(workload) or self._shrunk(workload)
        if decision is not None:
            self._looks.clear()
        return decision

    def _grown(self, workload: Workload) -> ScalingDecision | None:
        last = self._looks[-1]
        recent = [look for look in self._looks if look.at_s >= last.at_s - _OVERLOADED_S - _LOOK_S]
        seconds = last.at_s - recent[0].at_s
        if seconds < _OVERLOADED_S:
            return None
        rate = (last.finished - recent[0].finished) / seconds
        if any(look.waiting <= rate * _TARGET_S for look in recent):
            return None
        self._busy_rate = rate / workload.num_fetchers
        wanted = min(self._most, 2 * workload.num_fetchers)
        if wanted <= workload.num_fetchers:
            return None
        return ScalingDecision(wanted, f"{workload.waiting:,} files wait, and {rate:,.1f} are read each second")

    def _shrunk(self, workload: Workload) -> ScalingDecision | None:
        wanted = max(self._fewest, workload.num_fetchers // 2)
        seconds = self._looks[-1].at_s - self._looks[0].at_s
        if seconds < _QUIET_S or wanted >= workload.num_fetchers:
            return None
        most_read = 0.0
        for before, look in pairwise(self._looks):
            read = look.finished - before.finished
            if look.waiting > read:
                return None
            most_read = max(most_read, read / (look.at_s - before.at_s))
        if self._busy_rate is not None and most_read > _SPARE * wanted * self._busy_rate:
            return None
        return ScalingDecision(wanted, f"for {seconds:,.0f} seconds next to no file has waited")

"""ClockWatch: notices that the wall clock of the machine was set, so that files are not handled before their time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from state.clock import Clock
from state.lance.handled_files import ClockChange

_JUMP_S = 1.0
"""Larger differences between wall time and uptime are jumps.  NTP slews both clocks, and steps only the wall time."""
_SKEW = timedelta(minutes=1)
"""Clocks of two machines of a cluster may differ by this much."""
_EXACT_S = 0.05
_TRIES = 10


@dataclass(frozen=True)
class _Reading:
    """Wall time and uptime at the same moment."""

    wall: datetime
    uptime_s: float


class ClockWatch:
    """Compares the wall clock with the uptime at each call.  Used by one thread at a time.

    After the clock was set, the ages of earlier commits are unknown.  So after a jump in either direction, the age of
    an earlier commit counts from the jump, and is measured as uptime.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._base = self._reading()
        self._jumped: _Reading | None = None

    def has_jumped(self) -> bool:
        """True if the wall clock was set since the last call."""
        now = self._reading()
        passed_s = now.uptime_s - self._base.uptime_s
        shift_s = (now.wall - self._base.wall).total_seconds() - passed_s
        if abs(shift_s) <= _JUMP_S:
            return False
        self._base = self._jumped = now
        return True

    def has_settled(self, keep_s: float) -> bool:
        """True if `keep_s` seconds have passed by the uptime since the last jump, or without a jump."""
        return self._jumped is None or self._clock.uptime() - self._jumped.uptime_s >= keep_s

    def _reading(self) -> _Reading:
        """Both clocks, read close together: a thread that waits for the processor in between sees no jump."""
        best: tuple[float, _Reading] | None = None
        for _ in range(_TRIES):
            before_s = self._clock.uptime()
            wall = self._clock.now()
            after_s = self._clock.uptime()
            if best is None or after_s - before_s < best[0]:
                best = after_s - before_s, _Reading(wall, (before_s + after_s) / 2)
            if best[0] <= _EXACT_S:
                break
        assert best is not None
        return best[1]


def has_gone_back(now: datetime, commits: Sequence[Mapping[str, Any]], change: ClockChange | None) -> bool:
    """True if the clock was set back between two runs: a record is later than now.

    Args:
        now: the wall time.
        commits: the last commit, as `StateStore.epoch_times` gives it.
        change: the last recorded change of the clock, after which commits count; None without one.
    """
    if change is not None and change.at > now + _SKEW:
        return True
    last_epoch = 0 if change is None else change.epoch
    return any(each["epoch"] > last_epoch and each["committed_at"] > now + _SKEW for each in commits)

"""The clock of a simulation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_START = datetime(2020, 1, 1, tzinfo=UTC)
START_US = int(_START.timestamp()) * 1_000_000
"""The time at which every simulation begins, in microseconds since 1970."""


class SimulatedClock:
    """A clock that moves only when it is told to.  Its wall time can be set back; its monotonic time cannot.

    Args:
        stands: whether the wall time moves only when it is set.
    """

    def __init__(self, *, stands: bool = False) -> None:
        self._stands = stands
        self._elapsed_s = 0.0
        self._set_s = 0.0

    def now(self) -> datetime:
        return _START + timedelta(seconds=self._set_s + (0.0 if self._stands else self._elapsed_s))

    def monotonic(self) -> float:
        return self._elapsed_s

    def uptime(self) -> float:
        return self._elapsed_s

    def sleep(self, seconds: float) -> None:
        self._elapsed_s += seconds

    def advance_to(self, monotonic_s: float) -> None:
        """Moves on to a time; a past time changes nothing."""
        self._elapsed_s = max(self._elapsed_s, monotonic_s)

    def set_wall(self, seconds: float) -> None:
        """Sets the wall clock forth, or back."""
        self._set_s += seconds

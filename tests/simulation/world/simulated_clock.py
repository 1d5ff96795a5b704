"""The clock of a simulation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_START = datetime(2020, 1, 1, tzinfo=UTC)
START_US = int(_START.timestamp()) * 1_000_000
"""The time at which every simulation begins, in microseconds since 1970."""


class SimulatedClock:
    """A clock that moves only when it is told to.  Its wall time can be set back; its monotonic time cannot.

    While a machine is suspended the true time passes, and the wall time with it, but not the monotonic time.

    Args:
        stands: whether the wall time moves only when it is set.
    """

    def __init__(self, *, stands: bool = False) -> None:
        self._stands = stands
        self._elapsed_s = 0.0
        self._set_s = 0.0
        self._suspended_s = self._asleep_s = 0.0

    @property
    def true_s(self) -> float:
        """The seconds since the beginning, whatever clocks say."""
        return self._elapsed_s + self._suspended_s

    @property
    def ahead_s(self) -> float:
        """The seconds by which the wall clock is ahead of the true time."""
        return self._set_s - self._suspended_s

    @property
    def true_time(self) -> datetime:
        """The time of a clock that is right."""
        return _START + timedelta(seconds=self.true_s)

    def now(self) -> datetime:
        return _START + timedelta(seconds=self._set_s + (0.0 if self._stands else self._elapsed_s))

    def monotonic(self) -> float:
        return self._elapsed_s

    def uptime(self) -> float:
        return self._elapsed_s + self._asleep_s

    def sleep(self, seconds: float) -> None:
        """Fails: during a sleep others act, so the sleeper needs a `PatientClock`."""
        raise AssertionError(f"{seconds:g} s would pass without any event; only a call with a PatientClock sleeps")

    def skip(self, seconds: float) -> None:
        """Lets time pass without any event: timers come due afterwards."""
        self._elapsed_s += seconds

    def advance_to(self, monotonic_s: float) -> None:
        """Moves on to a time; a past time changes nothing."""
        self._elapsed_s = max(self._elapsed_s, monotonic_s)

    def set_wall(self, seconds: float) -> None:
        """Sets the wall clock forth, or back."""
        self._set_s += seconds

    def suspend(self, seconds: float, *, wall_stands: bool) -> None:
        """Lets true time pass without a step of the monotonic clock.

        Args:
            seconds: the time.
            wall_stands: true for a virtual machine that is paused: its wall clock stops, too.
        """
        self._suspended_s += seconds
        if not wall_stands:
            self._set_s += seconds
            self._asleep_s += seconds

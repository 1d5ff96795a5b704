"""Clocks: wall time in UTC, monotonic time, and the CPU time of a thread.

No other module reads the clock; the others take a `Clock`.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time for people and epochs, monotonic time for durations."""

    def now(self) -> datetime:
        """The wall time, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary start, never decreasing."""
        ...

    def uptime(self) -> float:
        """Seconds since an arbitrary start, never decreasing, with the time in which the machine was suspended."""
        ...

    def sleep(self, seconds: float) -> None:
        """Blocks the calling thread."""
        ...


def thread_cpu_s() -> float:
    """CPU seconds that the calling thread has taken since its start."""
    return time.thread_time()


# Linux stops CLOCK_MONOTONIC while the machine is suspended; macOS does not, and has no CLOCK_BOOTTIME.
_UPTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def uptime(self) -> float:
        return time.clock_gettime(_UPTIME)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class ManualClock:
    """A clock that moves only by `advance`, `sleep` and `set_wall`, for tests and simulation."""

    def __init__(self, start: datetime = datetime(2020, 1, 1, tzinfo=UTC)) -> None:
        self._start = start.timestamp()
        self._elapsed_s = 0.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._start + self._elapsed_s, UTC)

    def monotonic(self) -> float:
        return self._elapsed_s

    def uptime(self) -> float:
        return self._elapsed_s

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Moves the time forward; a test sets the wall clock back by a negative step."""
        self._elapsed_s += seconds

    def set_wall(self, seconds: float) -> None:
        """Sets the wall time forward or back; the monotonic time does not change."""
        self._start += seconds

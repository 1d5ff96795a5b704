"""Waits for a condition with a limit; no test sleeps for a fixed time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable


def eventually(condition: Callable[[], bool], limit_s: float = 60.0, what: str = "it did not come true") -> None:
    """Returns when the condition is true; fails after the limit."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def is_gone(pid: int, within_s: float = 60.0) -> bool:
    """True when the process ends within the limit."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False

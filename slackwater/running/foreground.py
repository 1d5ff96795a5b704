"""A run that a process waits for, until it has caught up, it fails, or a signal asks for its end."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import structlog

from slackwater.running.run import Run
from slackwater.status.run_status import RunReport, RunStatus

_INTERRUPTED = 130
_POLL_S = 0.25
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_ENDED_AT_ONCE = "error: interrupted; what was committed stays, and a new start goes on from there\n"


def run_in_foreground(
    start: Callable[[], Run], until: str | None, show: Callable[[RunStatus], None] = lambda _status: None
) -> RunReport:
    """Starts a run and waits for it; SIGINT (Ctrl-C) and SIGTERM end it after a last epoch.

    Signals are for the main thread: elsewhere the run ends by itself or by a command.

    Args:
        start: starts it.
        until: see `Run.wait`.
        show: is told how far it is.

    Raises:
        SlackwaterError: whatever ended the run.
    """
    with _interruption() as interruption, start() as run:
        while not interruption.asked.is_set() and not run.wait(until=until, timeout_s=_POLL_S):
            show(run.status())
        report = run.stop()
        show(run.status())
        return report


class _Interruption:
    """The first signal asks for a last epoch.  The second ends the process at once, which a root is built to bear."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    def __call__(self, number: int, _frame: Any) -> None:
        if self.asked.is_set():
            sys.stderr.write(_ENDED_AT_ONCE)
            sys.stderr.flush()
            os._exit(_INTERRUPTED)
        self.asked.set()
        structlog.get_logger(actor="run").warning(
            "stopping after a last epoch; once more to stop now", signal=signal.Signals(number).name
        )


@contextmanager
def _interruption() -> Iterator[_Interruption]:
    """Takes the signals for the length of a block."""
    interruption = _Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    before = {number: signal.signal(number, interruption) for number in _SIGNALS}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            # None stands for one that was not installed by Python, and cannot be put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

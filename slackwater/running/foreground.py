"""A run in the foreground: its process waits until it has caught up, fails, or receives a signal."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import structlog

from slackwater.running.run import Run
from slackwater.status.run_status import RunReport, RunStatus

_INTERRUPTED = 130
_POLL_S = 0.25
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_ENDED_AT_ONCE = "error: interrupted; committed epochs are kept, and the next start continues from the last\n"


def run_in_foreground(
    start: Callable[[], Run],
    until: Literal["caught_up"] | None,
    show: Callable[[RunStatus], None] = lambda _status: None,
) -> RunReport:
    """Starts a run and waits for it; SIGINT (Ctrl-C) and SIGTERM end it after a last epoch.

    Only the main thread receives signals; in another thread the run ends by itself or by a command.

    Args:
        start: starts the run.
        until: see `Pipeline.run`.
        show: is called with the status, several times a second.

    Raises:
        SlackwaterError: the error that ended the run.
    """
    with _interruption() as interruption, start() as run:
        while not interruption.asked.is_set() and not run._wait_since_start(until, _POLL_S):
            show(run.status())
        report = run.stop()
        show(run.status())
        return report


class _Interruption:
    """The first signal requests a last epoch.  The second ends the process at once, which loses nothing committed."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    def __call__(self, number: int, _frame: Any) -> None:
        if self.asked.is_set():
            sys.stderr.write(_ENDED_AT_ONCE)
            sys.stderr.flush()
            os._exit(_INTERRUPTED)
        self.asked.set()
        structlog.get_logger(actor="run").warning(
            "stopping after a last epoch; repeat the signal to stop now", signal=signal.Signals(number).name
        )


@contextmanager
def _interruption() -> Iterator[_Interruption]:
    """Handles the signals for the time of a block."""
    interruption = _Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    before = {number: signal.signal(number, interruption) for number in _SIGNALS}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            # None: the handler was not installed by Python, and cannot be restored.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

"""A run in the foreground: its process waits until it has caught up, fails, or receives a signal."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import structlog

from state.clock import SystemClock

if TYPE_CHECKING:
    from slackwater.running.run import Run
    from slackwater.status.run_status import RunReport, RunStatus

_INTERRUPTED = 130
_POLL_S = 0.25
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_PATIENCE_S = 2.0
_ENDED_AT_ONCE = "error: interrupted; committed epochs are kept, and the next start continues from the last\n"
_ENDED_IN_THE_START = "error: interrupted during the start; no epoch was committed\n"


def run_in_foreground(
    start: Callable[[], Run],
    until: Literal["caught_up"] | None,
    show: Callable[[RunStatus], None] = lambda _status: None,
    show_every_s: float = 5.0,
) -> RunReport:
    """Starts a run and waits for it; SIGINT (Ctrl-C) and SIGTERM end it after a last epoch, or at once while it starts.

    An end at once ends the process: its children end with it, and a crash at that moment would lose no more.
    Only the main thread receives signals; in another thread the run ends by itself or by a command.

    Args:
        until: see `Pipeline.run`.
        show: is called with the status, several times a second while it changes.
        show_every_s: the time between two calls while it does not.

    Raises:
        SlackwaterError: the error that ended the run.
    """
    with _interruption() as interruption, interruption.of_start(start) as run:
        clock, shown_s, shown = SystemClock(), float("-inf"), run._news
        while not interruption.asked.is_set() and not run._wait_since_start(until, _POLL_S):
            if run._news != shown or clock.monotonic() >= shown_s + show_every_s:
                shown, shown_s = run._news, clock.monotonic()
                show(run.status())
        if interruption.asked.is_set() and run._abandon():
            _end_at_once(_ENDED_IN_THE_START)
        if until is not None and not interruption.asked.is_set():
            run._complete_publications()
        report = run.stop()
        show(run.status())
        return report


class _Interruption:
    """The first signal requests a last epoch.  The second ends the process at once, which loses nothing committed."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self._is_starting = False

    def of_start(self, start: Callable[[], Run]) -> Run:
        """Starts the run; the first signal interrupts the start at any point."""
        self._is_starting = True
        try:
            with _patience():
                return start()
        except KeyboardInterrupt:
            _end_at_once(_ENDED_IN_THE_START)
        finally:
            self._is_starting = False

    def __call__(self, number: int, _frame: Any) -> None:
        if self.asked.is_set():
            _end_at_once(_ENDED_AT_ONCE)
        self.asked.set()
        if self._is_starting:
            raise KeyboardInterrupt
        structlog.get_logger(actor="run").warning(
            "stopping after a last epoch; repeat the signal to stop now", signal=signal.Signals(number).name
        )


@contextmanager
def _patience() -> Iterator[None]:
    """Ends the process some seconds after a signal, if the block has not ended by then.

    Python sees a signal only between two steps of the main thread, and Ray's start has long ones; a request without an
    answer would not end at all.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def wait() -> None:
        while number := told.recv(1):
            if number[0] in _SIGNALS:  # the program may handle others itself
                SystemClock().sleep(_PATIENCE_S)
                _end_at_once(_ENDED_IN_THE_START)

    told, telling = socket.socketpair()
    telling.setblocking(False)
    before = signal.set_wakeup_fd(telling.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=wait, name="patience", daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        telling.close()


def _end_at_once(reason: str) -> NoReturn:
    sys.stderr.write(reason)
    sys.stderr.flush()
    os._exit(_INTERRUPTED)


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

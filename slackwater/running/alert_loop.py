"""The loop of a run that watches its alerts."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from slackwater.alerts.alert_watch import AlertWatch
from slackwater.running.loop_thread import LoopThread, Turn
from slackwater.status.run_status import RunStatus
from state.ownership.conditional_file import FileChangedError

_POLL_S = 1.0
_OVER = ("stopped", "failed")
_log = structlog.get_logger(actor="run")


class AlertLoop:
    """Looks at a run once a second, in a thread of its own, until the run is over.

    Args:
        watch: of the run's alerts.
        status: returns the status of the run.
    """

    def __init__(self, watch: AlertWatch, status: Callable[[], RunStatus]) -> None:
        self._watch, self._status = watch, status
        self._is_over = False
        self._thread = LoopThread("alerts", self._turn, _POLL_S)

    def end(self) -> None:
        """Takes a last look, which sees the failure of the run, and delivers its notices."""
        self._thread.begin_end()
        self._thread.join()
        if not self._is_over:
            self._turn()

    def _turn(self) -> Turn:
        try:
            status = self._status()
            self._watch.look(status)
            self._is_over = status.phase in _OVER
        except FileChangedError:
            self._is_over = True  # another run has the root, and its alerts
        except Exception as error:
            # The run does not depend on its alerts.
            self._is_over = True
            _log.warning("alerts end", error=f"{type(error).__name__}: {error}")
        return Turn.OVER if self._is_over else Turn.WAITS

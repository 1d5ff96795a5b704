"""The loop of what goes on beside a run: alerts, lineage, the work on files after the commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import structlog

from slackwater.running.loop_thread import LoopThread, Turn
from slackwater.status.run_status import RunStatus

_POLL_S = 1.0
_log = structlog.get_logger(actor="run")


class Companion(Protocol):
    """Goes on beside a run.  Called by one thread at a time; an error ends it, and not the run."""

    def look(self, status: RunStatus) -> bool:
        """Sees the run, about once a second.  Returns whether it goes on."""
        ...

    def end(self, status: RunStatus, failure: Exception | None) -> None:
        """Sees the end of the run, and the error that has ended it.  It is not called if `look` has returned False."""
        ...


class CompanionLoop:
    """Shows a run to a companion, in a thread of its own, until the run is over.

    Args:
        name: of the companion, in logs.
        companion: looks at the run.
        status: returns the status of the run.
        failure: returns the error that has ended the run; None if none has.
    """

    def __init__(
        self,
        name: str,
        companion: Companion,
        status: Callable[[], RunStatus],
        failure: Callable[[], Exception | None],
    ) -> None:
        self._name, self._companion, self._status, self._failure = name, companion, status, failure
        self._is_over = False
        self._thread = LoopThread(name, self._turn, _POLL_S)

    def end(self) -> None:
        """Shows the companion the end of the run."""
        self._thread.begin_end()
        self._thread.join()
        if self._is_over:
            return
        try:
            self._companion.end(self._status(), self._failure())
        except Exception as error:
            self._give_up(error)

    def _turn(self) -> Turn:
        try:
            self._is_over = not self._companion.look(self._status())
        except Exception as error:
            self._give_up(error)
        return Turn.OVER if self._is_over else Turn.WAITS

    def _give_up(self, error: Exception) -> None:
        """The run does not depend on its companions."""
        self._is_over = True
        _log.warning("a companion of the run ends", companion=self._name, error=f"{type(error).__name__}: {error}")

"""The loop of one companion of a run, such as its alerts."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from slackwater.extensions.companion import Companion
from slackwater.running.loop_thread import LoopThread, Turn
from slackwater.status.run_status import AfterCommitStatus, RunStatus

_POLL_S = 1.0
_log = structlog.get_logger(actor="run")


class CompanionLoop:
    """Shows a run to a companion, in a thread of its own, until the run is over.

    Args:
        status: returns the status of the run.
        failure: returns the error that has ended the run; None if none has.
    """

    def __init__(
        self,
        companion: Companion,
        status: Callable[[], RunStatus],
        failure: Callable[[], Exception | None],
    ) -> None:
        self._companion, self._status, self._failure = companion, status, failure
        self._is_over = False
        self._thread = LoopThread(companion.name, self._turn, _POLL_S)

    @property
    def ends_first(self) -> bool:
        """True if it ends before Spark and the publications."""
        return self._companion.ends_first

    @property
    def statuses(self) -> tuple[AfterCommitStatus, ...]:
        """The part of the status of the run that the companion reports."""
        return self._companion.statuses

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
        _log.warning(
            "a companion of the run ends", companion=self._companion.name, error=f"{type(error).__name__}: {error}"
        )

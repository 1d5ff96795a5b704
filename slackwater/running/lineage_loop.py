"""The loop of a run that sends events of its lineage."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from slackwater.lineage.emitter import Emitter
from slackwater.lineage.run_lineage import RunLineage
from slackwater.running.loop_thread import LoopThread, Turn
from slackwater.status.run_status import RunStatus

_POLL_S = 1.0
_log = structlog.get_logger(actor="lineage")


class LineageLoop:
    """Looks at a run once a second, in a thread of its own, until the run is over.

    Args:
        lineage: makes the events of the run.
        emitter: sends them.
        status: returns the status of the run.
        failure: returns the error that has ended the run; None if none has.
    """

    def __init__(
        self,
        lineage: RunLineage,
        emitter: Emitter,
        status: Callable[[], RunStatus],
        failure: Callable[[], Exception | None],
    ) -> None:
        self._lineage, self._emitter, self._status, self._failure = lineage, emitter, status, failure
        self._is_over = False
        self._thread = LoopThread("lineage", self._turn, _POLL_S)

    def end(self) -> None:
        """Sends the last events, of the end of the run."""
        self._thread.begin_end()
        self._thread.join()
        if self._is_over:
            return
        try:
            failure = self._failure()
            self._emitter.put(self._lineage.end(self._status(), None if failure is None else str(failure)))
            self._emitter.end()
        except Exception as error:
            self._give_up(error)

    def _turn(self) -> Turn:
        try:
            self._emitter.put(self._lineage.look(self._status()))
            self._emitter.send()
        except Exception as error:
            self._give_up(error)
        return Turn.OVER if self._is_over else Turn.WAITS

    def _give_up(self, error: Exception) -> None:
        """The run does not depend on its lineage."""
        self._is_over = True
        _log.warning("lineage ends", error=f"{type(error).__name__}: {error}")

"""The Spark application of a run: started beside the first listing, replaced when it is lost, ended at the end."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any

from spark_bridge.session import SparkSettings, is_alive, running_session, start_session, stop_session, warm_up


class SparkApplication:
    """The application that one run uses.  A session that runs in this process already is borrowed, and left alone.

    Args:
        settings: see `SparkSettings`.
        name: of the application; a new one after a loss gets a number behind it.
    """

    def __init__(self, settings: SparkSettings, name: str) -> None:
        self._settings, self._name = settings, name
        self._losses = 0
        self._borrowed = running_session() is not None
        self.session: Future[Any] = Future()

    def start(self) -> None:
        """Begins to start the session, in a thread: that takes longer than many buckets take to read."""
        self.session = Future()
        threading.Thread(target=self._start, args=(self.session,), name="spark-start", daemon=True).start()

    def replace_if_lost(self) -> bool:
        """Starts a new application if this one does not live any more.  Returns whether that was so."""
        if not self.session.done() or (self.session.exception() is None and is_alive(self.session.result())):
            return False
        stop_session()
        self._losses += 1
        self._borrowed = False
        self.start()
        return True

    def cancel_jobs(self) -> None:
        """Ends what the session computes: nobody waits for it any more."""
        if self.session.done() and self.session.exception() is None and is_alive(self.session.result()):
            self.session.result().sparkContext.cancelAllJobs()

    def end(self) -> None:
        """Ends the session, unless it was borrowed."""
        if not self._borrowed and self.session.exception() is None:
            stop_session()

    def _start(self, session: Future[Any]) -> None:
        try:
            spark = running_session() if self._borrowed else None
            if spark is None:
                spark = start_session(self._settings, f"{self._name}-{self._losses}" if self._losses else self._name)
                warm_up(spark)
            session.set_result(spark)
        except Exception as error:
            session.set_exception(error)

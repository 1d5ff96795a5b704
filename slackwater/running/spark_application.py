"""The Spark application of a run: it starts beside Ray and the first listing, and is replaced when it is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from spark_bridge.engine.session.session import (
    begin_session,
    find_session,
    finish_session,
    is_alive,
    is_users,
    stop_session,
)
from spark_bridge.engine.session.settings import SparkSettings
from state.errors import RunFailedError, SparkLostError

if TYPE_CHECKING:
    from slackwater.status.startup_steps import StartupSteps


class SparkApplication:
    """The application of one run.  An existing session of this process is borrowed, and never ended.

    Args:
        settings: see `SparkSettings`.
        name: of the application; a new one after a loss gets a number behind it.
        startup: times the steps of the start.

    Attributes:
        session: the session, which can compute.

    Raises:
        SettingsError: this process has a session that a run cannot use.
    """

    def __init__(self, settings: SparkSettings, name: str, startup: StartupSteps) -> None:
        self._settings, self._name, self._startup = settings, name, startup
        self._losses = 0
        self._find = find_session(settings)
        self._ray_came = threading.Event()
        self._ray_is_up = False
        self.session: Future[Any] = Future()
        self._start_over: Future[None] = Future()

    def start(self) -> None:
        """Starts the session in a thread: reading many buckets takes less time than the start."""
        self.session, self._start_over = Future(), Future()
        starting = (self.session, self._start_over)
        threading.Thread(target=self._start, args=starting, name="spark-start", daemon=True).start()

    @property
    def start_is_over(self) -> bool:
        """The start is over, with success or failure: executors compute, or there is no session."""
        return self._start_over.done()

    @property
    def failure(self) -> Exception | None:
        """The failure of the start; None before it is over."""
        return self._start_failure() if self._start_over.done() else None

    def reason_of(self, failure: Exception) -> Exception:
        """The reason of an attempt's failure: a start that fails ends its session, and so the work on it.

        Args:
            failure: of the attempt.
        """
        if isinstance(failure, SparkLostError):
            self._start_failure()
        # Of a driver that died by itself the work knows more, as the views that were computed.
        return failure if self.failure is None or isinstance(self.failure, SparkLostError) else self.failure

    def ray_is_up(self) -> None:
        """Ray has started; the start of the session may use it."""
        self._ray_is_up = True
        self._ray_came.set()

    def replace_if_lost(self) -> bool:
        """Starts a new application if this one has died.  Returns whether it has."""
        if not self.session.done() or (self.session.exception() is None and is_alive(self.session.result())):
            return False
        if self.session.exception() is None and is_users(self.session.result()):
            raise RunFailedError(
                "the SparkSession of this process, which the run had borrowed, is dead: start another one with "
                "raydp.init_spark, or none, and start the run again; it continues where it stopped"
            )
        self._start_failure()
        stop_session()
        self._losses += 1
        self._find = None
        self.start()
        return True

    def cancel_jobs(self) -> None:
        """Cancels the jobs of the session.  A borrowed session may have other jobs, and is left alone."""
        # While executors start, one of the jobs is the first one, which proves that they compute.
        if not self.start_is_over or self.failure is not None:
            return
        spark = self.session.result()
        if not is_users(spark) and is_alive(spark):
            spark.sparkContext.cancelAllJobs()

    def give_up(self) -> None:
        """Ends a start that waits for Ray."""
        self._ray_came.set()

    def end(self) -> None:
        """Ends the session unless it is borrowed; first the start, if Ray has not come."""
        self.give_up()
        if self._find is None and self._start_failure() is None:
            stop_session()

    def _start_failure(self) -> Exception | None:
        """The failure of the start, which this method waits for; None if it has succeeded."""
        error = self._start_over.exception()
        assert error is None or isinstance(error, Exception)
        return error

    def _start(self, session: Future[Any], start_over: Future[None]) -> None:
        try:
            if self._find is None:
                self._run_start(session.set_result)
            else:
                session.set_result(self._borrowed(self._find))
            start_over.set_result(None)
        except Exception as error:
            start_over.set_exception(error)
            if not session.done():
                session.set_exception(error)

    def _borrowed(self, find: Callable[[], Any]) -> Any:
        self._ray_came.wait()
        with self._startup.step("Spark's session"):
            return find()

    def _run_start(self, on_session: Callable[[Any], None]) -> None:
        name = f"{self._name}-{self._losses}" if self._losses else self._name
        application = begin_session(self._settings, name, lambda: self._ray_is_up, self._startup.step)
        self._ray_came.wait()
        if not self._ray_is_up:
            application.end()
            raise RunFailedError("Spark cannot start: Ray has not started")
        on_session(finish_session(application, self._settings.start_timeout_s))

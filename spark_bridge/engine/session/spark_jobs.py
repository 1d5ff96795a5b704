"""Jobs on Spark that always end: with a result, an error, or `SparkLostError`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from typing import Any, Literal, TypeVar

import pyarrow as pa
import structlog
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from actors.telemetry.logging import redact
from spark_bridge.engine.application.driver_jvm import begin_call, end_driver, has_ended, is_out_of_memory
from spark_bridge.engine.session.computing_views import ComputingViews
from spark_bridge.engine.session.session import is_alive, is_users
from spark_bridge.engine.session.spark_errors import (
    OWNER_DIED,
    ends_run,
    is_death,
    is_of_full_disk,
    one_line,
    reason_of,
    rows_lost,
)
from state.clock import SystemClock
from state.errors import (
    DamagedStoreError,
    NotFoundError,
    RunFailedError,
    SlackwaterError,
    SparkLostError,
    StorageFullError,
    UsageError,
    ViewFailedError,
)

_Result = TypeVar("_Result")

_AT_ONCE = 4
_LONG_S = 60.0
"""Work that takes longer is reported with the names of the views; again after twice the time."""
# Most epochs end before the first liveness check; a check takes some milliseconds.
_LOOK_S = 5.0
_CUT_OFF = (Py4JNetworkError, ConnectionError)
_MOST_CHARS = 2_000
"""Of the error of a view, which the catalog keeps."""
_LOST_OBJECT = "UnreconstructableException"
# A broken stream of a result is an Arrow error or an end of file.
_FAILURES = (PySparkException, Py4JError, ConnectionError, EOFError, pa.ArrowInvalid)
_OF_ONE_VIEW = (UsageError, NotFoundError, DamagedStoreError)
"""The classes of `SlackwaterError` that concern one view; all other classes concern the run."""
_log = structlog.get_logger(actor="materializer")


JobKind = Literal["source", "view"]
"""The thing that a piece of work is done for."""


class SparkJobs:
    """Runs pieces of work in threads, side by side, and watches the application meanwhile.

    Args:
        alone_s: seconds from now in which one view is computed at a time, see `ComputingViews`.
    """

    def __init__(self, spark: SparkSession, alone_s: float = 0.0) -> None:
        self._spark, self._computing = spark, ComputingViews(SystemClock(), alone_s)
        # Kept here: pyspark knows only the gateway of the latest session.
        self._gateway = spark.sparkContext._gateway
        jvm: Any = spark._jvm
        self._session: Any = spark._jsparkSession
        self._set_active = jvm.org.apache.spark.sql.SparkSession.setActiveSession
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="view")

    def run(self, kind: JobKind, doing: str, work: Mapping[str, Callable[[], _Result]]) -> dict[str, _Result]:
        """The result of each piece of work.

        When one piece fails, the others finish first: no work is left behind in a thread.  If the application dies, it
        is ended, so that all pieces finish.

        Args:
            kind: the kind of the names, for messages.
            doing: the work, for messages: `"over the rows of an epoch"`.
            work: name → piece of work.

        Raises:
            SparkLostError: the application is gone.
            StorageFullError: the disk of Spark's scratch directory is full.
            ViewFailedError: the work on a view failed for any other reason.
            RunFailedError: jobs were cancelled, or lost their executors; or the work on a source failed.
        """
        return {name: future.result() for name, future in self._done(kind, doing, work).items()}

    def run_views(
        self, doing: str, work: Mapping[str, Callable[[], _Result]]
    ) -> tuple[dict[str, _Result], list[ViewFailedError]]:
        """The results of the views, and the errors of the failed views.

        Every error counts as an error of the view, unless it provably has another cause: see `run`, and the errors of
        a store.
        """
        results, failed = {}, []
        for name, future in self._done("view", doing, work).items():
            try:
                results[name] = future.result()
            except ViewFailedError as error:
                failed.append(error)
            except _OF_ONE_VIEW as error:
                failed.append(ViewFailedError(name, doing, str(error)[:_MOST_CHARS]))
        return results, failed

    @contextmanager
    def guard(self, name: str, doing: str) -> Iterator[None]:
        """Raises the errors of the block, which is work on one view in this thread, as `of_view` returns them."""
        with self._computing.computing(name):
            try:
                yield
            except Exception as error:  # the edge of the work on one view, see `_classified`
                raise self.of_view(name, doing, error) from error

    def of_view(self, name: str, doing: str, error: Exception) -> SlackwaterError:
        """Converts an error in the work on a view: to a `ViewFailedError`, or to an error that ends the run."""
        if isinstance(error, SlackwaterError):
            is_of_view = isinstance(error, _OF_ONE_VIEW)
            return ViewFailedError(name, doing, str(error)[:_MOST_CHARS]) if is_of_view else error
        return self._error("view", name, doing, error)

    def close(self) -> None:
        """Ends the threads; the session is the caller's."""
        self._threads.shutdown()

    def _done(self, kind: JobKind, doing: str, work: Mapping[str, Callable[[], _Result]]) -> dict[str, Future[_Result]]:
        """Does all of the work.  Returns the futures, which are done."""
        futures = {name: self._threads.submit(self._classified, kind, name, doing, call) for name, call in work.items()}
        self._wait(kind, doing, {future: name for name, future in futures.items()})
        return futures

    def _wait(self, kind: JobKind, doing: str, names: Mapping[Future[Any], str]) -> None:
        """Returns when all are done.  Logs work that takes long: a Python function may never return."""
        clock, running = SystemClock(), {*names}
        begun_s, report_s = clock.monotonic(), _LONG_S
        while running := wait(running, _LOOK_S).not_done:
            if not is_alive(self._spark):
                self._release()
            seconds = clock.monotonic() - begun_s
            if seconds >= report_s:
                report_s *= 2
                slow = sorted(names[each] for each in running if each.running())
                _log.warning("work takes long", kind=kind, names=slow, doing=doing, seconds=round(seconds))

    def _release(self) -> None:
        """Makes the calls return that wait for an application that cannot compute any longer."""
        if is_users(self._spark):
            begin_call(self._spark.sparkContext.cancelAllJobs)
        else:
            end_driver(self._gateway)

    def _died_of(self, error: BaseException) -> str:
        if is_out_of_memory(self._gateway):
            return (
                "died: its driver ran out of memory; give it more (SparkSettings.driver_memory), start a new one, and "
                "the run continues from the last epoch"
            )
        try:
            reason = one_line(error)
        except (Py4JError, OSError):  # the text of a Java exception is in the JVM
            reason = ""
        return f"died ({reason or type(error).__name__}); start a new one, and the run continues from the last epoch"

    def _classified(self, kind: JobKind, of: str, doing: str, call: Callable[[], _Result]) -> _Result:
        with nullcontext() if kind == "source" else self._computing.computing(of):
            try:
                # New expressions take ANSI mode and time zone from the session of the thread, or else Spark's defaults.
                self._set_active(self._session)
                return call()
            except SlackwaterError:
                raise
            except BaseException as error:
                # The edge of the work on one view: an error that no other view shares must not reach the run.
                # A function of a view may also raise `SystemExit` or `KeyboardInterrupt`: this thread gets no signals.
                if kind == "source" and not isinstance(error, _FAILURES):
                    raise
                raise self._error(kind, of, doing, error) from error

    def _lost(self, kind: JobKind, of: str, error: BaseException) -> SparkLostError:
        views = self._computing.at_death() if kind == "view" else ()
        return SparkLostError(f"{kind} {of!r}: the Spark application {self._died_of(error)}", views)

    def _error(self, kind: JobKind, of: str, doing: str, error: BaseException) -> SlackwaterError:
        if not self._is_alive_after(error):
            return self._lost(kind, of, error)
        try:
            return self._of_living(kind, of, doing, error)
        except (Py4JError, OSError):  # the JVM, which has the causes and the texts, dies meanwhile
            return self._lost(kind, of, error)

    def _of_living(self, kind: JobKind, of: str, doing: str, error: BaseException) -> SlackwaterError:
        """The error of work on an application that lives."""
        name = f"{kind} {of!r}"
        if _LOST_OBJECT in str(error):
            return rows_lost(name, OWNER_DIED)
        if is_of_full_disk(error):
            return StorageFullError(
                f"{name}: the disk of Spark's scratch directories is full: make room there; the run continues from the "
                "last epoch"
            )
        if kind == "source" or ends_run(error):
            died = kind == "view" and is_death(error)
            views = self._computing.at_death() if died else ()
            return RunFailedError(f"{name}: Spark failed {doing}: {one_line(error)}", views)
        reason = str(redact(reason_of(error)))
        # Of Spark's errors the reason says enough, and Java's stack fills a screen.
        log = _log.debug if isinstance(error, PySparkException | Py4JError) else _log.warning
        log("the work on a view failed", view=of, doing=doing, reason=reason, exc_info=error)
        return ViewFailedError(of, doing, reason[:_MOST_CHARS])

    def _is_alive_after(self, error: BaseException) -> bool:
        if isinstance(error, _CUT_OFF) and has_ended(self._gateway):
            return False  # the connections of a JVM end before it does
        return is_alive(self._spark)

"""Jobs on Spark that always end: with a result, an error, or `SparkLostError`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Literal, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from actors.telemetry.logging import redact
from spark_bridge.application.driver_jvm import begin_call, end_driver, is_out_of_memory
from spark_bridge.session.session import is_alive, is_users
from spark_bridge.session.spark_errors import OWNER_DIED, is_of_query, one_line, rows_lost
from state.errors import RunFailedError, SparkLostError, StorageFullError, ViewFailedError

_Result = TypeVar("_Result")

_AT_ONCE = 4
# Most epochs end before the first liveness check; a check takes some milliseconds.
_LOOK_S = 5.0
_CUT_OFF = (Py4JNetworkError, ConnectionError)
_MOST_CHARS = 2_000
"""Of the error of a view, which the catalog keeps."""
_LOST_OBJECT = "UnreconstructableException"
_NO_ROOM = "No space left on device"
# A broken stream of a result is an Arrow error or an end of file.
_FAILURES = (PySparkException, Py4JError, ConnectionError, EOFError, pa.ArrowInvalid)


JobKind = Literal["source", "view"]
"""The thing that a piece of work is done for."""


class SparkJobs:
    """Runs pieces of work in threads, side by side, and watches the application meanwhile.

    Args:
        spark: the session.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
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
            ViewFailedError: an expression of a view failed over its rows.
            RunFailedError: a job failed on a living application.
        """
        return {name: future.result() for name, future in self._done(kind, doing, work).items()}

    def run_views(
        self, doing: str, work: Mapping[str, Callable[[], _Result]]
    ) -> tuple[dict[str, _Result], list[ViewFailedError]]:
        """The results of the views, and the errors of those whose own expressions failed.  Else as `run`."""
        results, failed = {}, []
        for name, future in self._done("view", doing, work).items():
            try:
                results[name] = future.result()
            except ViewFailedError as error:
                failed.append(error)
        return results, failed

    def close(self) -> None:
        """Ends the threads; the session is the caller's."""
        self._threads.shutdown()

    def _done(self, kind: JobKind, doing: str, work: Mapping[str, Callable[[], _Result]]) -> dict[str, Future[_Result]]:
        """Does all of the work.  Returns the futures, which are done."""
        futures = {name: self._threads.submit(self._classified, kind, name, doing, call) for name, call in work.items()}
        self._wait(set(futures.values()))
        return futures

    def _wait(self, running: set[Future[Any]]) -> None:
        while running := wait(running, _LOOK_S).not_done:
            if not is_alive(self._spark):
                self._release()

    def _release(self) -> None:
        """Makes the calls return that wait for an application that cannot compute any longer."""
        if is_users(self._spark):
            begin_call(self._spark.sparkContext.cancelAllJobs)
        else:
            end_driver(self._gateway)

    def _died_of(self, error: Exception) -> str:
        if is_out_of_memory(self._gateway):
            return (
                "died: its driver ran out of memory; give it more (SparkSettings.driver_memory), start a new one, and "
                "the run continues from the last epoch"
            )
        return f"died ({one_line(error)}); start a new one, and the run continues from the last epoch"

    def _classified(self, kind: JobKind, of: str, doing: str, call: Callable[[], _Result]) -> _Result:
        name = f"{kind} {of!r}"
        try:
            # New expressions take ANSI mode and time zone from the session of the thread, or else Spark's defaults.
            self._set_active(self._session)
            return call()
        except _FAILURES as error:
            if isinstance(error, _CUT_OFF) or not is_alive(self._spark):
                raise SparkLostError(f"{name}: the Spark application {self._died_of(error)}") from error
            if _LOST_OBJECT in str(error):
                raise rows_lost(name, OWNER_DIED) from error
            if _NO_ROOM in str(error):
                raise StorageFullError(
                    f"{name}: the disk of Spark's scratch directories is full: make room there; the run continues "
                    "from the last epoch"
                ) from error
            if kind == "view" and is_of_query(error):
                reason = str(redact(one_line(error)))
                raise ViewFailedError(of, doing, reason[:_MOST_CHARS]) from error
            raise RunFailedError(f"{name}: Spark failed {doing}: {one_line(error)}") from error

"""Work on Spark that always ends: with its result, its error, or the news that Spark is gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_bridge.application.driver_jvm import begin_call, end_driver
from spark_bridge.session.session import is_alive, is_users
from spark_bridge.session.spark_errors import one_line, rows_lost
from state.errors import RunFailedError, SparkLostError, StorageFullError

_Result = TypeVar("_Result")

_AT_ONCE = 4
# Most epochs are over before the first look; one look takes some milliseconds.
_LOOK_S = 5.0
_CUT_OFF = (Py4JNetworkError, ConnectionError)
_LOST_OBJECT = "UnreconstructableException"
_NO_ROOM = "No space left on device"
# The stream of a result that breaks off is an error of Arrow's, or the end of a file.
_FAILURES = (PySparkException, Py4JError, ConnectionError, EOFError, pa.ArrowInvalid)


class SparkJobs:
    """Runs work side by side in threads, and watches the application meanwhile.

    Args:
        spark: the session.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        # Its own: when another session has begun, pyspark only knows that one's.
        self._gateway = spark.sparkContext._gateway
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="view")

    def run(self, kind: str, doing: str, work: Mapping[str, Callable[[], _Result]]) -> dict[str, _Result]:
        """The result of each piece of work.

        When one fails the others are finished first, so that nothing goes on behind the caller's back.  An application
        that has died under them is ended, so that they finish too.

        Args:
            kind: what each piece is done for, for messages: `"view"`.
            doing: what the work is, for messages: `"over the rows of an epoch"`.
            work: by name.

        Raises:
            SparkLostError: the application is gone.
            StorageFullError: the disk of Spark's scratch directory is full.
            RunFailedError: a job failed on a living application.
        """
        futures = {
            name: self._threads.submit(self._classified, f"{kind} {name!r}", doing, call) for name, call in work.items()
        }
        self._wait(set(futures.values()))
        return {name: future.result() for name, future in futures.items()}

    def close(self) -> None:
        """Ends the threads; the session is the caller's."""
        self._threads.shutdown()

    def _wait(self, running: set[Future[Any]]) -> None:
        while running := wait(running, _LOOK_S).not_done:
            if not is_alive(self._spark):
                self._release()

    def _release(self) -> None:
        """Lets calls come back that an application which cannot compute any more would keep for ever."""
        if is_users(self._spark):
            begin_call(self._spark.sparkContext.cancelAllJobs)
        else:
            end_driver(self._gateway)

    def _classified(self, name: str, doing: str, call: Callable[[], _Result]) -> _Result:
        try:
            return call()
        except _FAILURES as error:
            if isinstance(error, _CUT_OFF) or not is_alive(self._spark):
                raise SparkLostError(
                    f"{name}: the Spark application died ({one_line(error)}); "
                    "start a new one, and the run goes on from the last epoch"
                ) from error
            if _LOST_OBJECT in str(error):
                raise rows_lost(name, "since the actor that had read them died") from error
            if _NO_ROOM in str(error):
                raise StorageFullError(
                    f"{name}: the disk of Spark's scratch directories is full: make room there; the run goes on from "
                    "the last epoch"
                ) from error
            raise RunFailedError(f"{name}: Spark failed {doing}: {one_line(error)}") from error

"""Calls into the JVM of the driver that are begun early or may not be answered."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, TypeVar

from py4j.protocol import Py4JError
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

_Result = TypeVar("_Result")


def begin_call(call: Callable[[], _Result]) -> Future[_Result]:
    """Begins a call in a thread of its own, which does not keep the process from ending.

    For calls into other processes that have no limit of time: to a JVM over py4j, to Ray.

    Args:
        call: what is done; its error becomes the future's.
    """
    future: Future[_Result] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="begun-call", daemon=True).start()
    return future


# A JVM that collects garbage may be silent for seconds.
ANSWER_S = 5.0
_END_S = 3.0


def start_driver(configs: Mapping[str, str]) -> Any:
    """A JVM for a session that is yet to be made, and py4j's gateway to it.

    Args:
        configs: Spark's, of which those count that say how a JVM starts.
    """
    submitted = SparkConf(loadDefaults=False)
    for name, value in configs.items():
        submitted.set(name, value)
    return launch_gateway(submitted)


def driver_answers(spark: SparkSession) -> bool:
    """Whether the session's JVM lives and answers."""
    context = spark.sparkContext._jsc
    if context is None:
        return False  # the session was stopped
    try:
        return not begin_call(lambda: context.sc().isStopped()).result(ANSWER_S)
    except (FutureTimeoutError, Py4JError, OSError):
        return False


def end_driver(gateway: Any) -> None:
    """Ends the JVM behind a gateway of py4j, frozen or not; every call that waits for its answer fails then.

    Args:
        gateway: None, or one whose JVM somebody else has started, is left alone.
    """
    driver = getattr(gateway, "proc", None)
    if driver is None:
        return
    # It ends with its standard input; SIGTERM it ignores, see `spark_log`.
    driver.stdin.close()
    try:
        driver.wait(_END_S)
    except subprocess.TimeoutExpired:
        driver.kill()
        driver.wait()

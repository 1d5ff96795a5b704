"""The JVM of the driver: its start, its end, and calls into it that may never return."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from typing import Any, TypeVar

from py4j.protocol import Py4JError
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

_Result = TypeVar("_Result")


def begin_call(call: Callable[[], _Result]) -> Future[_Result]:
    """Begins a call in a thread of its own, which does not keep the process from ending.

    For calls into other processes without a time limit: to a JVM over py4j, to Ray.

    Args:
        call: the call; its error becomes the future's.
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
_WITHOUT_MEMORY = (3, 52)
"""Exit codes: of Java with `-XX:+ExitOnOutOfMemoryError`, and of Spark."""


def start_driver(configs: Mapping[str, str]) -> Any:
    """Starts a JVM for a later session.  Returns py4j's gateway to it.

    Args:
        configs: Spark's settings; those for the start of a JVM are used.
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


def has_ended(gateway: Any) -> bool:
    """True if the JVM behind a gateway of py4j has ended, or ends within three seconds.

    Args:
        gateway: as for `end_driver`.
    """
    driver = getattr(gateway, "proc", None)
    if driver is None:
        return False
    with suppress(subprocess.TimeoutExpired):
        driver.wait(_END_S)
    return driver.returncode is not None


def is_out_of_memory(gateway: Any) -> bool:
    """Whether the JVM behind a gateway of py4j, which is gone, has ended since its heap was full.

    Args:
        gateway: as for `end_driver`.
    """
    driver = getattr(gateway, "proc", None)
    if driver is None:
        return False
    with suppress(subprocess.TimeoutExpired):  # its connections end before it does
        driver.wait(_END_S)
    return driver.returncode in _WITHOUT_MEMORY


def end_driver(gateway: Any) -> None:
    """Ends the JVM behind a gateway of py4j, even a frozen one; every call that waits for its answer then fails.

    Args:
        gateway: of the JVM; None, or the gateway of a JVM that this process did not start, has no effect.
    """
    driver = getattr(gateway, "proc", None)
    if driver is None:
        return
    # It ends with its standard input, and ignores SIGTERM, see `spark_log`.
    driver.stdin.close()
    try:
        driver.wait(_END_S)
    except subprocess.TimeoutExpired:
        driver.kill()
        driver.wait()

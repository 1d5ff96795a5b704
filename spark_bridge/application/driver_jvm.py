"""The JVM of this process's session: its start, whether it answers, and its end.

py4j itself waits for an answer for ever.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from spark_bridge.application.begin_call import begin_call

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

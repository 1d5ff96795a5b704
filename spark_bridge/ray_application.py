"""The processes of a Spark application on RayDP: their start, whether they live, and their end.

    this process ─── py4j ───► the driver's JVM, which asks for executors
    Ray actor <name>_SPARK_MASTER (Python) ─── py4j ───► a JVM, which as a Ray job of its own owns
        Ray actor RAY_APP_MASTER (Java), which owns
            the executors (Ray actors in Java): one that dies is started again, which takes some 2 s

Whatever is owned dies with its owner, and only executors come back.  Spark waits for executors for ever, and py4j for a
JVM that does not answer: so whoever waits must ask now and then whether the application lives.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping
from concurrent.futures import TimeoutError as FutureTimeoutError
from concurrent.futures import wait
from functools import partial
from typing import Any

import ray
import raydp
import raydp.context
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession, SQLContext
from pyspark.sql.udf import UserDefinedFunction
from ray.exceptions import RayError
from raydp.spark.ray_cluster_master import RAYDP_SPARK_MASTER_SUFFIX

from spark_bridge.begin_call import begin_call
from spark_bridge.driver_jvm import ANSWER_S, end_driver
from spark_bridge.spark_log import log_file
from state.clock import SystemClock
from state.errors import RunFailedError

_APP_MASTER = "RAY_APP_MASTER"
_LOOK_S = 0.1
_POLITE_S = 10.0


class RayApplication:
    """One application: started once, ended once, and then another may be started in the same process.

    Args:
        name: unique within the Ray cluster.
    """

    def __init__(self, name: str) -> None:
        self.spark: SparkSession | None = None
        self._name = name
        self._master = f"{name}{RAYDP_SPARK_MASTER_SUFFIX}"
        self._app_master: Any = None
        self._clock = SystemClock()

    def start(self, options: Mapping[str, Any], timeout_s: float) -> SparkSession:
        """Starts it, and waits until it has an executor.

        Args:
            options: of `raydp.init_spark`.
            timeout_s: RayDP itself waits for room in the cluster for ever.

        Raises:
            RunFailedError: it did not start; nothing of it is left.
        """
        os.environ["SPARK_LOCAL_IP"] = ray.util.get_node_ip_address()
        deadline_s = self._clock.monotonic() + timeout_s
        starting = begin_call(partial(raydp.init_spark, app_name=self._name, **options))
        wait([starting], timeout_s)
        error = starting.exception() if starting.done() else None
        if starting.done() and error is None:
            self.spark = starting.result()
            self._app_master = _actor(_APP_MASTER)
            if self.is_alive(deadline_s - self._clock.monotonic()):
                return self.spark
        room = _room(options)
        self.end()
        if error is not None:
            raise RunFailedError(
                f"Spark did not start on Ray: {error}; look into {log_file()} and Ray's logs"
            ) from error
        raise RunFailedError(f"Spark did not get an executor from Ray within {timeout_s:g} s (start_timeout_s): {room}")

    def is_alive(self, timeout_s: float) -> bool:
        """Whether it can compute: the JVM answers, the masters live, and there is an executor.

        Args:
            timeout_s: how long an executor that died may take to come back; what cannot come back is not waited for.
        """
        deadline_s = self._clock.monotonic() + timeout_s
        while (executors := self._executors()) == 0 and self._clock.monotonic() < deadline_s:
            self._clock.sleep(_LOOK_S)
        return executors > 0

    def end(self) -> None:
        """Ends every process of it that still lives, and forgets it; takes at most half a minute."""
        polite = begin_call(raydp.stop_spark) if self._executors() >= 0 else None
        if polite is not None:
            # Spark removes its files, and finishes the event log if the user has asked for one.
            wait([polite], _POLITE_S)
        gateway = SparkContext._gateway
        if gateway is not None:
            end_driver(gateway)
            wait([begin_call(gateway.shutdown)], ANSWER_S)
        wait([begin_call(self._end_masters)], _POLITE_S)
        if polite is not None:
            wait([polite], ANSWER_S)
        _forget_session()
        self.spark = None

    def _executors(self) -> int:
        """How many are registered; -1 if the driver or a master is gone, or does not answer."""
        spark = self.spark
        if spark is None or spark.sparkContext._jsc is None or not ray.is_initialized():
            return -1
        try:
            return begin_call(partial(self._count_executors, spark)).result(ANSWER_S)
        except (FutureTimeoutError, Py4JError, OSError, RayError):
            return -1

    def _count_executors(self, spark: SparkSession) -> int:
        if not {self._master, _APP_MASTER} <= set(ray.util.list_named_actors()):
            return -1
        return int(spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()) - 1  # one is the driver's

    def _end_masters(self) -> None:
        """Returns when Ray has forgotten them: RayDP gives the next application's the same names."""
        if not ray.is_initialized():
            return
        # An application that did not start may have met the master of another one.
        names = {self._master} if self._app_master is None else {self._master, _APP_MASTER}
        for actor in (self._app_master, _actor(self._master)):
            if actor is not None:
                ray.kill(actor)
        deadline_s = self._clock.monotonic() + _POLITE_S
        while names & set(ray.util.list_named_actors()) and self._clock.monotonic() < deadline_s:
            self._clock.sleep(_LOOK_S)


def _actor(name: str) -> Any:
    """The living Ray actor of a name, or None."""
    try:
        return ray.get_actor(name)
    except ValueError:
        return None


def _room(options: Mapping[str, Any]) -> str:
    """What was asked for, and what there is."""
    free, all_of_it = ray.available_resources(), ray.cluster_resources()
    executors, cores, memory = (options[name] for name in ("num_executors", "executor_cores", "executor_memory"))
    return (
        f"it asks for {executors} executor(s) of {cores} CPU and {memory} of memory each, and 1 CPU while it starts; "
        f"the cluster has {free.get('CPU', 0):g} of {all_of_it.get('CPU', 0):g} CPU free, and "
        f"{free.get('memory', 0) / 2**30:.1f} of {all_of_it.get('memory', 0) / 2**30:.1f} GiB; "
        "make room, add nodes, or ask for less in SparkSettings"
    )


def _forget_session() -> None:
    """What pyspark and RayDP keep of a session for the next; the JVM that it means is gone."""
    context = SparkContext._active_spark_context
    server = getattr(context, "_accumulatorServer", None)
    if server is not None and not server.server_shutdown:
        server.shutdown()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    SQLContext._instantiatedContext = None
    raydp.context._global_spark_context = None
    # A Python function of a view may live in its module for ever, and keeps its twin in the JVM.
    for each in gc.get_objects():
        if type(each) is UserDefinedFunction:
            each._judf_placeholder = None

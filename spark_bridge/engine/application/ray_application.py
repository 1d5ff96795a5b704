"""The processes of a Spark application on Ray: start, liveness check, and end.

A process dies with its owner, and only executors come back: Ray starts one again that dies, within about 2 s.  Spark
waits for executors without a time limit, and py4j for a JVM that does not answer: so each wait checks from time to time
whether the application lives.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeoutError
from concurrent.futures import wait
from contextlib import suppress
from functools import partial

import ray
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession, SQLContext
from pyspark.sql.udf import UserDefinedFunction
from ray.exceptions import RayError

from actors.telemetry.machine_load import machine_load
from spark_bridge.engine.application.driver_jvm import ANSWER_S, begin_call, has_ended
from spark_bridge.engine.application.session_start import ApplicationSpec, SessionStart, Step
from spark_bridge.engine.application.spark_log import log_file
from state.clock import SystemClock
from state.errors import SparkLostError, SparkNotStartedError

_LOOK_S = 0.1
_POLITE_S = 10.0
_FIRST_JOB_S = 60.0
_LATE_ANSWERS = 2
"""Answers of a running JVM that are late, one after the other, until it counts as frozen."""


class RayApplication:
    """One application: started once and ended once.  Another one may then start in the same process.

    Args:
        spec: what it is.
        processes: starts and ends its processes.
        step: called with the name of each step of the start.
    """

    def __init__(self, spec: ApplicationSpec, processes: SessionStart, step: Step) -> None:
        self.spark: SparkSession | None = None
        self._spec, self._processes, self._step = spec, processes, step
        self._log_file = log_file()
        self._clock = SystemClock()

    def launch(self, ray_is_up: Callable[[], bool]) -> None:
        """See `SessionStart.launch`."""
        self._processes.launch(ray_is_up)

    def start(self, timeout_s: float, first_job: Callable[[SparkSession], None]) -> SparkSession:
        """Starts the rest, and waits for an executor and a first job.  Ray must be up.

        Args:
            timeout_s: limit of the start in seconds; Ray sets no limit to the wait for room in the cluster.
            first_job: begins before the executor lives: the driver loads classes and plans meanwhile.

        Raises:
            SparkNotStartedError: the start failed or took too long; all processes are ended.
            SparkLostError: the driver died meanwhile.
        """
        os.environ["SPARK_LOCAL_IP"] = ray.util.get_node_ip_address()
        deadline_s = self._clock.monotonic() + timeout_s
        starting = begin_call(self._processes.session)
        wait([starting], timeout_s)
        error = starting.exception() if starting.done() else None
        if starting.done() and error is None:
            self.spark = starting.result()
            job = begin_call(partial(first_job, self.spark))
            with self._step("executor"):
                # A JVM that starts on a busy machine may be silent for long.
                is_alive = self.is_alive(deadline_s - self._clock.monotonic(), late_answers=sys.maxsize)
            if is_alive:
                with self._step("first job"):
                    wait([job], max(_FIRST_JOB_S, deadline_s - self._clock.monotonic()))
                if job.done() and job.exception() is None:
                    return self.spark
                error = job.exception() if job.done() else TimeoutError("the first job did not end")
        # The text of an error of py4j comes from the JVM, while it lives.
        room, reason = self._room(), str(error or "the driver ended")
        has_died = self.spark is not None and has_ended(SparkContext._gateway)
        self.end()
        if has_died:
            raise SparkLostError(f"Spark died while it started ({reason}); look into {self._log_file}") from error
        if error is not None:
            raise SparkNotStartedError(
                f"Spark did not start on Ray ({machine_load()}): {reason}; look into {self._log_file} and Ray's logs"
            ) from error
        raise SparkNotStartedError(
            f"Spark did not get an executor from Ray within {timeout_s:g} s (start_timeout_s; {machine_load()}): {room}"
        )

    def session(self) -> SparkSession:
        """The session; the application must have started."""
        assert self.spark is not None, "it has started"
        return self.spark

    def is_alive(self, timeout_s: float, late_answers: int = _LATE_ANSWERS) -> bool:
        """Whether it can compute: the JVM answers, and at least one executor is registered.

        Args:
            timeout_s: seconds to wait for an executor to come back; a lost JVM ends the wait at once.
            late_answers: number of late answers, one after the other, that end the wait.
        """
        deadline_s, late = self._clock.monotonic() + timeout_s, 0
        while not (executors := self._executors()):
            late = late + 1 if executors is None else 0
            if late >= late_answers or self._clock.monotonic() > deadline_s:
                return False
            self._clock.sleep(_LOOK_S)
        return executors > 0

    def end(self) -> None:
        """Ends all its processes, within half a minute."""
        has_session = self.spark is not None
        executors = self._executors()
        polite = begin_call(self._processes.stop) if executors is not None and executors >= 0 else None
        if polite is not None:
            # Spark removes its files, and finishes the event log if the user has configured one.
            wait([polite], _POLITE_S)
        self._processes.end_driver()
        wait([begin_call(self._end_executors)], _POLITE_S)
        if polite is not None:
            wait([polite], ANSWER_S)
        _forget_session()
        if has_session:
            self._processes.ended()
        self.spark = None

    def _executors(self) -> int | None:
        """As `registered_executors`; -1 also if Ray is gone, or if there is no session."""
        return -1 if self.spark is None or not ray.is_initialized() else registered_executors(self.spark)

    def _end_executors(self) -> None:
        """Ends the executors, which Ray does later for a driver that was killed, and waits until it lists none."""
        deadline_s = self._clock.monotonic() + _POLITE_S
        while ray.is_initialized() and self._clock.monotonic() < deadline_s:
            actors = ray.util.list_named_actors(all_namespaces=True)
            executors = [each for each in actors if self._processes.is_executor(each["name"], each["namespace"])]
            if not executors:
                return
            for each in executors:
                with suppress(ValueError, RayError):
                    ray.kill(ray.get_actor(**each))
            self._clock.sleep(_LOOK_S)

    def _room(self) -> str:
        """The resources requested, and those of the cluster, for a message."""
        free, all_of_it = ray.available_resources(), ray.cluster_resources()
        spec = self._spec
        return (
            f"it asks for {spec.num_executors} executor(s) of {spec.executor_cores} CPU and {spec.executor_memory} of "
            "memory each; "
            f"the cluster has {free.get('CPU', 0):g} of {all_of_it.get('CPU', 0):g} CPU free, and "
            f"{free.get('memory', 0) / 2**30:.1f} of {all_of_it.get('memory', 0) / 2**30:.1f} GiB; "
            "make room, add nodes, or ask for less in SparkSettings"
        )


def registered_executors(spark: SparkSession) -> int | None:
    """Number of executors that the driver of a session has; -1 if the driver is gone; None if its answer is late."""
    if spark.sparkContext._jsc is None:
        return -1  # the session was stopped
    try:
        known = begin_call(lambda: spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size())
        return int(known.result(ANSWER_S)) - 1  # one is the driver's
    except FutureTimeoutError:
        return None
    except (Py4JError, OSError):
        return -1


def _forget_session() -> None:
    """Clears what pyspark keeps of a session: its JVM is gone."""
    context = SparkContext._active_spark_context
    server = getattr(context, "_accumulatorServer", None)
    if server is not None and not server.server_shutdown:
        server.shutdown()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    SQLContext._instantiatedContext = None
    # The next session must not inherit the options of this one.
    SparkSession.builder._options.clear()
    # A Python UDF may live on in its module, and refers to an object in the lost JVM.
    for each in gc.get_objects():
        if type(each) is UserDefinedFunction:
            each._judf_placeholder = None

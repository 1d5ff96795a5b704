"""The processes of a Spark application on Ray: start, liveness check, and end.

    this process ─── py4j ───► the driver's JVM, with RayDP's master, which as a Ray job of its own owns
        the executors (Ray actors in Java): Ray starts one again that dies, within about 2 s

A process dies with its owner, and only executors come back.  Spark waits for executors without a time limit, and py4j
for a JVM that does not answer: so each wait checks from time to time whether the application lives.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any

import ray
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession, SQLContext
from pyspark.sql.udf import UserDefinedFunction
from ray.exceptions import RayError

from spark_bridge.engine.application.app_master import AppMaster
from spark_bridge.engine.application.authentication import CONFIGS, share_one_id
from spark_bridge.engine.application.class_archive import ClassArchive, JvmRole
from spark_bridge.engine.application.class_path import class_path, log_agent
from spark_bridge.engine.application.driver_jvm import ANSWER_S, begin_call, end_driver, start_driver
from spark_bridge.engine.application.spark_log import log_file, quiet_fork
from state.clock import SystemClock
from state.errors import SparkNotStartedError

Step = Callable[[str], AbstractContextManager[Any]]
"""Reports a step of the start by its name; the step lasts as long as the context."""

_LOOK_S = 0.1
_ASK_S = 0.02
_POLITE_S = 10.0
_FIRST_JOB_S = 60.0
# Ray sets this for the processes that authenticate to it; a process inherits it.
_RAY_AUTHENTICATION = "RAY_AUTH_MODE"
_OPTIONS: Mapping[JvmRole, str] = {
    "driver": "spark.driver.extraJavaOptions",
    "executor": "spark.executor.extraJavaOptions",
}
_EXECUTOR_CLASS_PATH = "raydp.executor.extraClassPath"


class RayApplication:
    """One application: started once and ended once.  Another one may then start in the same process.

    Args:
        name: unique within the Ray cluster, and the namespace of its executors, which RayDP only numbers.
        configs: Spark's settings.
        executors: their number, cores of each, and memory of each as Java writes it (`"1g"`).
        archive: of the JVMs' classes, if any.
        step: called with the name of each step of the start.
    """

    def __init__(
        self,
        name: str,
        configs: Mapping[str, str],
        executors: tuple[int, int, str],
        archive: ClassArchive | None,
        step: Step,
    ) -> None:
        self.spark: SparkSession | None = None
        self._name, self._executors_asked, self._archive, self._step = name, executors, archive, step
        self._jars, self._log_file = ":".join(class_path()), log_file()
        number, cores, memory = executors
        self._configs = {
            **CONFIGS,
            **configs,
            "spark.executor.instances": str(number),
            "spark.executor.cores": str(cores),
            "spark.executor.memory": memory,
            "spark.driver.extraClassPath": _joined(configs.get("spark.driver.extraClassPath"), self._jars),
            # RayDP's library in the JVMs needs these; RayDP's Python package sets them otherwise.
            "spark.ray.log4j.factory.class": "log4j2",
            "spark.ray.log4j.config.file.name": "log4j2.xml",
        }
        self._gateway: Future[Any] | None = None
        self._app_master: AppMaster | None = None
        self._has_ended = False
        self._clock = SystemClock()

    def launch(self, ray_is_up: Callable[[], bool]) -> None:
        """Begins to start the driver's JVM, beside `ray.init`, which takes as long.

        Args:
            ray_is_up: whether `ray.init` is over; it may run meanwhile.
        """

        def start() -> Any:
            while _RAY_AUTHENTICATION not in os.environ and not ray_is_up() and not self._has_ended:
                self._clock.sleep(_ASK_S)
            if self._has_ended:
                raise SparkNotStartedError("the application was ended before its JVM started")
            with self._step("Java"), quiet_fork():
                return start_driver(self._with_archive("driver"))

        self._gateway = begin_call(start)

    def start(self, timeout_s: float, first_job: Callable[[SparkSession], None]) -> SparkSession:
        """Starts the rest, and waits for an executor and a first job.  Ray must be up.

        Args:
            timeout_s: limit of the start in seconds; Ray sets no limit to the wait for room in the cluster.
            first_job: begins before the executor lives: the driver loads classes and plans meanwhile.

        Raises:
            SparkNotStartedError: the start failed or took too long; all processes are ended.
        """
        os.environ["SPARK_LOCAL_IP"] = ray.util.get_node_ip_address()
        deadline_s = self._clock.monotonic() + timeout_s
        starting = begin_call(self._make_session)
        wait([starting], timeout_s)
        error = starting.exception() if starting.done() else None
        if starting.done() and error is None:
            self.spark = starting.result()
            job = begin_call(partial(first_job, self.spark))
            with self._step("executor"):
                is_alive = self.is_alive(deadline_s - self._clock.monotonic())
            if is_alive:
                with self._step("first job"):
                    wait([job], max(_FIRST_JOB_S, deadline_s - self._clock.monotonic()))
                if job.done() and job.exception() is None:
                    return self.spark
                error = job.exception() if job.done() else TimeoutError("the first job did not end")
        # The text of an error of py4j comes from the JVM, while it lives.
        room, reason = self._room(), str(error)
        self.end()
        if error is not None:
            raise SparkNotStartedError(
                f"Spark did not start on Ray: {reason}; look into {self._log_file} and Ray's logs"
            ) from error
        raise SparkNotStartedError(
            f"Spark did not get an executor from Ray within {timeout_s:g} s (start_timeout_s): {room}"
        )

    def session(self) -> SparkSession:
        """The session; the application must have started."""
        assert self.spark is not None, "it has started"
        return self.spark

    def is_alive(self, timeout_s: float) -> bool:
        """Whether it can compute: the JVM answers, and at least one executor is registered.

        Args:
            timeout_s: seconds to wait for an executor to come back; a lost JVM ends the wait at once.
        """
        deadline_s = self._clock.monotonic() + timeout_s
        while (executors := self._executors()) == 0 and self._clock.monotonic() < deadline_s:
            self._clock.sleep(_LOOK_S)
        return executors > 0

    def end(self) -> None:
        """Ends all its processes, within half a minute."""
        self._has_ended = True
        polite = begin_call(self._stop_politely) if self._executors() >= 0 else None
        if polite is not None:
            # Spark removes its files, and finishes the event log if the user has configured one.
            wait([polite], _POLITE_S)
        self._end_driver()
        wait([begin_call(self._end_executors)], _POLITE_S)
        if polite is not None:
            wait([polite], ANSWER_S)
        _forget_session()
        if self._archive is not None and self.spark is not None:
            self._archive.begin_build()
        self.spark = None

    def _make_session(self) -> SparkSession:
        assert self._gateway is not None, "it is launched"
        gateway = self._gateway.result()
        if len(ray.nodes()) == 1:
            # Other machines lack the archive, and with the option Java would not use its default one there.
            self._with_archive("executor")
        # pyspark would start a JVM of its own.
        SparkContext._gateway, SparkContext._jvm = gateway, gateway.jvm
        with self._step("Spark's master on Ray"):
            master = AppMaster(gateway.jvm, self._name)
            url = master.start(_joined(self._configs.get(_EXECUTOR_CLASS_PATH), self._jars))
            self._app_master = master
        address = ray.util.get_node_ip_address()
        builder = SparkSession.builder.master(url).appName(self._name)
        for name, value in {
            "spark.driver.host": address,
            "spark.driver.bindAddress": address,
            "spark.javaagent": log_agent(),
            **self._configs,
        }.items():
            builder = builder.config(name, value)
        with self._step("Spark's session"):
            spark = builder.getOrCreate()
            share_one_id(spark)
            return spark

    def _with_archive(self, *roles: JvmRole) -> Mapping[str, str]:
        """The configs, with the archive in the options of these JVMs."""
        if self._archive is not None:
            for role in roles:
                name = _OPTIONS[role]
                self._configs[name] = f"{self._configs.get(name, '')} {self._archive.options(role)}".strip()
        return self._configs

    def _end_driver(self) -> None:
        if self._gateway is None:
            return
        wait([self._gateway], _POLITE_S)
        if self._gateway.done() and self._gateway.exception() is None:
            gateway = self._gateway.result()
            end_driver(gateway)
            wait([begin_call(gateway.shutdown)], ANSWER_S)

    def _stop_politely(self) -> None:
        assert self.spark is not None and self._app_master is not None, "it is counted"
        self.spark.stop()
        self._app_master.end()

    def _executors(self) -> int:
        """Number of registered executors; -1 if the driver is gone, or does not answer."""
        spark = self.spark
        if spark is None or spark.sparkContext._jsc is None or not ray.is_initialized():
            return -1
        try:
            known = begin_call(lambda: spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size())
            return int(known.result(ANSWER_S)) - 1  # one is the driver's
        except (FutureTimeoutError, Py4JError, OSError):
            return -1

    def _end_executors(self) -> None:
        """Ends the executors, which Ray does later for a driver that was killed, and waits until it lists none."""
        deadline_s = self._clock.monotonic() + _POLITE_S
        while ray.is_initialized() and self._clock.monotonic() < deadline_s:
            actors = ray.util.list_named_actors(all_namespaces=True)
            executors = [each for each in actors if each["namespace"] == self._name]
            if not executors:
                return
            for each in executors:
                with suppress(ValueError, RayError):
                    ray.kill(ray.get_actor(**each))
            self._clock.sleep(_LOOK_S)

    def _room(self) -> str:
        """The resources requested, and those of the cluster, for a message."""
        free, all_of_it = ray.available_resources(), ray.cluster_resources()
        executors, cores, memory = self._executors_asked
        return (
            f"it asks for {executors} executor(s) of {cores} CPU and {memory} of memory each; "
            f"the cluster has {free.get('CPU', 0):g} of {all_of_it.get('CPU', 0):g} CPU free, and "
            f"{free.get('memory', 0) / 2**30:.1f} of {all_of_it.get('memory', 0) / 2**30:.1f} GiB; "
            "make room, add nodes, or ask for less in SparkSettings"
        )


def _joined(first: str | None, then: str) -> str:
    return f"{first}:{then}" if first else then


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

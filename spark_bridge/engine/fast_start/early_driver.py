"""The fast start of Spark on Ray: the driver's JVM starts while Ray starts, and contains RayDP's master.

this process ─── py4j ───► the driver's JVM, with RayDP's master, which as a Ray job of its own owns
    the executors (Ray actors in Java): Ray starts one again that dies, within about 2 s
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from typing import Any

import ray
from pyspark import SparkContext
from pyspark.sql import SparkSession

from spark_bridge.engine.application.authentication import share_one_id
from spark_bridge.engine.application.class_path import class_path, log_agent
from spark_bridge.engine.application.driver_jvm import ANSWER_S, begin_call, end_driver, start_driver
from spark_bridge.engine.application.session_start import ApplicationSpec, Step
from spark_bridge.engine.application.spark_log import quiet_fork
from spark_bridge.engine.fast_start.app_master import AppMaster
from spark_bridge.engine.fast_start.class_archive import ClassArchive, JvmRole
from state.clock import SystemClock
from state.errors import SparkNotStartedError

_ASK_S = 0.02
_POLITE_S = 10.0
# Ray sets this for the processes that authenticate to it; a process inherits it.
_RAY_AUTHENTICATION = "RAY_AUTH_MODE"
_OPTIONS: Mapping[JvmRole, str] = {
    "driver": "spark.driver.extraJavaOptions",
    "executor": "spark.executor.extraJavaOptions",
}
_EXECUTOR_CLASS_PATH = "raydp.executor.extraClassPath"


class EarlyDriver:
    """See `SessionStart`.  The executors are in a namespace of the application's name, since RayDP only numbers them.

    Args:
        archive: of the JVMs' classes, if any.
        step: called with the name of each step of the start.
    """

    def __init__(self, spec: ApplicationSpec, archive: ClassArchive | None, step: Step) -> None:
        self._name, self._archive, self._step = spec.name, archive, step
        self._jars = ":".join(class_path())
        self._configs = {
            **spec.configs,
            "spark.executor.instances": str(spec.num_executors),
            "spark.executor.cores": str(spec.executor_cores),
            "spark.executor.memory": spec.executor_memory,
            "spark.driver.extraClassPath": _joined(spec.configs.get("spark.driver.extraClassPath"), self._jars),
            # RayDP's library in the JVMs needs these; RayDP's Python package sets them otherwise.
            "spark.ray.log4j.factory.class": "log4j2",
            "spark.ray.log4j.config.file.name": "log4j2.xml",
        }
        self._gateway: Future[Any] | None = None
        self._app_master: AppMaster | None = None
        self._spark: SparkSession | None = None
        self._has_ended = False
        self._clock = SystemClock()

    def launch(self, ray_is_up: Callable[[], bool]) -> None:
        def start() -> Any:
            while _RAY_AUTHENTICATION not in os.environ and not ray_is_up() and not self._has_ended:
                self._clock.sleep(_ASK_S)
            if self._has_ended:
                raise SparkNotStartedError("the application was ended before its JVM started")
            with self._step("Java"), quiet_fork():
                return start_driver(self._with_archive("driver"))

        self._gateway = begin_call(start)

    def session(self) -> SparkSession:
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
            self._spark = spark
            return spark

    def stop(self) -> None:
        assert self._spark is not None and self._app_master is not None, "it is started"
        self._spark.stop()
        self._app_master.end()

    def end_driver(self) -> None:
        self._has_ended = True
        if self._gateway is None:
            return
        wait([self._gateway], _POLITE_S)
        if self._gateway.done() and self._gateway.exception() is None:
            gateway = self._gateway.result()
            end_driver(gateway)
            wait([begin_call(gateway.shutdown)], ANSWER_S)

    def is_executor(self, actor: str, namespace: str) -> bool:
        return namespace == self._name

    def ended(self) -> None:
        """Begins to build the class archive if it does not exist yet."""
        if self._archive is not None:
            self._archive.begin_build()

    def _with_archive(self, *roles: JvmRole) -> Mapping[str, str]:
        """The configs, with the archive in the options of these JVMs."""
        if self._archive is not None:
            for role in roles:
                name = _OPTIONS[role]
                self._configs[name] = f"{self._configs.get(name, '')} {self._archive.options(role)}".strip()
        return self._configs


def _joined(first: str | None, then: str) -> str:
    return f"{first}:{then}" if first else then

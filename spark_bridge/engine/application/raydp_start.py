"""The plain start of Spark on Ray: `raydp.init_spark`, without private parts of RayDP, Ray or Java.

    this process ─── py4j ───► the driver's JVM
         └─ Ray ───► RayDP's master: an actor in Python, its JVM, and an actor in Java, which starts the executors

It takes two JVMs and two actors more than the fast start, each started after the one before.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import wait

import ray
from pyspark import SparkContext
from pyspark.sql import SparkSession

from spark_bridge.engine.application.authentication import ENABLED, require_shared_secret, share_one_id
from spark_bridge.engine.application.driver_jvm import ANSWER_S, begin_call, end_driver
from spark_bridge.engine.application.session_start import ApplicationSpec, Step
from spark_bridge.engine.application.spark_log import quiet_fork
from state.errors import SparkNotStartedError

_EXECUTOR_NAME = "raydp-executor-"
_DRIVER_OPTIONS = "spark.driver.extraJavaOptions"
_MASTER_OPTIONS = "spark.ray.raydp_app_master.extraJavaOptions"


class RaydpStart:
    """See `SessionStart`.  The executors are in the namespace of this process on Ray.

    Args:
        step: called with the name of each step of the start.
    """

    def __init__(self, spec: ApplicationSpec, step: Step) -> None:
        self._spec, self._step = spec, step
        self._namespace: str | None = None

    def launch(self, ray_is_up: Callable[[], bool]) -> None:
        """Does nothing: RayDP starts all processes itself, when Ray is up."""

    def session(self) -> SparkSession:
        # Loads pandas and Ray Data.
        import raydp

        spec = self._spec
        if spec.configs.get(ENABLED) == "true":
            require_shared_secret()
        self._namespace = ray.get_runtime_context().namespace
        self._require_free_names()
        configs = {_MASTER_OPTIONS: spec.configs.get(_DRIVER_OPTIONS, ""), **spec.configs}
        with self._step("Spark's session"), quiet_fork():
            spark: SparkSession = raydp.init_spark(
                spec.name, spec.num_executors, spec.executor_cores, spec.executor_memory, configs=configs
            )
            share_one_id(spark)
            return spark

    def stop(self) -> None:
        import raydp

        raydp.stop_spark()

    def end_driver(self) -> None:
        end_driver(SparkContext._gateway)
        if self._namespace is not None:
            # RayDP refuses another application until this one is stopped, even if its JVM is gone.
            wait([begin_call(self.stop)], ANSWER_S)

    def is_executor(self, actor: str, namespace: str) -> bool:
        return namespace == self._namespace and actor.startswith(_EXECUTOR_NAME)

    def ended(self) -> None:
        """Does nothing: RayDP leaves nothing behind."""

    def _require_free_names(self) -> None:
        """Refuses a namespace with executors of another application.

        RayDP gives all executors the same names.  It could not create executors of this application, and the end of
        this application would end the existing executors.
        """
        actors = ray.util.list_named_actors(all_namespaces=True)
        if any(self.is_executor(each["name"], each["namespace"]) for each in actors):
            namespace, self._namespace = self._namespace, None
            raise SparkNotStartedError(
                f"the Ray namespace {namespace!r} has executors of another application, and RayDP gives all executors "
                "the same names; end that application, or set another RaySettings(namespace=...)"
            )

"""RayDP's application master, in the driver's own JVM.

`raydp.init_spark` starts a Ray actor with a JVM, which starts the master, a Ray actor with another JVM, and then the
driver, each after the one before.  The master is an endpoint of Spark's RPC that starts the executors, and needs no
process of its own: the driver's JVM is connected to Ray, and an application without its driver is lost anyway.
"""

from __future__ import annotations

import json
from typing import Any

from actors.fast_start.private_parts import driver_properties
from spark_bridge.engine.application.authentication import secret_properties


class AppMaster:
    """The master of one application: it starts the executors, Ray actors in Java, and owns them.

    Args:
        namespace: Ray namespace of the executors.
    """

    def __init__(self, jvm: Any, namespace: str) -> None:
        self._jvm, self._namespace = jvm, namespace
        self._ray = jvm.io.ray.api.Ray
        self._master: Any = None

    def start(self, jars: str) -> str:
        """Connects the JVM to this process's Ray, as a Ray job of its own, and begins to listen for the application.

        The master takes the settings of the application from the properties of the JVM, which was started with them.

        Args:
            jars: the class path of the executors.

        Returns:
            The master's URL for Spark.
        """
        raydp = self._jvm.org.apache.spark.deploy.raydp
        properties = {**secret_properties(), **driver_properties(), "ray.job.namespace": self._namespace}
        raydp.RayAppMaster.setProperties(json.dumps(properties))
        self._ray.init()
        self._master = raydp.RayAppMaster(jars)
        return str(self._master.getMasterUrl())

    def end(self) -> None:
        """Ends the master, and the JVM's connection to Ray and with it the executors."""
        self._master.stop()
        self._ray.shutdown()

"""RayDP's application master, started by the driver's own JVM.

`raydp.init_spark` starts a Ray actor with a further JVM for this, one after the other, before the driver.  Both are
idle later.  Here the driver's JVM starts first, beside Ray, and starts the master itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import ray

from spark_bridge.application.authentication import secret_properties

APP_MASTER = "RAY_APP_MASTER"


class AppMaster:
    """The master of one application, a Ray actor of Java, which starts the executors.

    Args:
        jvm: of the driver.
        namespace: Ray namespace of the master and the executors.
    """

    def __init__(self, jvm: Any, namespace: str) -> None:
        self._jvm, self._namespace = jvm, namespace
        self._bridge = jvm.org.apache.spark.deploy.raydp.AppMasterJavaBridge()

    def start(self, configs: Mapping[str, str], jars: str) -> str:
        """Connects the JVM to this process's Ray, starts the master, and waits for it without a time limit.

        Args:
            configs: of the application.
            jars: the class path of the master and the executors.

        Returns:
            The master's URL for Spark.
        """
        self._jvm.org.apache.spark.deploy.raydp.RayAppMaster.setProperties(json.dumps(_ray_properties(self._namespace)))
        properties = self._jvm.java.util.HashMap()
        for name, value in configs.items():
            properties.put(name, value)
        self._bridge.startUpAppMaster(jars, properties)
        return str(self._bridge.getMasterUrl())

    def end(self) -> None:
        """Ends the master and with it the executors, and the JVM's connection to Ray."""
        self._bridge.stop()


def _ray_properties(namespace: str) -> dict[str, str]:
    """The properties that make Ray's library in a JVM a driver on this process's Ray."""
    node = ray._private.worker._global_node
    return {
        **secret_properties(),
        "ray.run-mode": "CLUSTER",
        "ray.node-ip": node.node_ip_address,
        "ray.address": node.address,
        "ray.logging.dir": node.get_logs_dir_path(),
        "ray.logging.level": "INFO",
        "ray.session-dir": node.get_session_dir_path(),
        "ray.raylet.node-manager-port": str(node.node_manager_port),
        "ray.raylet.socket-name": node.raylet_socket_name,
        "ray.raylet.config.num_workers_per_process_java": "1",
        "ray.object-store.socket-name": node.plasma_store_socket_name,
        "ray.job.namespace": namespace,
    }

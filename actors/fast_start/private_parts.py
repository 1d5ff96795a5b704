"""Facts of Ray that no public function returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ray._private import worker


def owner_addresses(references: Sequence[Any]) -> list[bytes]:
    """The address of the owner of each object, as RayDP's reader in Spark's tasks takes it."""
    core_worker = worker.global_worker.core_worker
    return [core_worker.get_owner_address(each) for each in references]


def driver_properties() -> dict[str, str]:
    """The properties that make Ray's library in a JVM a driver on this process's Ray."""
    node = worker._global_node
    return {
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
    }

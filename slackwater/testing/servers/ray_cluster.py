"""A real Ray cluster on loopback: `ray start` for each node, with a dashboard and a job server."""

from __future__ import annotations

import json
import os
import secrets  # noqa: TID251 - a token that cannot be guessed
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import psutil

from slackwater.testing.servers.free_ports import HOST, free_ports
from slackwater.testing.servers.guarded_process import GuardedProcess
from state.clock import Clock, SystemClock
from state.errors import RunFailedError

_STARTS = 3
_START_S = 90.0
_POLL_S = 0.1
_STARTED = "Ray runtime started."
_MIB = 1024 * 1024
NODE_RESOURCE = 1_000
"""The amount that each node has of the resource with its name."""


@dataclass(frozen=True)
class RayNode:
    """One node: a raylet with an object store of its own, and the worker processes below it."""

    name: str
    process: GuardedProcess

    @property
    def pid(self) -> int:
        """Of `ray start`; everything that runs on the node is below it."""
        return self.process.pid


class RayCluster:
    """A cluster of Ray nodes on this machine, for the length of a `with` block.

    It ends with the block, or with the process that started it however that ends, and leaves no files.  No other
    process of this machine finds it by itself.

    Args:
        num_cpus: logical CPUs of the head node.
        resources: custom resources of the head node; each node has one of its own name, `head` here.
        object_store_bytes: memory for objects, of each node.
        environment: variables of every process on its nodes, in addition to the variables of this process.
        clock: paces the waiting.

    Raises:
        RunFailedError: a node did not start; the message has the end of its log.

    Example:
        >>> with RayCluster(num_cpus=2) as cluster:
        ...     cluster.add_node("worker", num_cpus=2)
        ...     subprocess.run([sys.executable, "job.py"], env={**os.environ, **cluster.environment}, check=True)
    """

    def __init__(
        self,
        *,
        num_cpus: int,
        resources: Mapping[str, float] | None = None,
        object_store_bytes: int = 128 * _MIB,
        environment: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._num_cpus, self._resources = num_cpus, dict(resources or {})
        self._object_store_bytes = object_store_bytes
        self._environment = {**(environment or {}), "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        self._clock = clock or SystemClock()
        self._port, self._dashboard_port = 0, 0
        self.nodes: dict[str, RayNode] = {}

    def __enter__(self) -> RayCluster:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"RayCluster({self.address!r}, nodes={list(self.nodes)})"

    @property
    def address(self) -> str:
        """The address for `ray.init`."""
        return f"{HOST}:{self._port}"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a driver in the cluster, or of a process that submits a job."""
        access = {name: self._environment[name] for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN")}
        return {**access, "RAY_ADDRESS": self.address, "RAY_API_SERVER_ADDRESS": self.job_server}

    @property
    def job_server(self) -> str:
        """The address for `ray job submit --address`."""
        return f"http://{HOST}:{self._dashboard_port}"

    def start(self) -> None:
        """Starts the head node, and waits until it is up; a port that was taken meanwhile costs another try."""
        for left in reversed(range(_STARTS)):
            try:
                self._start_head()
                return
            except RunFailedError:
                if not left:
                    raise

    def _start_head(self) -> None:
        self._port, self._dashboard_port, client_port = free_ports(3)
        self._start_node(
            "head",
            "--head",
            f"--port={self._port}",
            f"--dashboard-host={HOST}",
            f"--dashboard-port={self._dashboard_port}",
            f"--ray-client-server-port={client_port}",
            num_cpus=self._num_cpus,
            resources=self._resources,
        )

    def add_node(self, name: str, *, num_cpus: int, resources: Mapping[str, float] | None = None) -> RayNode:
        """Starts one more node, and waits until it is up.

        Args:
            name: not used before; the node has `NODE_RESOURCE` of a resource of this name.
            resources: its other custom resources.
        """
        return self._start_node(name, f"--address={self.address}", num_cpus=num_cpus, resources=resources or {})

    def kill_node(self, name: str) -> None:
        """Ends a node with all its processes at once, by SIGKILL."""
        node = self.nodes.pop(name)
        # Workers are in process groups of their own, and would end seconds later.
        workers = psutil.Process(node.pid).children(recursive=True) if psutil.pid_exists(node.pid) else []
        node.process.stop()
        for worker in workers:
            with suppress(psutil.NoSuchProcess):
                worker.kill()

    def stop(self) -> None:
        """Kills all nodes, the head last."""
        for name in reversed(self.nodes.copy()):
            self.kill_node(name)

    def _start_node(self, name: str, *options: str, num_cpus: int, resources: Mapping[str, float]) -> RayNode:
        process = GuardedProcess(
            [
                sys.executable,
                "-m",
                "ray.scripts.scripts",
                "start",
                "--block",
                "--disable-usage-stats",
                *options,
                # The usual one is where every `ray.init` of this machine looks for a cluster.  In a common one the
                # nodes would take each other's copy of a job's working directory away.  Ray lets every user write into
                # its directory, so it is below the private one.
                "--temp-dir={directory}/ray",
                f"--node-ip-address={HOST}",
                f"--num-cpus={num_cpus}",
                f"--resources={json.dumps({**resources, name: NODE_RESOURCE})}",
                f"--object-store-memory={self._object_store_bytes}",
                # Any that is free when it is taken, as for all ports that are not named here.
                "--dashboard-agent-listen-port=0",
                "--min-worker-port=0",
                "--max-worker-port=0",
            ],
            environment={"RAY_ADDRESS": "", "PATH": _path(), **self._environment, "PYTHONUNBUFFERED": "1"},
        )
        node = RayNode(name, process)
        deadline = self._clock.monotonic() + _START_S
        log, said = process.directory / "server.log", ""
        while _STARTED not in said:
            said = log.read_text(errors="replace") if log.exists() else said
            if not process.is_running or self._clock.monotonic() >= deadline:
                words = " | ".join(said.splitlines()[-3:])
                process.stop()
                raise RunFailedError(f"the Ray node {name} did not start; the end of its log: {words}")
            self._clock.sleep(_POLL_S)
        self.nodes[name] = node
        return node


def _path() -> str:
    """The PATH of a job: it finds this `python`, also if its environment is not activated."""
    return os.pathsep.join([str(Path(sys.executable).parent), *filter(None, [os.environ.get("PATH")])])

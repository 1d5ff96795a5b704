"""The fast start of Ray: see `lean_node`; the workers of a run are forks."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import ray

from actors.fast_start.fork_server import ForkServer
from actors.fast_start.lean_node import SYSTEM_CONFIG, lean_ray
from actors.fast_start.resting_ray import resting_agent, resting_config

# Of runtime environments that leave a worker the packages of this process.
_MODULES = frozenset({"py_modules"})
_OF_JOB = _MODULES | {"working_dir", "excludes", "env_vars", "config"}


class FastRay:
    """See `actors.hosting.ray_session.RayStart`."""

    def __init__(self) -> None:
        # At most one server.
        self._fork_servers: list[ForkServer] = []

    def start(self, num_cpus: int, options: Mapping[str, Any], patience_s: float) -> None:
        """Starts a Ray, whose workers are forks."""
        config = {**SYSTEM_CONFIG, **resting_config()}
        with self._forks(is_detached=False), lean_ray(patience_s), resting_agent():
            ray.init(address="local", num_cpus=num_cpus, include_dashboard=False, _system_config=config, **options)

    def join(self, address: str, options: Mapping[str, Any]) -> None:
        """Joins a Ray; the workers of this run's actors on this node are forks, if they need no other packages."""
        # The command that asks for a fork reads what Linux knows of processes.
        if sys.platform != "linux" or not _MODULES.issuperset(options.get("runtime_env", ())):
            ray.init(address=address, **options)
            return
        # `ray job stop` sends SIGTERM to all descendants of a job, and the last epoch still needs the actors.
        with self._forks(is_detached=True):
            ray.init(address=address, **options)
        # This runtime environment includes the environment of the job that this process belongs to, if any.
        if not _OF_JOB.issuperset(ray.get_runtime_context().runtime_env):
            self.end()

    def end(self) -> None:
        while self._fork_servers:
            self._fork_servers.pop().end()

    @property
    def actor_options(self) -> dict[str, Any]:
        """None for a Ray that this process has started: there every worker is a fork."""
        servers = (each for each in self._fork_servers if each.is_detached)
        return next(({"runtime_env": each.runtime_environment()} for each in servers), {})

    @contextmanager
    def _forks(self, *, is_detached: bool) -> Iterator[None]:
        """Starts a fork server, which loads its modules while Ray starts.  Ends it if the connection to Ray fails."""
        with suppress(OSError):
            self._fork_servers.append(ForkServer(is_detached=is_detached))
        try:
            yield
        except BaseException:
            self.end()
            raise

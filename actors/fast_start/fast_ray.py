"""The fast start of Ray: without needless processes, and with forks as workers.

Replaces functions of Ray while `ray.init` runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial, partialmethod
from typing import Any

import ray
from ray._private import services, utils
from ray._private.node import Node
from ray._private.state import GlobalState
from ray._private.utils import detect_fate_sharing_support

from actors.fast_start import forked_worker
from actors.fast_start.fork_server import ForkServer
from state.clock import SystemClock

_RAYLET = "start_raylet"
# Ray starts three more processes with a local node: a process that requests machines from a cloud, a process that sends
# the lines of workers' logs to drivers, and the head of the dashboard, which without a dashboard only reports usage.
# They take two CPU seconds and a second and a half of every start.
_NOT_STARTED = ("start_monitor", "start_log_monitor", "start_api_server")
# Loads the packages of Ray's agent, 0.4 s, to see whether they are installed; this project requires them.
_AGENT_PACKAGES = "get_dashboard_dependency_error"
_REGISTERED_S, _LOOK_S = 10.0, 0.01
# The raylet connects to its own object store a second after a first attempt that came too early.
_SYSTEM_CONFIG = {"raylet_client_connect_timeout_milliseconds": 50, "raylet_client_num_connect_attempts": 200}
# Of runtime environments that leave a worker the packages of this process.
_MODULES = frozenset({"py_modules"})
_OF_JOB = _MODULES | {"working_dir", "excludes", "env_vars", "config"}


class FastRay:
    """See `actors.hosting.ray_session.RayStart`."""

    def __init__(self) -> None:
        # At most one server.
        self._fork_servers: list[ForkServer] = []

    def start(self, num_cpus: int, options: Mapping[str, Any]) -> None:
        """Starts a Ray, whose workers are forks."""
        with self._forks(is_detached=False), lean_ray(), _own_process_groups():
            ray.init(
                address="local", num_cpus=num_cpus, include_dashboard=False, _system_config=_SYSTEM_CONFIG, **options
            )

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


@contextmanager
def lean_ray() -> Iterator[None]:
    """Within it `ray.init` starts no needless process, and workers as forks of the fork server.

    If Ray lacks one of the replaced functions, it starts as it always does.
    """
    replacements: dict[tuple[Any, str], Any] = {(Node, name): _do_nothing for name in _NOT_STARTED}
    replacements[Node, _RAYLET] = partialmethod(_start_raylet, getattr(Node, _RAYLET, None))
    replacements[utils, _AGENT_PACKAGES] = _do_nothing
    replaced = {place: getattr(*place, None) for place in replacements}
    if not all(map(callable, replaced.values())):
        yield
        return
    _set(replacements)
    try:
        yield
    finally:
        _set(replaced)


def _set(attributes: Mapping[tuple[Any, str], Any]) -> None:
    for (owner, name), value in attributes.items():
        setattr(owner, name, value)


@contextmanager
def _own_process_groups() -> Iterator[None]:
    """Within it Ray's processes start in groups of their own.

    `timeout` and supervisors send SIGTERM to the group of a process, and the last epoch still needs Ray.  Only where
    the kernel ends these processes with this one: elsewhere Ray finds them by their group.
    """
    if not detect_fate_sharing_support():
        yield
        return
    started = services.ConsolePopen
    services.ConsolePopen = partial(started, process_group=0)
    try:
        yield
    finally:
        services.ConsolePopen = started


def _start_raylet(node: Node, start: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Starts a raylet whose workers are forks, and waits until it is registered.

    Ray waits for that too, but looks only once a second.
    """
    node._ray_params.worker_path = forked_worker.__file__
    started = start(node, *arguments, **named)
    clock, state = SystemClock(), GlobalState()
    state._initialize_global_state(services._get_gcs_client_options(node.gcs_address))
    deadline_s = clock.monotonic() + _REGISTERED_S
    while clock.monotonic() < deadline_s and all(each["NodeID"] != node._node_id for each in state.node_table()):
        clock.sleep(_LOOK_S)
    state.disconnect()
    return started


def _do_nothing(*_arguments: Any, **_named: Any) -> None:
    """In place of functions of Ray."""

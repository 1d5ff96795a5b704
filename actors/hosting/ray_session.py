"""The connection of this process to Ray: to a cluster, or to a Ray of its own without needless processes."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial, partialmethod
from typing import Any

import ray
from ray._private import services, utils
from ray._private.node import Node
from ray._private.state import GlobalState
from ray._private.utils import detect_fate_sharing_support

from actors.hosting import forked_worker
from actors.hosting.fork_server import ForkServer
from actors.telemetry.text import first_line
from state.clock import SystemClock
from state.errors import RunFailedError, SettingsError

_LOCAL = "local"
_TASK_S = 60.0
_RAYLET = "start_raylet"
# Ray starts three processes beside a node of its own: one that asks a cloud for more machines, one that carries the
# lines of workers' logs to drivers, and the head of the dashboard, which without a dashboard only reports usage.  They
# take two CPU seconds and a second and a half of every start.
_NOT_STARTED = ("start_monitor", "start_log_monitor", "start_api_server")
# Loads the packages of Ray's agent, 0.4 s, to see whether they are installed; this project requires them.
_AGENT_PACKAGES = "get_dashboard_dependency_error"
_REGISTERED_S, _LOOK_S = 10.0, 0.01
# The raylet connects to its own object store a second after a first attempt that came too early.
_SYSTEM_CONFIG = {"raylet_client_connect_timeout_milliseconds": 50, "raylet_client_num_connect_attempts": 200}
# A list of at most one server, of the connection that this process has made.
_fork_servers: list[ForkServer] = []
# Of runtime environments that leave a worker the packages of this process.
_MODULES = frozenset({"py_modules"})
_OF_JOB = _MODULES | {"working_dir", "excludes", "env_vars", "config"}


def connect_ray(
    *, address: str | None, num_cpus: int, namespace: str, runtime_env: Mapping[str, Any] | None = None
) -> bool:
    """Connects this process to Ray: to the cluster at the address, else at `RAY_ADDRESS`, else to one that it starts.

    Args:
        address: as `ray.init` takes it; "local" starts a Ray of its own even with `RAY_ADDRESS`.
        num_cpus: logical CPUs of a Ray that is started here, at least.
        namespace: see `RaySettings`.
        runtime_env: of its workers, as `ray.init` takes it.

    Returns:
        True for a new connection: the caller must `disconnect_ray`.

    Raises:
        SettingsError: the address is of Ray's client, or of its job server.
        RunFailedError: no cluster answers there.
    """
    if ray.is_initialized():
        return False
    options: dict[str, Any] = {"namespace": namespace, "log_to_driver": False, "logging_level": "error"}
    if runtime_env:
        options["runtime_env"] = dict(runtime_env)
    joined = ray_address(address)
    # Ray's own lines, of a node that died, stand in logs.
    os.environ.setdefault("RAY_COLOR_PREFIX", "0")
    with _own_sigterm():
        if joined is None:
            _start_ray(max(num_cpus, os.cpu_count() or 1), options)
            return True
        try:
            _join_ray(joined, options)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise RunFailedError(
                f"there is no Ray cluster at {joined}: {first_line(error)}; start it, or take RAY_ADDRESS and "
                "RaySettings(address=...) away to run on this machine alone"
            ) from error
    return True


def _join_ray(address: str, options: Mapping[str, Any]) -> None:
    """Joins a Ray; the workers of this run's actors on this node are forks, if they need no other packages."""
    # The command that asks for a fork reads what Linux knows of processes.
    if sys.platform != "linux" or not _MODULES.issuperset(options.get("runtime_env", ())):
        ray.init(address=address, **options)
        return
    # `ray job stop` sends SIGTERM to all descendants of a job, and the last epoch still needs the actors.
    with _forks(is_detached=True):
        ray.init(address=address, **options)
    # With that of the job in which this process is, if it is in one.
    if not _OF_JOB.issuperset(ray.get_runtime_context().runtime_env):
        _end_fork_server()


def _start_ray(num_cpus: int, options: Mapping[str, Any]) -> None:
    """Starts a Ray, whose workers are forks."""
    with _forks(is_detached=False), lean_ray(), _own_process_groups():
        ray.init(address=_LOCAL, num_cpus=num_cpus, include_dashboard=False, _system_config=_SYSTEM_CONFIG, **options)


@contextmanager
def _forks(*, is_detached: bool) -> Iterator[None]:
    """Starts a fork server, which is loaded beside Ray; without the connection it ends."""
    with suppress(OSError):
        _fork_servers.append(ForkServer(is_detached=is_detached))
    try:
        yield
    except BaseException:
        _end_fork_server()
        raise


def _end_fork_server() -> None:
    while _fork_servers:
        _fork_servers.pop().end()


def ray_address(address: str | None) -> str | None:
    """The address of the cluster that a run joins; None if it starts one on this machine.

    Args:
        address: the address in its settings.

    Raises:
        SettingsError: the address is of Ray's client, or of its job server: a run is a part of the cluster.
    """
    chosen = address or os.environ.get("RAY_ADDRESS") or _LOCAL
    if "://" in chosen:
        raise SettingsError(
            f"the Ray address {chosen} is one to submit jobs to: run in the cluster, by "
            "ray job submit --working-dir . -- python JOB.py, or give the address of the cluster itself, HOST:6379"
        )
    return None if chosen == _LOCAL else chosen


@contextmanager
def _own_sigterm() -> Iterator[None]:
    """Ray takes SIGTERM for itself; a handler that the program has installed stays."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if callable(before) and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


def disconnect_ray() -> None:
    """Ends the connection, and a Ray that was started for it."""
    ray.shutdown()
    _end_fork_server()


def fork_options() -> dict[str, Any]:
    """Options of an actor that make its worker a fork, and the workers of the actors that it makes.

    None in a Ray that this process has started: there every worker is a fork.
    """
    return next(({"runtime_env": each.runtime_environment()} for each in _fork_servers if each.is_detached), {})


def tried_task() -> dict[str, float]:
    """Runs one task.  Returns the resources of the connected cluster: nodes, CPUs and bytes.

    Raises:
        ray.exceptions.RayError: no worker can be started.
    """
    alive = [node for node in ray.nodes() if node["Alive"]]
    resources = ray.cluster_resources()
    ray.get(ray.remote(_do_nothing).options(num_cpus=0).remote(), timeout=_TASK_S)
    return {
        "nodes": len(alive),
        "cpus": resources.get("CPU", 0.0),
        "memory": resources.get("memory", 0.0),
        "object_store_memory": resources.get("object_store_memory", 0.0),
    }


@contextmanager
def lean_ray() -> Iterator[None]:
    """Within it `ray.init` starts no needless process, and workers as forks of the fork server.

    A Ray that is made otherwise starts as it always does.
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
    """In place of functions of Ray, and the task of `tried_task`."""

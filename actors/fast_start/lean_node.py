"""Ray's node without needless processes, and without limits that a busy machine exceeds.

    raylet ── starts, does not wait for ──► the agent for metrics, at a low priority
           └───────────────────────────────► `late_agent`, in place of the agent for runtime environments

A raylet that chooses the ports of its agents waits 15 s for each agent, and ends.  Here the ports are chosen before, so
the start of Ray needs no more than the first 0.2 CPU seconds of two servers.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partialmethod
from importlib import import_module
from typing import Any

from ray._private import services, utils
from ray._private.node import Node
from ray._private.state import GlobalState
from ray._private.utils import detect_fate_sharing_support

from actors.fast_start import forked_worker, late_agent
from state.clock import SystemClock
from state.errors import RayNotStartedError

SYSTEM_CONFIG: Mapping[str, Any] = {
    # The raylet connects to its own object store a second after a first attempt that came too early.
    "raylet_client_connect_timeout_milliseconds": 50,
    "raylet_client_num_connect_attempts": 2400,
    # The raylet ends if an agent does not answer within the first time, and asks again after the second one.
    "agent_register_timeout_ms": 600_000,
    "agent_manager_retry_interval_ms": 100,
    # The raylet kills a worker that has not registered by then, and starts a new worker: on a busy machine, for ever.
    "worker_register_timeout_seconds": 600,
}
"""Of a Ray that is started here."""
_GCS_PORT_WAIT = "RAY_gcs_server_port_wait_time_s"
"""Of Ray: seconds until the other server must have its port."""
_RAYLET = "start_raylet"
# Ray starts three more processes with a local node: a process that requests machines from a cloud, a process that sends
# the lines of workers' logs to drivers, and the head of the dashboard, which without a dashboard only reports usage.
# They take two CPU seconds and a second and a half of every start.
_NOT_STARTED = ("start_monitor", "start_log_monitor", "start_api_server")
# Loads the packages of Ray's agent, 0.4 s, to see whether they are installed; this project requires them.
_AGENT_PACKAGES = "get_dashboard_dependency_error"
_LOOK_S = 0.01
_ENV_AGENT, _METRICS_AGENT = "--runtime_env_agent_command=", "--dashboard_agent_command="
_LOW_PRIORITY = "10"
# Below the ports that Linux gives to processes that ask for any port.
_PORTS = range(16_384, 32_768)


@contextmanager
def lean_ray(patience_s: float) -> Iterator[None]:
    """Within it `ray.init` starts no needless process, and workers as forks of the fork server.

    If Ray lacks one of the replaced functions, it starts as it always does.

    Args:
        patience_s: seconds until each of Ray's two servers must have started.
    """
    replacements: dict[tuple[Any, str], Any] = {(Node, name): _do_nothing for name in _NOT_STARTED}
    replacements[Node, _RAYLET] = partialmethod(_start_raylet, getattr(Node, _RAYLET, None), patience_s)
    replacements[utils, _AGENT_PACKAGES] = _do_nothing
    replacements[services, "ConsolePopen"] = _start_process
    os.environ.setdefault(_GCS_PORT_WAIT, f"{patience_s:.0f}")
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


def _start_process(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Starts a process of Ray in a process group of its own.

    `timeout` and supervisors send SIGTERM to the group of a process, and the last epoch still needs Ray.  Only where
    the kernel ends these processes with this one: elsewhere Ray finds them by their group.
    """
    if detect_fate_sharing_support():
        options["process_group"] = 0
    return subprocess.Popen([_with_late_agent(each) for each in command], **options)


def _with_late_agent(argument: str) -> str:
    """An argument of the raylet, so that the agent in it does not compete with the start for the processors."""
    if argument.startswith(_METRICS_AGENT) and shutil.which("nice"):
        return argument.replace(_METRICS_AGENT, f"{_METRICS_AGENT}nice -n {_LOW_PRIORITY} ", 1)
    if argument.startswith(_ENV_AGENT):
        named = dict(each.split("=", 1) for each in argument.split() if each.startswith("--") and "=" in each)
        late = [sys.executable, "-u", late_agent.__file__]
        late += [named["--node-ip-address"], named["--runtime-env-agent-port"]]
        return argument.replace(_ENV_AGENT, f"{_ENV_AGENT}{subprocess.list2cmdline(late)} ", 1)
    return argument


def _start_raylet(node: Node, start: Callable[..., Any], patience_s: float, *arguments: Any, **named: Any) -> None:
    """Starts a raylet whose workers are forks, and waits until it is registered.

    Ray waits for that too, but looks only once a second, and does not see that the raylet has ended.

    Raises:
        RayNotStartedError: the raylet has ended, or is not registered in time.
    """
    parameters = node._ray_params
    parameters.worker_path = forked_worker.__file__
    metrics, export, http, environments = _free_ports(4)
    parameters.metrics_agent_port, parameters.metrics_export_port = metrics, export
    parameters.dashboard_agent_listen_port, parameters.runtime_env_agent_port = http, environments
    # The raylet has no option for this port.
    persist_port = import_module("ray._raylet").persist_port
    persist_port(node._session_dir, node._node_id, "dashboard_agent_listen_port", http)
    start(node, *arguments, **named)
    [raylet] = node.all_processes["raylet"]
    clock, state = SystemClock(), GlobalState()
    state._initialize_global_state(services._get_gcs_client_options(node.gcs_address))
    deadline_s = clock.monotonic() + patience_s
    try:
        while all(each["NodeID"] != node._node_id for each in state.node_table()):
            if raylet.process.poll() is not None:
                raise RayNotStartedError(f"the raylet ended with exit code {raylet.process.returncode}")
            if clock.monotonic() > deadline_s:
                raise RayNotStartedError(f"the raylet was not registered after {patience_s:g} s")
            clock.sleep(_LOOK_S)
    finally:
        state.disconnect()


def _free_ports(number: int) -> list[int]:
    """Ports at which no process listens; two starts at the same time look in different places."""
    ports: list[int] = []
    first = int.from_bytes(os.urandom(4), "big") % len(_PORTS)
    with ExitStack() as sockets:
        for port in (*_PORTS[first:], *_PORTS[:first]):
            with suppress(OSError):
                sockets.enter_context(socket.create_server(("", port)))
                ports.append(port)
            if len(ports) == number:
                return ports
    raise RayNotStartedError(f"the ports from {_PORTS.start} to {_PORTS.stop} are all in use")


def _do_nothing(*_arguments: Any, **_named: Any) -> None:
    """In place of functions of Ray."""

"""The connection of this process to Ray: to a cluster, or to a Ray of its own."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

import ray

from actors.fast_start.choice import choose_for_ray
from actors.hosting.start_attempts import start_with_patience
from actors.telemetry.text import first_line
from state.errors import RunFailedError, SettingsError

_LOCAL = "local"
_TASK_S = 60.0


class RayStart(Protocol):
    """A way to connect this process to Ray: the fast one, `FastRay`, or `PlainRay`."""

    def start(self, num_cpus: int, options: Mapping[str, Any], patience_s: float) -> None:
        """Starts a Ray on this machine.

        Args:
            num_cpus: its logical CPUs.
            options: further arguments of `ray.init`.
            patience_s: seconds that each of Ray's servers has.
        """

    def join(self, address: str, options: Mapping[str, Any]) -> None:
        """Joins the Ray at an address.  Arguments and errors as in `ray.init`."""

    def end(self) -> None:
        """Ends the processes that were started with Ray."""

    @property
    def actor_options(self) -> dict[str, Any]:
        """Options of the run's first actor, which apply to the actors that it makes, too."""


class PlainRay:
    """The start by Ray's public functions alone, see `RayStart`."""

    @property
    def actor_options(self) -> dict[str, Any]:
        return {}

    def start(self, num_cpus: int, options: Mapping[str, Any], patience_s: float) -> None:
        """Ray has limits of its own, so the attempts differ in nothing."""
        ray.init(address=_LOCAL, num_cpus=num_cpus, include_dashboard=False, **options)

    def join(self, address: str, options: Mapping[str, Any]) -> None:
        ray.init(address=address, **options)

    def end(self) -> None:
        """Does nothing: Ray ends its own processes."""


# A list of at most one start, of the connection that this process has made.
_starts: list[RayStart] = []


def connect_ray(
    *,
    address: str | None,
    num_cpus: int,
    namespace: str,
    runtime_env: Mapping[str, Any] | None = None,
    fast_start: bool = True,
) -> bool:
    """Connects this process to Ray: to the cluster at the address, else at `RAY_ADDRESS`, else to one that it starts.

    Args:
        address: as `ray.init` takes it; "local" starts a Ray of its own even with `RAY_ADDRESS`.
        num_cpus: logical CPUs of a Ray that is started here, at least.
        namespace: see `RaySettings`.
        runtime_env: of its workers, as `ray.init` takes it.
        fast_start: see `RaySettings`.

    Returns:
        True for a new connection: the caller must `disconnect_ray`.

    Raises:
        SettingsError: the address is of Ray's client, or of its job server.
        RunFailedError: no cluster answers there.
        RayNotStartedError: none could be started here.
    """
    is_fast = choose_for_ray(fast_start)
    if ray.is_initialized():
        return False
    options: dict[str, Any] = {"namespace": namespace, "log_to_driver": False, "logging_level": "error"}
    if runtime_env:
        options["runtime_env"] = dict(runtime_env)
    joined = ray_address(address)
    # Without it, Ray writes escape sequences into logs, as on the death of a node.
    os.environ.setdefault("RAY_COLOR_PREFIX", "0")
    start = _fast_ray() if is_fast else PlainRay()
    with _own_sigterm():
        if joined is None:
            start_with_patience(partial(start.start, max(num_cpus, os.cpu_count() or 1), options))
            _starts.append(start)
            return True
        try:
            start.join(joined, options)
            _starts.append(start)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise RunFailedError(
                f"no Ray cluster answers at {joined}: {first_line(error)}; start it, or take RAY_ADDRESS and "
                "RaySettings(address=...) away to run on this machine alone"
            ) from error
    return True


def _fast_ray() -> RayStart:
    # Imports private modules of Ray, which another version may lack.
    from actors.fast_start.fast_ray import FastRay

    return FastRay()


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
    while _starts:
        _starts.pop().end()


def actor_options() -> dict[str, Any]:
    """See `RayStart.actor_options`; none without a connection that this process has made."""
    return next((each.actor_options for each in _starts), {})


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


def _do_nothing() -> None:
    """The task of `tried_task`."""

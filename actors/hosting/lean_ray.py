"""A Ray on this machine without the processes that a single run has no use for.

Ray starts three beside a node of its own: one that asks a cloud for more machines, one that carries the lines of
workers' logs to drivers, and the head of the dashboard, which without a dashboard only reports usage.  They take two
CPU seconds and a second and a half of every start.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ray._private.node import Node

_NOT_STARTED = ("start_monitor", "start_log_monitor", "start_api_server")


@contextmanager
def lean_ray() -> Iterator[None]:
    """Within it `ray.init` leaves them out; a Ray whose node is made otherwise starts as it always does."""
    replaced = {name: getattr(Node, name, None) for name in _NOT_STARTED}
    if not all(map(callable, replaced.values())):
        yield
        return
    for name in replaced:
        setattr(Node, name, _nothing)
    try:
        yield
    finally:
        for name, method in replaced.items():
            setattr(Node, name, method)


def _nothing(_node: Node, **_options: Any) -> None:
    """Starts nothing."""

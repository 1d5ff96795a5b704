"""Free ports of the loopback interface."""

from __future__ import annotations

import socket
from contextlib import ExitStack

HOST = "127.0.0.1"
_MAX_PORT = 55_000


def free_ports(count: int, beside: int = 0) -> list[int]:
    """Ports that are free now.

    Args:
        beside: a distance; the port that far above each is free, too.
    """
    ports: list[int] = []
    # Held until all are found, so that none is found twice.
    with ExitStack() as held:
        while len(ports) < count:
            port = _bound(held, 0)
            if port is None or port >= _MAX_PORT or (beside and _bound(held, port + beside) is None):
                continue
            ports.append(port)
    return ports


def _bound(held: ExitStack, port: int) -> int | None:
    """A port that is bound for as long as the stack is open; None if it is taken."""
    listener = held.enter_context(socket.socket())
    try:
        listener.bind((HOST, port))
    except OSError:
        return None
    return int(listener.getsockname()[1])

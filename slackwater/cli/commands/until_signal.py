"""A server of the command line: it runs until Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import Protocol

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Server(Protocol):
    """A server that listens on a port."""

    async def start(self) -> int: ...

    async def close(self) -> None:
        """Releases everything, also after a start that failed."""


async def serve_until_signal(server: Server, announce: Callable[[int], None]) -> None:
    """Starts a server, and closes it after SIGINT or SIGTERM.

    Args:
        announce: called with the port when it listens.

    Raises:
        UsageError: it cannot listen.
    """
    ended = asyncio.Event()
    for number in _SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    try:
        announce(await server.start())
        await ended.wait()
    finally:
        await server.close()

"""Pace of the log-ins from one network: after a wrong password the next attempts from there wait for their turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

_BETWEEN_S = 0.1


@dataclass(eq=False)
class _Queue:
    """The attempts of one network, in the order of their arrival."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    attempts: int = 0
    free_at_s: float = 0.0


class LogInPace:
    """Gives each network ten verdicts a second after a wrong password, by any number of connections.

    A network without a recent wrong password does not wait.  An attempt whose client is gone leaves the queue, so a
    client waits only behind clients of its own network that are still connected.
    """

    def __init__(self) -> None:
        self._queues: dict[str, _Queue] = {}

    @property
    def networks(self) -> int:
        """The number of networks that are remembered."""
        return len(self._queues)

    @asynccontextmanager
    async def turn(self, network: str) -> AsyncIterator[None]:
        """Waits for the turn of an attempt; the verdict belongs into the block."""
        queue = self._queues.setdefault(network, _Queue())
        queue.attempts += 1
        try:
            async with queue.lock:
                await asyncio.sleep(queue.free_at_s - asyncio.get_running_loop().time())
                yield
        finally:
            queue.attempts -= 1
            self._forget()

    def refused(self, network: str) -> None:
        """Records a wrong password, inside of the turn."""
        self._queues[network].free_at_s = asyncio.get_running_loop().time() + _BETWEEN_S

    def _forget(self) -> None:
        # Attackers with many addresses must not fill the memory.
        now_s = asyncio.get_running_loop().time()
        for network, queue in list(self._queues.items()):
            if not queue.attempts and queue.free_at_s <= now_s:
                del self._queues[network]

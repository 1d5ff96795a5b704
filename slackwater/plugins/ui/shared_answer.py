"""Cached answer: one read for all concurrent clients, and for the clients soon after."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from state.clock import Clock

Value = TypeVar("Value")

_FRESH_S = 0.5
_REST = 10


class SharedAnswer(Generic[Value]):
    """Keeps an answer for half a second, or for ten times the time of its read if that is longer.

    So the open pages cost a bounded share of the machine and the bucket, for any number of clients.

    Args:
        read: reads the answer.
        clock: the clock of these times.
    """

    def __init__(self, read: Callable[[], Awaitable[Value]], clock: Clock) -> None:
        self._read, self._clock = read, clock
        self._lock = asyncio.Lock()
        self._value: Value | None = None
        self._fresh_until_s = float("-inf")

    async def get(self) -> Value:
        """The kept answer, or a new one.  An error of the read is raised, and not kept."""
        async with self._lock:
            value = self._value
            if value is None or self._clock.monotonic() >= self._fresh_until_s:
                start_s = self._clock.monotonic()
                value = self._value = await self._read()
                end_s = self._clock.monotonic()
                self._fresh_until_s = end_s + max(_FRESH_S, _REST * (end_s - start_s))
            return value

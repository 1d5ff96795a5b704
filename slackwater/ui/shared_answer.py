"""One read for all who ask at the same time, and its answer again for those who ask soon after."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from state.clock import Clock

Value = TypeVar("Value")

_FRESH_S = 0.5
_REST = 10


class SharedAnswer(Generic[Value]):
    """Keeps what was read for half a second, and longer if reading takes long: ten times as long as that took.

    So a page that is open costs a machine and a bucket a bounded part of what they can do, however many look at it.

    Args:
        read: reads anew.
        clock: times it.
    """

    def __init__(self, read: Callable[[], Awaitable[Value]], clock: Clock) -> None:
        self._read, self._clock = read, clock
        self._lock = asyncio.Lock()
        self._value: Value | None = None
        self._fresh_until_s = float("-inf")

    async def get(self) -> Value:
        """What was read last, or is read now; raises what reading raises, and keeps nothing of that."""
        async with self._lock:
            value = self._value
            if value is None or self._clock.monotonic() >= self._fresh_until_s:
                start_s = self._clock.monotonic()
                value = self._value = await self._read()
                end_s = self._clock.monotonic()
                self._fresh_until_s = end_s + max(_FRESH_S, _REST * (end_s - start_s))
            return value

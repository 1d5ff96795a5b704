"""The wait for the next epoch: it ends with the epoch, with other news of the materializer's loop, or after a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

from actors.protocol.reports import EpochBlocks


class AwaitedEpoch:
    """Has one call of the merger waiting at a time: its answer is an epoch, which no other call would get.

    One thread takes epochs; any thread may `wake` it.

    Args:
        take: calls the merger.
    """

    def __init__(self, take: Callable[[], Future[EpochBlocks]]) -> None:
        self._take = take
        self._call: Future[EpochBlocks] | None = None
        self._woken = threading.Event()

    def within(self, timeout_s: float) -> EpochBlocks | None:
        """The next epoch; None after the time, or after `wake`.  Errors as the call."""
        if self._call is None:
            self._call = self._take()
            self._call.add_done_callback(lambda _: self.wake())
        if not self._call.done() and self._woken.wait(timeout_s):
            self._woken.clear()
        if not self._call.done():
            return None
        epoch = self._call.result()
        self._call = None
        return epoch

    def wake(self) -> None:
        """Ends the present wait, or else the next wait."""
        self._woken.set()

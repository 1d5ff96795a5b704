"""Requests of the user that are carried by barriers, numbered from 1, and the two of them that stay in force."""

from __future__ import annotations

from actors.protocol.barrier import Barrier, Forget, Mutation, Pause, Reread, Resume, Retry, Throttle


class Requests:
    """The mutations of one attempt: how many were asked for, and how many are over.

    A request is over with the epoch that its barrier ends.  A request that adds files is over with the next epoch,
    since the files follow the barrier.

    `paused` and `throttle` are in force behind the last barrier.
    """

    def __init__(self) -> None:
        self.asked = self.over = 0
        self.paused, self.throttle = False, Throttle()
        self._injected = 0
        self._last_of_epoch: dict[int, int] = {}

    def ask(self) -> None:
        """A mutation waits for a barrier: it is request number `asked`."""
        self.asked += 1

    def on_barrier(self, barrier: Barrier, mutation: Mutation) -> int:
        """A barrier carries the next request.

        Returns:
            The number of files that it puts back into the queue.
        """
        self._injected += 1
        epoch, num_files = barrier.epoch.prev, 0
        match mutation:
            case Pause():
                self.paused = True
            case Resume():
                self.paused = False
            case Throttle():
                self.throttle = mutation
            case Forget():
                epoch = barrier.epoch.curr
            case Retry() | Reread():
                epoch, num_files = barrier.epoch.curr, len(mutation.files)
        self._last_of_epoch[epoch] = self._injected
        return num_files

    def on_epoch_over(self, epoch: int) -> None:
        """An epoch was committed, or had nothing to commit."""
        self.over = self._last_of_epoch.pop(epoch, self.over)

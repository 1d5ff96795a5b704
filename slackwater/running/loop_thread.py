"""A thread that calls one turn of a loop after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import Enum, auto

from state.errors import RunFailedError


class Turn(Enum):
    """The outcome of one turn of a loop.

    BUSY: the next turn may follow at once.
    IDLE: there was no work; the next turn itself waits a moment for some.
    WAITS: there was no work, or none that can be done yet; the next turn comes a moment later.
    OVER: no turn follows.
    """

    BUSY = auto()
    IDLE = auto()
    WAITS = auto()
    OVER = auto()


class LoopThread:
    """Calls `turn` in a thread of its own until `begin_end`, the end of the loop, or an error.

    Args:
        turn: one turn of the loop.
        poll_s: seconds between a turn that waits and the next turn.
    """

    def __init__(self, name: str, turn: Callable[[], Turn], poll_s: float) -> None:
        self._turn, self._poll_s = turn, poll_s
        self._ended = threading.Event()
        self.failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def begin_end(self) -> None:
        """No further turn begins."""
        self._ended.set()

    def join(self) -> None:
        """Returns when the last turn is over."""
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._ended.is_set():
                match self._turn():
                    case Turn.OVER:
                        return
                    case Turn.WAITS:
                        self._ended.wait(self._poll_s)
        except Exception as error:
            self.failure = error
        except BaseException as error:  # else the loop would end in silence: this thread gets no signals
            self.failure = RunFailedError(f"{type(error).__name__} ended the loop; start the run again")

"""The error of a broken promise in a simulation."""

from __future__ import annotations


class PromiseBroken(BaseException):
    """A promise of Slackwater does not hold.  No handler of errors may catch it.

    Args:
        promise: its id: `G1` to `G6`, `order`, `time`, `kept`, `published`, `liveness` or `no bug`.
        why: the fault, with the names of the files, epochs or runs.
    """

    def __init__(self, promise: str, why: str) -> None:
        super().__init__(promise, why)
        self.promise, self.why = promise, why

    def __str__(self) -> str:
        return f"{self.promise}: {self.why}"

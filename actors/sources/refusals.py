"""Requests of one source that its store or its queue refuses: the source pauses, and each request is repeated later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Operation = Literal["listing", "queue", "look at an object"]
"""A request of the list actor, in words."""

_FIRST_S, _LONGEST_S = 1.0, 60.0
_LASTS_FROM = 3


@dataclass(frozen=True)
class _Refused:
    """Refusals in a row."""

    times: int
    reason: str


class Refusals:
    """The refusals since the last success of each operation.

    Attributes:
        paused: the reason of the pause, with the next step; None while nothing is refused.
    """

    def __init__(self) -> None:
        self._refused: dict[Operation, _Refused] = {}
        self.paused: str | None = None

    def refuse(self, operation: Operation, error: Exception) -> float:
        """Notes a refusal.  Returns the seconds until the next try."""
        times = self._refused[operation].times + 1 if operation in self._refused else 1
        self._refused[operation] = _Refused(times, f"its {operation} failed: {error}")
        self._update()
        return float(min(_LONGEST_S, _FIRST_S * 2.0 ** (times - 1)))

    def grant(self, operation: Operation) -> None:
        """Notes a success."""
        self._refused.pop(operation, None)
        self._update()

    @property
    def is_lasting(self) -> bool:
        """True if an operation was refused several times: a run until all is read no longer waits for the source."""
        return any(each.times >= _LASTS_FROM for each in self._refused.values())

    def _update(self) -> None:
        reasons = [each.reason for each in self._refused.values()]
        step = f"it is tried again, at the latest every {_LONGEST_S:.0f} s, and the source continues then"
        self.paused = f"{reasons[0]}; {step}" if reasons else None

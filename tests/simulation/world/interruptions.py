"""Interruptions: other events between two operations on the store, or between two steps of an actor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.simulation.world.schedule import Life

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

_LIKELY = 0.15
_MOST_EVENTS_BITS = 8
_FEW_EVENTS_BITS = 5
_DEPTH = 3


class Killed(BaseException):
    """The actor that was doing this is dead.  Only the event in which it happens may catch it."""


class Interruptions:
    """Lets other actors act while one is in the middle of an operation.

    Args:
        random: decides about the number and the length of interruptions.
        turn: lets one event happen; returns False if none can.
        around: other interruptions, within which these may happen, and the reverse.
    """

    def __init__(self, random: Random, turn: Callable[[], bool], around: Interruptions | None = None) -> None:
        self._random, self._turn = random, turn
        self._planned: dict[str, list[Callable[[], object]]] = {}
        self._nested: list[Interruptions] = [] if around is None else around._nested
        self._most_events_bits = _MOST_EVENTS_BITS if around is None else _FEW_EVENTS_BITS

    def plan(self, moment: str, action: Callable[[], object]) -> None:
        """Does something the next time that `moment` comes."""
        self._planned.setdefault(moment, []).append(action)

    def end(self) -> None:
        """Drops all plans."""
        self._planned.clear()

    def moment(self, name: str, life: Life, *, may_arrive_late: bool = False) -> None:
        """A life is between two operations.

        Args:
            name: name of the moment, as stories use it.
            life: the life.
            may_arrive_late: whether the next operation was sent already, so that it may reach the store after the death
                of its sender.

        Raises:
            Killed: `life` has ended meanwhile.
        """
        if self._planned:
            self.planned(name)
        if len(self._nested) < _DEPTH and self._random.random() < _LIKELY:
            self._nested.append(self)
            for _ in range(1 << int(self._random.random() * self._most_events_bits)):
                if not self._turn():
                    break
            self._nested.pop()
        while life.process.frozen and life.alive and self._turn():
            pass
        if not life.alive and not (may_arrive_late and self._random.random() < 0.5):
            raise Killed

    def planned(self, name: str) -> None:
        """Does everything that is planned for a moment."""
        for action in self._planned.pop(name, ()):
            action()

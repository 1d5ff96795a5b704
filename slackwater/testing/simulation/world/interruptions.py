"""Interruptions: other events between two operations on the store, or between two steps of an actor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from slackwater.testing.simulation.world.schedule import Life

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

_LIKELY = 0.15
_MOST_EVENTS_BITS = 8
_DEPTH = 3


class Killed(BaseException):
    """The actor that was doing this is dead.  Only the event in which it happens may catch it."""


class Interruptions:
    """Lets other actors act while one is in the middle of an operation.

    Args:
        random: decides about the number and the length of interruptions.
        turn: lets one event happen; returns False if none can.
    """

    def __init__(self, random: Random, turn: Callable[[], bool]) -> None:
        self._random, self._turn = random, turn
        self._planned: dict[str, list[Callable[[], object]]] = {}
        self._depth = 0

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
        if self._depth < _DEPTH and self._random.random() < _LIKELY:
            self._depth += 1
            for _ in range(1 << int(self._random.random() * _MOST_EVENTS_BITS)):
                if not self._turn():
                    break
            self._depth -= 1
        while life.process.frozen and life.alive and self._turn():
            pass
        if not life.alive and not (may_arrive_late and self._random.random() < 0.5):
            raise Killed

    def planned(self, name: str) -> None:
        """Does everything that is planned for a moment."""
        for action in self._planned.pop(name, ()):
            action()

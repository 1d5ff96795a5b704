"""What can come in between: between any two operations on the store, and between what an actor does and does next."""

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
    """Whoever was doing this does not live any more.  Nothing but the event it happens in may catch it."""


class Interruptions:
    """Lets others act while somebody is in the middle of something.

    Args:
        random: decides how often and for how long.
        turn: lets one thing happen; returns False if nothing can.
    """

    def __init__(self, random: Random, turn: Callable[[], bool]) -> None:
        self._random, self._turn = random, turn
        self._planned: dict[str, list[Callable[[], object]]] = {}
        self._depth = 0

    def plan(self, moment: str, action: Callable[[], object]) -> None:
        """Does something the next time that `moment` comes."""
        self._planned.setdefault(moment, []).append(action)

    def end(self) -> None:
        """Nothing that is planned and has not happened will happen."""
        self._planned.clear()

    def moment(self, name: str, life: Life, *, may_arrive_late: bool = False) -> None:
        """Somebody is between two operations.

        Args:
            name: of the moment, as stories use it.
            life: who is in it.
            may_arrive_late: whether the operation that follows was sent already, so that it may reach the store when
                nobody waits for its answer any more.

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
        """Does what is planned for a moment."""
        for action in self._planned.pop(name, ()):
            action()

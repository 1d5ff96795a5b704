"""Events beside a schedule, by a chance of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.simulation.world.schedule import Life, Schedule
from tests.simulation.world.simulated_clock import SimulatedClock

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

    from tests.simulation.world.simulated_threads import SimulatedThread

_HAPPENS = 0.5
_TOLD_S = 5.0


class Background(Schedule):
    """Events between those of a schedule, which makes the same choices with them and without them.

    Each event happens at its time.  In a long pause in which one timer comes due again and again, only the first time
    and the last are told: the renewals of one owner, while nothing else happens.

    Attributes:
        passes_time: whether time passes to the next timer when nothing else is left.

    Args:
        random: makes every choice.
        clock: moves to the time of each timer that comes due.
        on_event: see `Schedule`.
        is_lazy: whether other events come before one that may happen; if not, it happens at once.
    """

    def __init__(
        self,
        random: Random,
        clock: SimulatedClock,
        on_event: Callable[[Life, Callable[..., None], tuple[Any, ...]], None] | None = None,
        *,
        is_lazy: bool,
    ) -> None:
        super().__init__(random, clock, on_event=on_event)
        self._is_lazy = is_lazy
        self.passes_time = False
        self._told: Life | None = None
        self._waited_for: list[SimulatedThread] = []

    def wait_for(self, call: SimulatedThread) -> None:
        """Lets time pass to the end of a call."""
        self._waited_for.append(call)

    @property
    def is_waited_for(self) -> bool:
        """True while time passes to the end of a call."""
        self._waited_for = [call for call in self._waited_for if call.life.alive and not call.is_over]
        return any(not call.life.process.frozen for call in self._waited_for)

    def between(self) -> bool:
        """Between two events of the schedule one of these may happen.  Returns whether one did."""
        if not self._ready or (self._is_lazy and self._random.random() >= _HAPPENS):
            return False
        has_happened = self._happen()
        while not self._is_lazy and self._happen():
            pass
        return has_happened

    def until(self, monotonic_s: float) -> bool:
        """Everything happens that is due by a time, each at its time.  Returns whether anything did."""
        has_happened, self._told = False, None
        while self._happen() or self._ripen(monotonic_s):
            has_happened = True
        return has_happened

    def alone(self) -> bool:
        """One event happens while nothing else is left.  Returns False if there is none, or none that is waited for."""
        return self._happen() or ((self.passes_time or self.is_waited_for) and self._ripen(float("inf")))

    def _ripen(self, monotonic_s: float) -> bool:
        """The next timer comes due, if it does by a time."""
        if not self._timers or self._timers[0][0] > monotonic_s:
            return False
        due_s, event = self._next_timer()
        if event is not None and event[0].alive:
            self._clock.advance_to(max(due_s, monotonic_s - _TOLD_S) if self._only_repeats(event[0]) else due_s)
            self._told = event[0]
            self._ready.append(event)
        return True

    def _only_repeats(self, life: Life) -> bool:
        """True if nothing but a timer of this life comes due, and has come due in this pause."""
        is_only = not any(timer.event is not None and timer.event[0].alive for _, _, timer in self._timers)
        return is_only and self._told is life and not self.is_waited_for

    def _happen(self) -> bool:
        """Something that is under way happens."""
        while self._ready:
            life, action, arguments = event = self._take(int(self._random.random() * len(self._ready)))
            if not life.alive:
                continue
            if life.process.frozen:
                self._held.append(event)
                continue
            self._notify(life, action, arguments)
            return True
        return False

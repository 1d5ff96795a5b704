"""The events that may happen next; chance picks one of them."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.simulation.world.simulated_clock import SimulatedClock

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

    from tests.simulation.world.background import Background

_TIME_PASSES = 0.01
_HURRIES = 0.9
_LATE_S = 0.0001


class Life:
    """Something that can end: a process, an attempt, an actor.  Everything that lives in it ends with it.

    Args:
        name: name in the trace.
        within: the life around it; None for a process, which can also be frozen.
    """

    def __init__(self, name: str, within: Life | None = None) -> None:
        self.name = name
        self.alive: bool = within is None or within.alive
        self.frozen = False
        self.process: Life = self if within is None else within.process
        self._inside: list[Life] = []
        if within is not None:
            within._inside.append(self)

    def move_into(self, around: Life) -> None:
        """From now on it ends, and is frozen, with another life."""
        self.process = around.process
        around._inside.append(self)

    def end(self) -> None:
        """Ends it: none of its events happens any more."""
        self.alive = False
        for each in self._inside:
            each.end()


class ScheduledTimer:
    """An event at a later time.

    Args:
        event: the event; None if it was cancelled.
    """

    __slots__ = ("event",)

    def __init__(self, event: tuple[Life, Callable[..., None], tuple[Any, ...]]) -> None:
        self.event: tuple[Life, Callable[..., None], tuple[Any, ...]] | None = event

    def cancel(self) -> None:
        """Drops the event."""
        self.event = None


class Schedule:
    """Events that may happen in any order, and timers.

    Time stands still while something is under way, mostly: now and then a timer is early.

    `events` counts the events so far, `pauses` the times at which only a timer was left.

    Args:
        random: makes every choice.
        clock: is moved to the time of each timer that comes due.
        slow: name of the actor whose events mostly come after all others; empty for none.
        on_event: called with each event before it happens.
        background: the events beside these.
    """

    def __init__(
        self,
        random: Random,
        clock: SimulatedClock,
        slow: str = "",
        on_event: Callable[[Life, Callable[..., None], tuple[Any, ...]], None] | None = None,
        background: Background | None = None,
    ) -> None:
        self._random, self._clock, self._slow, self._on_event = random, clock, slow, on_event
        self._ready: list[tuple[Life, Callable[..., None], tuple[Any, ...]]] = []
        self._held: list[tuple[Life, Callable[..., None], tuple[Any, ...]]] = []
        self._timers: list[tuple[float, int, ScheduledTimer]] = []
        self._num_timers = 0
        self._background = background
        self.events = 0
        self.pauses = 0

    def soon(self, life: Life, action: Callable[..., None], *arguments: Any) -> None:
        """Lets `action` happen at some moment, if `life` has not ended by then."""
        if life.alive:
            self._ready.append((life, action, arguments))

    def at(self, monotonic_s: float, life: Life, action: Callable[..., None], *arguments: Any) -> ScheduledTimer:
        """Lets `action` happen at some moment from a time on."""
        self._num_timers += 1
        timer = ScheduledTimer((life, action, arguments))
        heapq.heappush(self._timers, (monotonic_s, self._num_timers, timer))
        return timer

    @property
    def is_waiting(self) -> bool:
        """True while anything is under way."""
        return bool(self._ready or self._timers)

    def step(self) -> bool:
        """One event happens.  Returns False if none is left."""
        ready, chance, background = self._ready, self._random.random, self._background
        has_acted = background is not None and background.between()
        while True:
            if not ready or (self._timers and chance() < _TIME_PASSES):
                if background is not None and self._timers:
                    first = self._timers[0]
                    has_acted = self._let_first(background) or has_acted
                    if not self._timers or self._timers[0] is not first:
                        return True  # within an event of the background others have happened
                if not self._timers:
                    return has_acted or (background is not None and background.alone())
                due_s, event = self._next_timer()
                self.pauses += not ready and event is not None
                if event is not None and event[0].alive:
                    self._clock.advance_to(due_s + _LATE_S)
                    ready.append(event)
                continue
            at = int(chance() * len(ready))
            life, action, arguments = ready[at]
            if not life.alive:
                self._take(at)
                continue
            if life.process.frozen:
                self._held.append(self._take(at))
                continue
            if life.name == self._slow and len(ready) > 1 and chance() < _HURRIES:
                continue
            self._take(at)
            self._notify(life, action, arguments)
            return True

    def thaw(self) -> None:
        """Returns the held events of frozen processes."""
        held, self._held = self._held, []
        self._ready += held

    def _let_first(self, background: Background) -> bool:
        """Lets happen in the background what is due before the next timer.  Returns whether anything was."""
        due_s, _, timer = self._timers[0]
        return timer.event is not None and timer.event[0].alive and background.until(due_s)

    def _next_timer(self) -> tuple[float, tuple[Life, Callable[..., None], tuple[Any, ...]] | None]:
        due_s, _, timer = heapq.heappop(self._timers)
        return due_s, timer.event

    def _notify(self, life: Life, action: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self.events += 1
        if self._on_event is not None:
            self._on_event(life, action, arguments)
        action(*arguments)

    def _take(self, at: int) -> tuple[Life, Callable[..., None], tuple[Any, ...]]:
        ready = self._ready
        event = ready[at]
        ready[at] = ready[-1]
        ready.pop()
        return event

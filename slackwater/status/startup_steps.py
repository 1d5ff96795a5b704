"""The steps of a start, as they begin and end, in whatever thread they are taken."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from slackwater.status.run_status import StartupStep
from state.clock import Clock


class StartupSteps:
    """Times the steps of a start; several may be under way at once, and a step may come again after a failure.

    Args:
        clock: measures them.
        changed: is called whenever one has begun or ended.
    """

    def __init__(self, clock: Clock, changed: Callable[[], None]) -> None:
        self._clock, self._changed = clock, changed
        self._lock = threading.Lock()
        # Name → when it began, and how long it took, None while it is under way.
        self._steps: dict[str, tuple[float, float | None]] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """One step, as long as the context; one that fails is not done."""
        began_s = self._clock.monotonic()
        self._set(name, began_s, None)
        yield
        self._set(name, began_s, self._clock.monotonic() - began_s)

    def all(self) -> tuple[StartupStep, ...]:
        """The steps that have begun, in their order."""
        with self._lock:
            now_s, steps = self._clock.monotonic(), dict(self._steps)
        return tuple(
            StartupStep(name, now_s - began_s if took_s is None else took_s, took_s is not None)
            for name, (began_s, took_s) in steps.items()
        )

    def waits_for(self) -> str:
        """What the start waits for, in words; empty when no step is under way."""
        names = [step.name for step in self.all() if not step.done]
        return f"starting; waiting for {', '.join(names)}" if names else ""

    def _set(self, name: str, began_s: float, took_s: float | None) -> None:
        with self._lock:
            self._steps[name] = (began_s, took_s)
        self._changed()

"""A clock for the steps of the start of a run; any thread may take a step."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from slackwater.status.run_status import StartupStep
from state.clock import Clock


class StartupSteps:
    """Times the steps of a start.  Several may run at once, and a step may be repeated after a failure.

    Args:
        clock: measures the steps.
        changed: called when a step has begun or ended.
    """

    def __init__(self, clock: Clock, changed: Callable[[], None]) -> None:
        self._clock, self._changed = clock, changed
        self._lock = threading.Lock()
        # Name → begin, and duration; None while the step runs.
        self._steps: dict[str, tuple[float, float | None]] = {}
        self._last = ""

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """One step, for the time of the context; a step that fails is not done."""
        began_s = self._clock.monotonic()
        self._set(name, began_s, None)
        yield
        self._set(name, began_s, self._clock.monotonic() - began_s)

    def move_to(self, name: str) -> bool:
        """One of the steps that follow each other: the one before ends, and this begins unless its name is empty.

        A step that comes again continues.  Returns whether the step has changed.
        """
        before, self._last = self._last, name
        if before == name:
            return False
        now_s = self._clock.monotonic()
        if before:
            self._set(before, now_s, now_s - self._began_s(before, now_s))
        if name:
            self._set(name, self._began_s(name, now_s), None)
        return True

    def all(self) -> tuple[StartupStep, ...]:
        """The steps that have begun, in their order."""
        with self._lock:
            now_s, steps = self._clock.monotonic(), dict(self._steps)
        return tuple(
            StartupStep(name, now_s - began_s if took_s is None else took_s, took_s is not None)
            for name, (began_s, took_s) in steps.items()
        )

    def waits_for(self) -> str:
        """The running steps, in words; empty without one."""
        names = [step.name for step in self.all() if not step.done]
        return f"starting; waiting for {', '.join(names)}" if names else ""

    def _began_s(self, name: str, now_s: float) -> float:
        """The begin of a step that has begun, without the time since it ended."""
        began_s, took_s = self._steps.get(name, (now_s, 0.0))
        return began_s if took_s is None else now_s - took_s

    def _set(self, name: str, began_s: float, took_s: float | None) -> None:
        with self._lock:
            self._steps[name] = (began_s, took_s)
        self._changed()

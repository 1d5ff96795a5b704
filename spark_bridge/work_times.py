"""Durations of the pieces of work on an epoch, as spans for its trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, TypeVar

from spark_bridge.work_cost import Counter, counted
from state.clock import Clock
from state.tables.epoch_trace import Span, WorkCost
from state.tables.stored_rows import base_name, is_stored_rows, source_of_rows

_Result = TypeVar("_Result")
_PHASE: Final = "spark"
_NOTICED_S = 0.001
_NOTHING = WorkCost()


class WorkTimes:
    """Measures pieces of work, also in several threads; times count from its creation."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._began_s = clock, clock.monotonic()
        self._spans: list[tuple[Span, Counter]] = []

    @property
    def seconds(self) -> float:
        """Seconds since its creation."""
        return self._clock.monotonic() - self._began_s

    @property
    def spans(self) -> tuple[Span, ...]:
        """The measured pieces, in the order of their ends; times count from the creation of this object."""
        return tuple(
            replace(span, cost=None if counter.cost == _NOTHING else counter.cost, hot=counter.hot)
            for span, counter in self._spans
        )

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Measures the work in the context; work below a millisecond gets no span.

        Args:
            step: the name of a view, or a text that cannot be one.
        """
        began_s = self.seconds
        with counted() as counter:
            yield
        self._add(step, began_s, counter)

    def add(self, step: str, began_s: float) -> None:
        """Adds a piece of work that began at a time and ends now; work below a millisecond gets no span."""
        self._add(step, began_s, Counter())

    def _add(self, step: str, began_s: float, counter: Counter) -> None:
        seconds = self.seconds - began_s
        if seconds >= _NOTICED_S:
            self._spans.append((Span(_PHASE, step, began_s, seconds), counter))

    def timing(self, suffix: str, work: Mapping[str, Callable[[], _Result]]) -> dict[str, Callable[[], _Result]]:
        """The same work, measured: name → call.

        Args:
            suffix: appended to the names of the steps.
            work: recorded name → call.
        """
        return {name: self._timing(step_name(name) + suffix, call) for name, call in work.items()}

    def _timing(self, step: str, call: Callable[[], _Result]) -> Callable[[], _Result]:
        def timed() -> _Result:
            with self.timed(step):
                return call()

        return timed


def step_name(name: str) -> str:
    """The name of the work on a dataset, by the recorded name of the dataset."""
    if is_stored_rows(name):
        return f"stored rows of {source_of_rows(name)}"
    view = base_name(name)
    return name if view == name else f"{view}, backfill"

"""How long each piece of the work on an epoch takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TypeVar

from state.clock import Clock
from state.tables.epoch_trace import Span
from state.tables.stored_rows import base_name, is_stored_rows, is_view, source_of_rows

_Result = TypeVar("_Result")
_PHASE: Final = "spark"
_NOTICED_S = 0.001


class WorkTimes:
    """Times pieces of work, also side by side in threads, from the moment it is made.

    Args:
        clock: measures.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock, self._began_s = clock, clock.monotonic()
        self._spans: list[Span] = []

    @property
    def seconds(self) -> float:
        """Since it was made."""
        return self._clock.monotonic() - self._began_s

    @property
    def spans(self) -> tuple[Span, ...]:
        """What was timed, in the order in which it ended; their begins count from when this was made."""
        return tuple(self._spans)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Times what is done within; what takes less than a millisecond is not worth a span.

        Args:
            step: a view, or words that no view's name can be.
        """
        began_s = self.seconds
        yield
        seconds = self.seconds - began_s
        if seconds >= _NOTICED_S:
            self._spans.append(Span(_PHASE, step, began_s, seconds))

    def timing(self, what: str, work: Mapping[str, Callable[[], _Result]]) -> dict[str, Callable[[], _Result]]:
        """The same work by name, each piece timed when it is done; `what` follows the names of views."""
        return {name: self._timing(step_name(name) + what, call) for name, call in work.items()}

    def _timing(self, step: str, call: Callable[[], _Result]) -> Callable[[], _Result]:
        def timed() -> _Result:
            with self.timed(step):
                return call()

        return timed


def step_name(name: str) -> str:
    """What the work on a dataset is called, by the name that an epoch record has for it."""
    if is_stored_rows(name):
        return f"stored rows of {source_of_rows(name)}"
    return name if is_view(name) else f"{base_name(name)}, catching up"

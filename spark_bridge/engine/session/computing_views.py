"""The views that are being computed, by which a death of Spark or of its executors is attributed to a view."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from threading import Lock

from state.clock import Clock
from state.tables.stored_rows import declared_name, is_stored_rows


class ComputingViews:
    """Counts the work on each view, and for a while computes one view at a time.

    Args:
        clock: measures the while.
        alone_s: seconds from now in which the work on a view waits until no other view is computed.
    """

    def __init__(self, clock: Clock, alone_s: float = 0.0) -> None:
        self._clock, self._alone_until_s = clock, clock.monotonic() + alone_s
        self._lock, self._alone = Lock(), Lock()
        self._running: Counter[str] = Counter()
        self._at_death: frozenset[str] | None = None

    @contextmanager
    def computing(self, name: str) -> Iterator[None]:
        """Counts the block as work on a view; it waits for other views as long as each is computed alone.

        Args:
            name: of the view, its backfill, an internal view of it, or stored rows.
        """
        view = declared_name(name)
        if is_stored_rows(name):
            yield
            return
        with self._lock:
            is_nested = self._running[view] > 0
        must_wait = not is_nested and self._clock.monotonic() < self._alone_until_s
        with self._alone if must_wait else nullcontext():
            with self._lock:
                self._running[view] += 1
            try:
                yield
            finally:
                with self._lock:
                    self._running[view] -= 1

    def at_death(self) -> frozenset[str]:
        """The views that were being computed when Spark or an executor died: later calls repeat the first result."""
        with self._lock:
            if self._at_death is None:
                self._at_death = frozenset(view for view, count in self._running.items() if count)
            return self._at_death

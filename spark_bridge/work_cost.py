"""The cost of a piece of work on a view, counted where rows go to Spark, are looked up, and are written.

A piece of work runs in one thread, so that whatever counts below it counts for it.  The commits that it leaves to other
threads count for it too, also after its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

from state.tables.epoch_trace import HotKey, WorkCost


class Counter:
    """The cost of a piece of work so far, and its hottest key."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.cost = WorkCost()
        self.hot: HotKey | None = None


_counter: ContextVar[Counter | None] = ContextVar("work_cost", default=None)


@contextmanager
def counted() -> Iterator[Counter]:
    """Counts the costs of the work in the context; its `cost` grows meanwhile, and `hot` is its hottest key."""
    counter = Counter()
    token = _counter.set(counter)
    try:
        yield counter
    finally:
        _counter.reset(token)


def count(cost: WorkCost) -> None:
    """Adds to the costs of the work that this thread does; outside of `counted` nothing is counted."""
    counter = _counter.get()
    if counter is not None:
        with counter.lock:
            counter.cost += cost


def count_key(hot: HotKey) -> None:
    """Notes a key with many rows; of several the one with the most is kept."""
    counter = _counter.get()
    if counter is not None and (counter.hot is None or counter.hot.rows < hot.rows):
        counter.hot = hot

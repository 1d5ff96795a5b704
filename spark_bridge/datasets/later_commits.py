"""Commits that go on beside the work on other views, until the epoch ends.

A commit writes files, waits for the disk and names the next version: 5 to 15 ms in which nothing is computed.  The
views above follow the changes in memory, and seldom read the dataset::

    one view       rows ─ commit ┐
    the one above  ······ rows ─ commit ┐
    the epoch      ·····················└ ends

A commit has one outcome: the next version, whose number is known before, or an error, of the view or of the epoch.  So
a piece of work names the version and ends before the commit does.  Readers of a dataset wait for its commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from threading import Lock
from typing import TypeVar

import lance

from state.location import Location

_Result = TypeVar("_Result")
Commit = Callable[[], lance.LanceDataset]
"""Makes the next version of a dataset.  Returns a handle on it."""

_AT_ONCE = 4
_MOST_BYTES = 16 << 20
"""Rows beyond this size are written at once: those that wait take memory."""


class LaterCommits:
    """Runs the commits of an epoch in threads of their own."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="commit")
        self._lock = Lock()
        self._running: dict[str, tuple[str, Future[lance.LanceDataset]]] = {}

    def of(self, work: Mapping[str, Callable[[], _Result]]) -> dict[str, Callable[[], _Result]]:
        """The same pieces of work, which do not wait for their commits: name → call."""
        return {name: self._leaving(name, call) for name, call in work.items()}

    def begin(self, name: str, location: Location, commit: Commit) -> Commit:
        """Begins a commit of a dataset whose earlier commits have ended.  Returns a call that waits for its outcome.

        Args:
            name: of the work that has begun it.
            commit: makes the version.
        """
        # The costs of the commit count for the work that has begun it.
        running = self._threads.submit(copy_context().run, commit)
        with self._lock:
            self._running[location.url] = name, running
        return running.result

    def wait(self, location: Location) -> None:
        """Waits for the commit of a dataset, if one is running.  Errors as the commit."""
        with self._lock:
            _, running = self._running.get(location.url, ("", None))
        if running is not None:
            running.result()

    @contextmanager
    def ended(self) -> Iterator[None]:
        """All commits are over when the context ends, also by an error.

        Raises:
            CommitRefusedError: another process has written to a dataset.
            CommitUnknownError: the outcome of a commit is not known.
        """
        try:
            yield
            self.wait_for_all()
        finally:  # no work is left behind in a thread
            with self._lock:
                running, self._running = [future for _, future in self._running.values()], {}
            wait(running)

    def wait_for_all(self) -> None:
        """Waits for all commits.  Errors as of `ended`."""
        with self._lock:
            running = [future for _, future in self._running.values()]
        for each in wait(running).done:
            each.result()

    def take_failed(self) -> list[tuple[str, Exception]]:
        """Waits for all commits.  Returns (name of the work, error) of each failed commit, and forgets all commits."""
        with self._lock:
            running, self._running = [*self._running.values()], {}
        errors = [(name, future.exception()) for name, future in running]
        return [(name, error) for name, error in errors if isinstance(error, Exception)]

    def close(self) -> None:
        """Ends the threads."""
        self._threads.shutdown()

    def _leaving(self, name: str, call: Callable[[], _Result]) -> Callable[[], _Result]:
        def leaving() -> _Result:
            token = _later.set((name, self))
            try:
                return call()
            finally:
                _later.reset(token)

        return leaving


_later: ContextVar[tuple[str, LaterCommits] | None] = ContextVar("later_commits", default=None)


def begin_commit(location: Location, commit: Commit, nbytes: int) -> Commit:
    """Makes the next version of a dataset: at once, or later in work that does not wait, see `LaterCommits.of`.

    Args:
        commit: makes the version.
        nbytes: size of the rows that it writes, in bytes.

    Returns:
        A call that gives a handle on the version, when it is there.
    """
    later = _later.get()
    if later is not None and nbytes <= _MOST_BYTES:
        name, commits = later
        return commits.begin(name, location, commit)
    dataset = commit()
    return lambda: dataset

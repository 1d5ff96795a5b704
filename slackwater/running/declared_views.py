"""The views of a run: declared at its start, added and dropped while it runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial

from slackwater.expectations.release import Release
from slackwater.extensions.run_views import PublishedView, RunViews
from slackwater.running.requests import RunningAttempt, RunRequests
from spark_bridge.plans.view_definition import ViewDefinition, parts_of, sources_read
from state.errors import RunFailedError


class DeclaredViews:
    """The views that every attempt of a run begins with.

    A dropped view is remembered: if an attempt ends before the epoch that drops it, the next attempt drops it.

    Attributes:
        definitions: name → definition.
        dropped: the views that were dropped, each with the last epoch at that moment.
        retried: the failed views that were retried, and have not failed since.
        release_asked: the last release.
        needs: see `RunViews`; the files of a view are protected before its change is accepted.

    Args:
        definitions: the views at the start.
        needs: see above; None for needs of its own.
    """

    def __init__(
        self,
        definitions: Sequence[ViewDefinition],
        sources: Collection[str],
        requests: RunRequests,
        needs: RunViews | None = None,
    ) -> None:
        self._requests, self._sources = requests, sources
        self.definitions: Mapping[str, ViewDefinition] = {each.name: each for each in definitions}
        self.dropped: Mapping[str, int] = {}
        self.retried: set[str] = set()
        self.release_asked = Release()
        self.needs = needs or RunViews(definitions, sources)

    @property
    def reads(self) -> dict[str, frozenset[str]]:
        """Name → the sources that the view may read, also by way of other views."""
        return sources_read(self.definitions, self._sources)

    def add(self, view: ViewDefinition, published: Iterable[PublishedView] = ()) -> None:
        """Adds a view, in this attempt and in later attempts.  Errors as `Run.add_view`.

        Args:
            published: the tables that will follow it.
        """
        with self.needs.changing(*view.parts, published=published):
            self._change(lambda attempt: attempt.add_view(view), lambda _: self._on_added(view))

    def drop(self, name: str, *, cascade: bool = False) -> None:
        """Ends a view, in this attempt and in later attempts.  Arguments and errors as `Run.drop_view`."""
        if cascade:
            parts = parts_of(name, self.definitions)
            for reader in reversed(self._requests.running_attempt().readers(*parts)):
                if reader in self.definitions:  # it may have ended with its other half
                    self.drop(reader)
        self._change(lambda attempt: attempt.drop_view(name), partial(self._on_dropped, name))

    def retry(self, name: str) -> None:
        """Rebuilds a failed view, in this attempt or in a later attempt.  Errors as `Run.retry_view`."""
        names = (name, *self._requests.running_attempt().readers(name))
        rebuilt = [each for view in names if (each := self.definitions.get(view)) is not None]
        with self.needs.changing(*rebuilt):
            self._change(lambda attempt: attempt.retry_view(name), lambda _: None)

    def release(self) -> None:
        """Accepts the rows that violate expectations; returns when that is committed.  Errors as `Run.release`."""
        self._change(lambda attempt: attempt.release(), lambda _: None)
        self._requests.await_commit(self.release_asked.is_committed)

    def _change(
        self, change: Callable[[RunningAttempt], Future[None]], on_changed: Callable[[RunningAttempt], None]
    ) -> None:
        """Changes the views of the running attempt; if it ends before, the views of the next attempt.

        `on_changed` is called by the thread of the attempt: the next attempt begins after it.

        Raises:
            CommandRefusedError: the run ends.
        """
        while True:
            attempt = self._requests.running_attempt()
            changed = change(attempt)
            changed.add_done_callback(lambda done: None if done.exception() else on_changed(attempt))  # noqa: B023
            try:
                return changed.result()
            except RunFailedError:
                self._requests.wait_end_of(attempt)

    def _on_added(self, view: ViewDefinition) -> None:
        ended = parts_of(view.name, self.definitions)
        left = {name: each for name, each in self.definitions.items() if name not in ended}
        self.definitions = {**left, **{part.name: part for part in view.parts}}

    def _on_dropped(self, name: str, attempt: RunningAttempt) -> None:
        parts = parts_of(name, self.definitions)
        self.definitions = {each: view for each, view in self.definitions.items() if each not in parts}
        self.dropped = {**self.dropped, **dict.fromkeys(parts, attempt.state.epoch)}
        self.retried.difference_update(parts)

"""The views that are recomputed as a whole: beside the epochs, one at a time, and recorded by the next epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from spark_bridge.analysis.view_plan import ViewPlan
from spark_bridge.views.full_view import FullView
from state.tables.records import ViewVersion
from state.tables.stored_rows import next_name


class _Maintained:
    """One view, and whether it is up to date."""

    def __init__(self, view: FullView, *, is_shown: bool, is_stale: bool) -> None:
        self.view = view
        self.is_shown, self.is_stale = is_shown, is_stale
        self.begun_s = float("-inf")

    @property
    def is_awaited(self) -> bool:
        """Whether it lacks rows, and nothing but the computation keeps it from having them."""
        return self.is_stale and not (self.is_shown and self.view.definition.refresh_interval_s)

    def is_due(self, now_s: float) -> bool:
        """Whether it can be computed, and should be."""
        interval_s = self.view.definition.refresh_interval_s
        return self.is_stale and self.view.version is not None and now_s >= self.begun_s + interval_s


class FullViews:
    """Begins a recomputation when rows of a source have changed and the view's interval is over.

    What it computes is over the rows of one epoch, however many epochs come meanwhile.  A view is not shown before it
    was computed once.

    Args:
        run: carries a recomputation out, with its errors in our words: (view, work) -> its version.
    """

    def __init__(self, run: Callable[[str, Callable[[], ViewVersion]], ViewVersion]) -> None:
        self._run = run
        self._views: dict[str, _Maintained] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="full-view")
        self._running: tuple[str, _Maintained, Future[ViewVersion]] | None = None

    def get(self, name: str) -> FullView | None:
        """The view that is kept under a name."""
        maintained = self._views.get(name)
        return None if maintained is None else maintained.view

    @property
    def plans(self) -> list[ViewPlan]:
        return [each.view.plan for each in self._views.values()]

    @property
    def behind(self) -> frozenset[str]:
        """The views that lack rows, and will have them as soon as they are computed."""
        running = set() if self._running is None else {self._running[0]}
        return frozenset(running.union(name for name, each in self._views.items() if each.is_awaited))

    @property
    def has_news(self) -> bool:
        """Whether the next epoch creates a view, or records a recomputation."""
        is_over = self._running is not None and self._running[2].done()
        return is_over or any(each.view.version is None for each in self._views.values())

    def declare(self, views: Mapping[str, FullView], shown: Mapping[str, bool]) -> None:
        """These views are to be kept, and no others.

        Args:
            views: by name.
            shown: name → whether rows have changed since it was computed, of those that epochs record already.
        """
        kept = {name: each for name, each in self._views.items() if each.view is views.get(name)}
        self._views = {
            name: kept[name]
            if name in kept
            else _Maintained(view, is_shown=name in shown, is_stale=shown.get(name, True))
            for name, view in views.items()
        }

    def drop(self, name: str) -> None:
        """Forgets one; what is being computed of it is nobody's."""
        self._views.pop(name, None)

    def create_work(self, epoch: int) -> dict[str, Callable[[], ViewVersion]]:
        """What an epoch makes of those that have no dataset, by the name under which it is recorded."""
        return {
            next_name(name): partial(each.view.create, epoch)
            for name, each in self._views.items()
            if each.view.version is None
        }

    def on_rows(self, sources: frozenset[str]) -> None:
        """An epoch has brought rows of these sources."""
        for each in self._views.values():
            each.is_stale = each.is_stale or not sources.isdisjoint(each.view.plan.sources)

    def begin_due(self, now_s: float, epoch: int, stored: Mapping[str, ViewVersion]) -> None:
        """Begins the recomputation that has waited longest, if none runs.

        Args:
            now_s: of the monotonic clock.
            epoch: the last one that brought rows.
            stored: source → the version of its rows as of then.
        """
        due = {name: each for name, each in self._views.items() if each.is_due(now_s)}
        if self._running is not None or not due:
            return
        name = min(due, key=lambda each: due[each].begun_s)
        due[name].is_stale, due[name].begun_s = False, now_s
        refresh = partial(due[name].view.refresh, epoch, stored)
        self._running = (name, due[name], self._thread.submit(self._run, name, refresh))

    def take_finished(self) -> tuple[FullView, bool] | None:
        """The view whose recomputation is over, if one is, and whether it is shown for the first time.

        Raises:
            What it has failed with.
        """
        if self._running is None or not self._running[2].done():
            return None
        (name, maintained, work), self._running = self._running, None
        work.result()
        if self._views.get(name) is not maintained:
            return None  # it was dropped meanwhile
        is_first, maintained.is_shown = not maintained.is_shown, True
        return maintained.view, is_first

    def recorded(self, epoch: int) -> dict[str, ViewVersion]:
        """The versions of those that are not shown yet, as an epoch records them."""
        return {
            next_name(name): replace(each.view.version, name=next_name(name), pinned_epoch=epoch)
            for name, each in self._views.items()
            if not each.is_shown and each.view.version is not None
        }

    def close(self) -> None:
        """Waits for what is being computed."""
        self._thread.shutdown()

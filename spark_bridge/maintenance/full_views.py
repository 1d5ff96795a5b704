"""All full views: recomputed as a whole beside the epochs, one at a time, and recorded by the next epoch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from spark_bridge.changes.view import Guard, no_guard
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from state.tables.records import ViewVersion
from state.tables.stored_rows import next_name, stored_versions

if TYPE_CHECKING:
    from spark_bridge.plans.planned_view import PlannedView


class RecomputedView(Protocol):
    """The dataset of one full view, see `spark_bridge.maintenance.full_view.FullView`."""

    version: ViewVersion | None

    @property
    def definition(self) -> ViewDefinition: ...

    @property
    def plan(self) -> ViewPlan: ...

    @property
    def num_rows(self) -> int: ...

    def create(self, epoch: int) -> ViewVersion: ...

    def open(self, version: ViewVersion) -> None: ...

    def is_stale(self, stored: Mapping[str, ViewVersion]) -> bool: ...

    def refresh(self, epoch: int, stored: Mapping[str, ViewVersion]) -> ViewVersion: ...


@dataclass(frozen=True)
class Recomputation:
    """A recomputation that is over.

    Args:
        is_first: whether readers have not seen the view before.
    """

    version: ViewVersion
    is_first: bool


class _Maintained:
    """One full view, and whether it is up to date."""

    def __init__(self, view: RecomputedView, *, is_shown: bool, is_stale: bool, has_rows: bool) -> None:
        self.view = view
        self.is_shown, self.is_stale, self.has_rows = is_shown, is_stale, has_rows
        self.begun_s = float("-inf")

    @property
    def is_awaited(self) -> bool:
        """Whether it lacks rows, and waits for the computation only, not for its interval."""
        return self.is_stale and not (self.is_shown and self.view.definition.refresh_interval_s)

    def begin(self, now_s: float) -> None:
        """A recomputation begins.  The interval begins with the first one over rows."""
        self.is_stale = False
        if self.has_rows:
            self.begun_s = now_s

    def on_rows(self) -> None:
        """Rows of its sources have changed."""
        self.is_stale = self.has_rows = True

    def is_due(self, now_s: float) -> bool:
        """Whether it can be recomputed now, and lacks rows."""
        interval_s = self.view.definition.refresh_interval_s
        return self.is_stale and self.view.version is not None and now_s >= self.begun_s + interval_s


class FullViews:
    """Begins a recomputation when rows of a source have changed and the view's interval is over.

    A recomputation is over the rows of one epoch, and later epochs do not change it.  Readers do not see a view before
    its first recomputation.

    Args:
        make_view: makes the dataset of a view, neither created nor open.
        run: runs a recomputation and translates its errors: (view, work) -> its version.
        threads: runs the recomputations in the background.
        guard: around the work on a view in the thread of the caller.
    """

    def __init__(
        self,
        make_view: Callable[[PlannedView], RecomputedView],
        run: Callable[[str, Callable[[], ViewVersion]], ViewVersion],
        threads: Executor,
        guard: Guard = no_guard,
    ) -> None:
        self._make_view, self._run, self._guard = make_view, run, guard
        self._views: dict[str, _Maintained] = {}
        self._threads = threads
        self._running: tuple[str, _Maintained, Future[ViewVersion]] | None = None

    @property
    def num_rows(self) -> dict[str, int]:
        """Name → number of rows of each view."""
        return {name: each.view.num_rows for name, each in self._views.items()}

    @property
    def plans(self) -> list[ViewPlan]:
        return [each.view.plan for each in self._views.values()]

    @property
    def behind(self) -> frozenset[str]:
        """The views that lack rows, and wait for the computation only."""
        running = set() if self._running is None else {self._running[0]}
        return frozenset(running.union(name for name, each in self._views.items() if each.is_awaited))

    @property
    def has_news(self) -> bool:
        """Whether the next epoch creates a view, or records a recomputation."""
        is_over = self._running is not None and self._running[2].done()
        return is_over or any(each.view.version is None for each in self._views.values())

    def declare(
        self,
        planned: Mapping[str, PlannedView],
        fresh: Collection[str],
        begun: Mapping[str, ViewVersion],
        versions: Mapping[str, ViewVersion],
    ) -> None:
        """Replaces the set of full views.

        Args:
            planned: name → view.
            fresh: names of views that are new, or replace another definition.
            begun: recorded name → version of the fresh views that have a dataset.
            versions: the versions of all views and stored rows that readers see.

        Raises:
            StorageError: a version cannot be opened.
            ViewFailedError: the maintenance of a view cannot be made.
        """
        views: dict[str, _Maintained] = {}
        rows = {**versions, **stored_versions(versions)}
        for name, each in planned.items():
            kept = self._views.get(name)
            if kept is not None and kept.view.plan is each.plan:
                views[name] = kept
                continue
            recorded = begun.get(next_name(name)) if name in fresh else versions[name]
            with self._guard(name):
                view = self._make_view(each)
                if recorded is not None:
                    view.open(recorded)
                views[name] = _Maintained(
                    view,
                    is_shown=name not in fresh,
                    is_stale=name in fresh or view.is_stale(rows),
                    has_rows=not rows.keys().isdisjoint(each.plan.columns),
                )
        self._views = views

    def drop(self, name: str) -> None:
        """Forgets a view; the result of a running recomputation is not used."""
        self._views.pop(name, None)

    def create_work(self, epoch: int) -> dict[str, Callable[[], ViewVersion]]:
        """Recorded name → the work that creates the dataset of each view that has none."""
        return {
            next_name(name): partial(each.view.create, epoch)
            for name, each in self._views.items()
            if each.view.version is None
        }

    def on_rows(self, sources: frozenset[str]) -> None:
        """Notes that an epoch has changed rows of these sources."""
        for each in self._views.values():
            if not sources.isdisjoint(each.view.plan.sources):
                each.on_rows()

    def begin_due(self, now_s: float, epoch: int, rows: Mapping[str, ViewVersion]) -> None:
        """Begins the recomputation that has waited longest, unless one runs.

        Args:
            now_s: time on the monotonic clock, in seconds.
            epoch: the last epoch with rows.
            rows: source → the version of its stored rows at that epoch; and view → its version, if it is maintained.
        """
        due = {
            name: each
            for name, each in self._views.items()
            if each.is_due(now_s) and rows.keys() >= {*each.view.plan.parents}
        }
        if self._running is not None or not due:
            return
        name = min(due, key=lambda each: due[each].begun_s)
        due[name].begin(now_s)
        refresh = partial(due[name].view.refresh, epoch, rows)
        self._running = (name, due[name], self._threads.submit(self._run, name, refresh))

    def take_finished(self) -> Recomputation | None:
        """The recomputation that is over, if any.

        Raises:
            ViewFailedError, SparkLostError, RunFailedError, StorageFullError, CommitRefusedError: the error of the
                recomputation.
        """
        if self._running is None or not self._running[2].done():
            return None
        (name, maintained, work), self._running = self._running, None
        if self._views.get(name) is not maintained:
            return None  # it was dropped meanwhile
        version = work.result()
        is_first, maintained.is_shown = not maintained.is_shown, True
        return Recomputation(version, is_first)

    def recorded(self, epoch: int) -> dict[str, ViewVersion]:
        """Recorded name → version of each view that readers do not see yet, for an epoch's record."""
        return {
            next_name(name): replace(each.view.version, name=next_name(name), pinned_epoch=epoch)
            for name, each in self._views.items()
            if not each.is_shown and each.view.version is not None
        }

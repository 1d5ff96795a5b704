"""The incremental views over parents: each epoch's changes go through them, the parents first.

A view that lacks the rows of its parents gets them in one computation.  Few rows are computed within the epoch that
shows the view.  Many are computed in a thread, beside the epochs, from the versions of one epoch; the changes since
then are kept, and follow in the epoch that shows the view.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future
from dataclasses import replace
from functools import cache, partial
from types import MappingProxyType
from typing import TypeAlias

from spark_bridge.changes.change_set import ChangeLog, Parent
from spark_bridge.changes.view import Guard, no_guard
from spark_bridge.datasets.index_audit import IndexAudit
from spark_bridge.maintenance.backfill import BackfillProgress, Beginning
from spark_bridge.maintenance.parents_backfill import DerivedView, ParentsBackfill, RowsOfParents
from spark_bridge.maintenance.shared_views import SharedViews
from spark_bridge.operators.temporal_filter.temporal_filter_plan import BEFORE_ALL_US, watermark_time
from spark_bridge.plans.view_plan import ViewPlan
from state.errors import ViewFailedError
from state.tables.records import ViewVersion
from state.tables.stored_rows import base_name, declared_name, is_stored_rows, next_name

Work: TypeAlias = Mapping[str, Callable[[], ViewVersion]]
"""Recorded name → the work that writes the next version of a view, or of stored rows."""
RunWork: TypeAlias = Callable[[Work], Mapping[str, ViewVersion]]
"""Does all of the work, in any order; a view that fails has no version."""


class DerivedViews:
    """Maintains them.

    Args:
        make: makes the maintenance of a view.
        rows: the rows of parents: (epoch, name → parent) -> rows.
        compute: runs a computation and translates its errors: (view, work) -> its version.
        threads: computes views in the background, one at a time.
        watermarks: source → its last watermark; the mapping follows them.
        guard: around the work on a view in the thread of the caller.
    """

    def __init__(
        self,
        make: Callable[[ViewPlan], DerivedView],
        rows: Callable[[int, Mapping[str, Parent]], RowsOfParents],
        compute: Callable[[str, Callable[[], ViewVersion]], ViewVersion],
        threads: Executor,
        watermarks: Mapping[str, int] = MappingProxyType({}),
        guard: Guard = no_guard,
    ) -> None:
        self._make, self._rows, self._compute, self._watermarks = make, rows, compute, watermarks
        self._guard = guard
        self._threads = threads
        self._plans: dict[str, ViewPlan] = {}
        self._shown: dict[str, DerivedView] = {}
        self._unshown: dict[str, ParentsBackfill] = {}
        self._computing: Future[ViewVersion] | None = None
        self._ended: set[str] = set()
        self._shared = SharedViews()
        self._read: set[str] = set()

    @property
    def num_rows(self) -> dict[str, int]:
        """Name → number of rows of each view that readers see."""
        return {name: view.num_rows for name, view in self._shown.items()}

    @property
    def unshown(self) -> frozenset[str]:
        """The views that lack the rows of their parents."""
        return frozenset(name for name, each in self._unshown.items() if each.beginning is None)

    def declare(
        self,
        plans: Mapping[str, ViewPlan],
        fresh: Collection[str],
        begun: Mapping[str, ViewVersion],
        versions: Mapping[str, ViewVersion],
        shared: SharedViews,
        beginnings: Mapping[str, Beginning] = MappingProxyType({}),
    ) -> None:
        """Replaces the set of views.

        Args:
            plans: name → plan; a view comes after those that it reads.
            fresh: the views that lack the rows of their parents.
            begun: recorded name → version of the datasets of such views.
            versions: name → version of the others.
            shared: the views that have the rows of others.
            beginnings: name → stored rows with which a fresh view begins.

        Raises:
            StorageError: a version cannot be opened.
            ViewFailedError: the maintenance of a view cannot be made.
        """
        shown, unshown = {}, {}
        for name, plan in plans.items():
            is_same, before = self._plans.get(name) is plan, shared.before(name)
            # What it reads may have another name now, too.
            is_renamed = before != name and before in self._plans and self._plans[before].parents == plan.parents
            if name in fresh:
                if is_same and name in self._unshown:
                    unshown[name] = self._unshown[name]
                    continue
                version = begun.get(next_name(name))
                if BackfillProgress.of(version).lacks:
                    # The changes of the epochs since its groups were taken over are lost.
                    version = None
                    self._ended.add(next_name(name))
                unshown[name] = self._backfill(plan, version, beginnings.get(name))
            elif before in self._shown and (is_same or is_renamed):
                shown[name] = self._shown[before]
            else:
                shown[name] = self._opened(plan, versions[name])
        self._plans, self._shown, self._unshown, self._shared = dict(plans), shown, unshown, shared
        self._read = {shared.representative(parent) for plan in plans.values() for parent in plan.parents}
        for name, view in {**shown, **{name: each.view for name, each in unshown.items()}}.items():
            view.changes.is_kept = name in self._read

    def _opened(self, plan: ViewPlan, version: ViewVersion) -> DerivedView:
        with self._guard(plan.name):
            view = self._make(plan)
            view.open(version)
        return view

    def _backfill(
        self, plan: ViewPlan, version: ViewVersion | None = None, beginning: Beginning | None = None
    ) -> ParentsBackfill:
        with self._guard(plan.name):
            return ParentsBackfill(plan, self._make(plan), version, beginning)

    def take_over(self, last: int, epoch: int, parents: Mapping[str, Parent], run: RunWork) -> dict[str, ViewVersion]:
        """Makes the views that begin with the groups of the views that they replace, before the rows of an epoch.

        Missing aggregates are computed at once if the parents have few rows, and otherwise in the background.

        Args:
            last: the epoch before.
            parents: name → parent, of all views that are maintained, as they are before the rows of the epoch.
            run: does the work on some views, in any order; a view that fails has no version.

        Returns:
            Recorded name → version, of the views that have a dataset, or are shown, from now on.
        """
        rows = self._rows(last, parents)
        work = {
            name: partial(each.create_of_groups, epoch, rows)
            for name, each in self._unshown.items()
            if each.beginning is not None
        }
        # A view may have failed with its parent, although its own work succeeded.
        made = {name: version for name, version in run(work).items() if name in self._unshown}
        for name, version in made.items():
            if version.name == name:
                self._shown[name] = self._unshown.pop(name).view
            else:
                unshown = self._unshown[name]
                unshown.version = version
                unshown.begin(self._time(unshown.plan, None, rows.time_us), parents, rows)
        return {version.name: version for version in made.values()}

    def log(self, name: str) -> ChangeLog | None:
        """The changes of a view that readers see; None if it is none of these."""
        view = self._shown.get(name)
        return None if view is None else view.changes

    def drop(self, name: str) -> None:
        """Forgets a view, if it is one of these; its dataset is left to the vacuum."""
        for each in (self._plans, self._shown, self._unshown):
            each.pop(name, None)

    def has_news(self, maintained: Collection[str]) -> bool:
        """Whether the next epoch creates or shows one of them.

        Args:
            maintained: the other views that are up to date.
        """
        return any(
            each.is_computed or (each.version is None and self._is_ready(each, maintained))
            for each in self._unshown.values()
        )

    def follow(
        self,
        epoch: int,
        parents: dict[str, Parent],
        versions: dict[str, ViewVersion],
        run: RunWork,
    ) -> list[str]:
        """Takes an epoch's changes through the views.

        Args:
            parents: name → parent, of all other views that are maintained; the views are added to it.
            versions: name → version of each view that readers see, before the call and after it.
            run: does the work on some views, in any order; a view that fails has no version.

        Returns:
            The recorded names of the views that have a dataset, or are shown, from now on.
        """
        created: list[str] = []
        rows = self._rows(epoch, parents)
        for level in _levels(self._plans, self._shared):
            work: dict[str, Callable[[], ViewVersion]] = {}
            times = {name: _time_of(versions.get(name)) for name in level}
            for name in level:
                try:
                    with self._guard(name):
                        work.update(self._work(epoch, name, parents, rows.since(times[name])))
                except ViewFailedError as error:
                    work[name] = partial(_fail, error)
            for recorded, version in run(work).items():
                name = base_name(recorded)
                if recorded != name:
                    self._unshown[name].version = version
                    created.append(recorded)
                    continue
                if name in self._unshown:
                    unshown = self._unshown.pop(name)
                    self._shown[name] = unshown.view
                    if unshown.version is not None:
                        self._ended.add(next_name(name))
                    created.append(name)
                versions[name] = replace(version, name=name)
            for name in level:
                if name in self._shown and self._plans[name].has_temporal_filter:
                    versions[name] = self._right(self._plans[name], versions[name], times[name], rows.time_us)
                if name in self._shown and (parent := self._parent(name, versions[name], run)) is not None:
                    parents.update(dict.fromkeys(self._shared.names(name), parent))
        return created

    def _parent(
        self,
        name: str,
        version: ViewVersion,
        run: RunWork,
    ) -> Parent | None:
        """A view with its changes in this epoch; None if it fails."""
        try:
            with self._guard(name):
                return Parent(self._plans[name], version, self._shown[name].changes.take())
        except ViewFailedError as error:
            run({name: partial(_fail, error)})
            return None

    def begin_due(self, epoch: int, parents: Mapping[str, Parent]) -> None:
        """Begins to compute the views whose parents are maintained, from the versions of this epoch."""
        for each in self._unshown.values():
            if each.version is not None and each.work is None and self._is_ready(each, parents):
                rows = self._rows(epoch, parents)
                each.begin(self._time(each.plan, None, rows.time_us), parents, rows)
        if self._computing is not None and not self._computing.done():
            return
        for each in self._unshown.values():
            if each.work is not None and each.computed is None:
                each.computed = self._computing = self._threads.submit(self._compute, each.plan.name, each.work)
                return

    def are_due(self, epoch: int, parents: Mapping[str, Parent], versions: Mapping[str, ViewVersion]) -> bool:
        """Whether an epoch that is made now takes rows out of one of them, or lets some in, as time has passed.

        Args:
            parents: name → parent, of all views that are maintained.
            versions: name → version of each view that readers see.
        """
        temporal = [
            name
            for name in self._shown
            if name in versions and self._plans[name].has_temporal_filter and self._plans[name].clock is None
        ]
        rows = self._rows(epoch, parents) if temporal else None
        return rows is not None and any(self._is_due(name, rows, versions[name]) for name in temporal)

    def _is_due(self, name: str, rows: RowsOfParents, version: ViewVersion) -> bool:
        try:
            with self._guard(name):
                return rows.since(_time_of(version)).are_changed(self._plans[name])
        except ViewFailedError:
            return True  # the epoch records it

    def recorded(self, epoch: int) -> dict[str, ViewVersion]:
        """Recorded name → version of each dataset that readers do not see yet, for an epoch's record."""
        return {
            next_name(name): replace(each.recorded(), pinned_epoch=epoch)
            for name, each in self._unshown.items()
            if each.version is not None
        }

    def take_ended(self) -> set[str]:
        """The recorded names of the hidden datasets that are shown or left since the last call."""
        ended, self._ended = self._ended, set()
        return ended

    def tidy(self, audit: IndexAudit | None) -> bool:
        """See `View.tidy`."""
        return any(view.tidy(audit) for view in self._shown.values())

    def _time(self, plan: ViewPlan, begun_us: int | None, time_us: int) -> int:
        """The time of the filters of a view: that of the epoch, or a watermark."""
        return time_us if plan.clock is None else watermark_time(plan.clock, self._watermarks, begun_us)

    def _right(self, plan: ViewPlan, version: ViewVersion, begun_us: int | None, time_us: int) -> ViewVersion:
        """A version of a view over filters by the time, whose rows are right at the time of an epoch."""
        at = self._time(plan, begun_us, time_us)
        noted = {"time_us": at} if plan.clock is None else {"aged_to": at if at > BEFORE_ALL_US else None}
        return replace(version, progress=json.dumps(noted))

    def _work(
        self, epoch: int, name: str, parents: Mapping[str, Parent], rows: RowsOfParents
    ) -> Iterator[tuple[str, Callable[[], ViewVersion]]]:
        """Yields the recorded name of a view and the work on it, if there is some."""
        plan = self._plans.get(name)
        if plan is None:
            return  # it has failed with its parent
        if name in self._shown:
            if rows.are_changed(plan):
                yield name, partial(self._shown[name].correct, rows)
            return
        unshown = self._unshown[name]
        if not self._is_ready(unshown, parents):
            if unshown.work is not None:
                self._restart(name)
        elif unshown.version is None:
            if unshown.has_few(rows):
                yield name, partial(unshown.create, epoch, rows)
            else:
                yield next_name(name), partial(unshown.view.create, epoch, rows.none())
        elif unshown.work is not None:
            unshown.keep(parents)
            if unshown.is_computed:
                changed = self._rows(epoch, unshown.changed_parents(parents))
                yield name, partial(unshown.catch_up, changed.since(unshown.begun_us))

    def _restart(self, name: str) -> None:
        self._unshown[name] = self._backfill(self._plans[name])
        self._ended.add(next_name(name))

    @staticmethod
    def _is_ready(unshown: ParentsBackfill, maintained: Collection[str]) -> bool:
        return all(parent in maintained for parent in unshown.plan.parents)


def _time_of(version: ViewVersion | None) -> int | None:
    """The time at which the rows of a view over filters by the time are right; None for other views."""
    noted = {} if version is None else version.noted
    if "aged_to" not in noted:
        return noted.get("time_us")
    return BEFORE_ALL_US if noted["aged_to"] is None else int(noted["aged_to"])


def aged_to(view: str, versions: Mapping[str, ViewVersion]) -> int | None:
    """The watermark that a view with a time to live follows, in microseconds since 1970; None before the first.

    Args:
        view: the declared view; one of its internal views may note the watermark.
        versions: those of the views of one epoch, by name.
    """
    own = (version.noted for name, version in versions.items() if declared_name(name) == view)
    return max((at for noted in own if (at := noted.get("aged_to")) is not None), default=None)


def filter_time_us(versions: Iterable[ViewVersion]) -> int | None:
    """The time of the last epoch in which filters by the time were computed, in microseconds; None without one.

    Args:
        versions: those of the views of one epoch.
    """
    views = [each for each in versions if not is_stored_rows(each.name)]
    return max((each.noted["time_us"] for each in views if "time_us" in each.noted), default=None)


def _fail(error: ViewFailedError) -> ViewVersion:
    raise error


def _levels(plans: Mapping[str, ViewPlan], shared: SharedViews) -> list[list[str]]:
    """The names of the views, in groups: a view reads views of earlier groups only.

    Args:
        plans: name → plan; a view comes after those that it reads.
        shared: the views that have the rows of others.
    """
    parents = {name: {shared.representative(each) for each in plan.parents} for name, plan in plans.items()}

    @cache
    def depth(name: str) -> int:
        return 1 + max(map(depth, parents[name]), default=0) if name in parents else 0

    levels: dict[int, list[str]] = {}
    for name in sorted(plans, key=depth):
        levels.setdefault(depth(name), []).append(name)
    return [*levels.values()]

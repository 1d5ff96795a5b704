"""The views that epochs record: the next epoch creates, changes, shows and ends some of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

from actors.protocol.blocks import Block
from spark_bridge.changes.change_set import ChangeSet, Parent
from spark_bridge.changes.view import GroupedView, ShownView, View, seconds_behind
from spark_bridge.ingest.epoch_rows import EpochRows, EpochViews, Stopped
from spark_bridge.maintenance.backfill import Backfill
from spark_bridge.maintenance.backfills import Backfills
from spark_bridge.maintenance.declaration import Declaration
from spark_bridge.maintenance.derived_views import DerivedViews
from spark_bridge.maintenance.full_views import FullViews
from spark_bridge.maintenance.shared_views import SharedViews
from spark_bridge.plans.planned_view import PlannedView
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from state.clock import Clock
from state.epoch import next_epoch
from state.errors import ViewFailedError
from state.tables.records import CatalogView, ViewVersion
from state.tables.stored_rows import (
    base_name,
    declared_name,
    is_hidden_view,
    is_stored_rows,
    is_view,
    next_name,
    stored_versions,
)

Work: TypeAlias = Mapping[str, Callable[[], ViewVersion]]
"""Recorded name → the work that writes the next version of a view, or of stored rows."""
RunWork: TypeAlias = Callable[[Work], Mapping[str, ViewVersion]]
"""Does all of the work, in any order; a view that fails has no version."""
TIMERS_EVERY_S = 5.0
"""Rows that leave as time passes make an epoch of their own at most so often."""


@dataclass(frozen=True)
class _Failure:
    """A failure of a view that the next epoch records.

    Args:
        view: the view, as it was declared; None if it cannot be analysed.
    """

    view: PlannedView | None
    error: str


class RecordedViews:
    """Decides the order of the work of an epoch, and what its record says of the views.

    Backfills, and full views before their first recomputation, are recorded under a name with a dot, and hidden.  The
    epoch that shows such a view ends that name.  The hidden views of a query have names with dots too; they fail and
    end with the view.  Of those with the same rows one is maintained, see `SharedViews`.

    A view that fails keeps the version of the epoch before; one that has none yet gets an empty one.  Like a view that
    another one replaces, it is recorded as frozen: only a backfill goes on from there.

    A view whose groups are those of the view that it replaces is made of them in the next epoch, before the rows of
    that epoch come, and follows like any other from there.

    Attributes:
        versions: name → last version of each view that readers see, and of the stored rows.
        ingested: the sources that have ingested rows.
        shared: the hidden views that have the rows of others.

    Args:
        backfills: the views that lack ingested rows.
        full: the views that are recomputed as a whole.
        derived: the incremental views over other views.
        adopt: maintains a backfill that is complete epoch by epoch, from now on.
        create_empty: makes the dataset of a view that fails in its first epoch, without rows.
        clock: begins recomputations, and tells the time of the next epoch.
    """

    def __init__(
        self,
        backfills: Backfills,
        full: FullViews,
        derived: DerivedViews,
        adopt: Callable[[ViewPlan, View], None],
        create_empty: Callable[[ViewPlan, int], ViewVersion],
        clock: Clock,
    ) -> None:
        self._backfills, self._full, self._derived = backfills, full, derived
        self._adopt, self._clock = adopt, clock
        self.shared = SharedViews()
        self._create_empty = create_empty
        self._planned: Mapping[str, PlannedView] = {}
        self._begun: dict[str, ViewVersion] = {}
        self._new: set[str] = set()
        self._unshared: set[str] = set()
        self._dropped: set[str] = set()
        self._failures: dict[str, _Failure] = {}
        self._failed: set[str] = set()
        self._rebuilt: set[str] = set()
        self._regrouped: dict[str, PlannedView] = {}
        self._maintained: set[str] = set()
        self._epoch = self._rows_epoch = 0
        self._looked_s = float("-inf")
        self.versions: dict[str, ViewVersion] = {}
        self.ingested: set[str] = set()

    def open(self, views: Mapping[str, ViewVersion], epoch: int, ingested: Set[str]) -> None:
        """Continues from the record of the last committed epoch.

        Args:
            views: the versions that it records.
            ingested: the sources that have ingested rows.
        """
        self.versions = {name: view for name, view in views.items() if view.pinned_epoch is None}
        self._begun = {name: view for name, view in views.items() if view.pinned_epoch is not None}
        self._epoch = self._rows_epoch = epoch
        self.ingested = {*ingested}

    def declare(
        self,
        definitions: Mapping[str, ViewDefinition],
        planned: Mapping[str, PlannedView],
        declaration: Declaration,
        broken: Mapping[str, str] = MappingProxyType({}),
    ) -> dict[str, ViewPlan]:
        """Replaces the set of views.  After an error, call `fail`, and this again.

        Args:
            definitions: name → definition of each declared view.
            planned: name → view, of those whose sources have schemas.
            declaration: the needs of each of them.
            broken: name → reason of each recorded view that cannot be analysed any more: the next epoch records that it
                has failed.

        Returns:
            Name → plan of each view over sources that is maintained epoch by epoch and lacks no ingested rows.

        Raises:
            StorageError: a version cannot be opened.
            ViewFailedError: the maintenance of a view cannot be made.
        """
        self._planned = planned
        self._failures = {name: each for name, each in self._failures.items() if _is_same(each.view, planned.get(name))}
        for name, reason in broken.items():
            self._failures[name] = _Failure(None, reason)
            self._let_go([name, *self._drop_hidden(name)])
        self._failed = {*declaration.failed}
        stand = {name for name in planned if declared_name(name) in self._failures}.union(declaration.failed)
        plans = {name: each.plan for name, each in planned.items() if name not in stand}
        fresh = {*declaration.new, *declaration.backfills}
        self._share_rows(definitions, plans, fresh, declaration.incomplete)
        self._rebuilt = {name for name in declaration.backfills if name in plans and name in self.versions}
        plans = {name: plan for name, plan in plans.items() if self.shared.representative(name) == name}
        self._regrouped = {name: planned[name] for name in declaration.regrouped if name in plans}
        plans = {name: plan for name, plan in plans.items() if name not in self._regrouped}
        full = {name: planned[name] for name, plan in plans.items() if plan.view_class == "full"}
        derived = {name: plan for name, plan in plans.items() if plan.parents and name not in full}
        of_sources = {name: plan for name, plan in plans.items() if name not in full and name not in derived}
        # The view that a backfill replaces is shown as it is until then.
        backfills = {name: of_sources[name] for name in declaration.backfills if name in of_sources}
        self._new = {name for name in declaration.new if name in of_sources}
        self._dropped.update(declaration.abandoned)
        # A backfill of another query, or of a dropped view, does not continue.
        begun = {name: each for name, each in self._begun.items() if name not in self._dropped}
        groups = {
            name: (before.plan, self.versions[name])
            for name in declaration.extended
            if name in backfills and (before := planned[name].before) is not None
        }
        self._backfills.declare(definitions, backfills, begun, groups)
        self._full.declare(full, fresh, begun, self.versions)
        self._derived.declare(derived, fresh, begun, self.versions, self.shared)
        self._begun = {}
        self._maintained = {name for name in plans if name not in declaration.backfills and name not in full}
        return {name: plan for name, plan in of_sources.items() if name not in backfills}

    def _share_rows(
        self,
        definitions: Mapping[str, ViewDefinition],
        plans: Mapping[str, ViewPlan],
        fresh: Set[str],
        incomplete: Collection[str],
    ) -> None:
        """Chooses the hidden views that are maintained for others, see `declare`.

        Args:
            definitions: name → definition of each declared view.
            plans: name → plan of each view.
            fresh: those that lack rows.
            incomplete: those that lack the rows of missing files.
        """
        for name in self.shared.without_own_name():
            self.versions.pop(name, None)
        begun = {base_name(name) for name in self._begun}.union(self._derived.unshown)
        begun.update(each.name for each in self._backfills.plans)
        apart = {name for name in plans if definitions[declared_name(name)].on_missing == "allow"}
        self.shared.declare(plans, apart.union(incomplete), fresh, begun)
        self._unshared = {name for name, _ in self.shared.followers() if name in fresh}

    @property
    def followed(self) -> Set[str]:
        """The views that are maintained and whose changes others follow."""
        return {self.shared.representative(parent) for each in self._planned.values() for parent in each.plan.parents}

    @property
    def ending(self) -> Set[str]:
        """The recorded names that the next epoch ends."""
        return self._dropped

    def drop(self, name: str) -> list[str]:
        """The next epoch ends a view: a maintained view, a frozen view or a backfill.

        Returns:
            The views that are maintained no longer, hidden ones among them.
        """
        self._failures.pop(name, None)
        self._failed.discard(name)
        names = [name, *self._hidden_in(name)]
        self._dropped.update(names)
        return self._let_go(names)

    def fail(self, error: ViewFailedError) -> list[str]:
        """The next epoch records that a view has failed, and with it those that follow it; a backfill of it ends.

        Args:
            error: names the view, its backfill, or a hidden view.

        Returns:
            The views that are maintained no longer, hidden ones among them.
        """
        names = list[str]()
        for user in dict.fromkeys(map(declared_name, self.shared.names(base_name(error.view)))):
            if user in self._planned and user not in self._failures and user not in self._failed:
                names += self._fail(user, error.reason)
        for each, planned in self._planned.items():  # a view comes after its parents
            if not is_view(each) or each in self._failed:
                continue
            read = {*planned.plan.parents}.union(*(inner.parents for inner in planned.plan.inner))
            if failed := self._failures.keys() & read:
                reason = f"view {min(failed)!r}, which it reads, has failed"
                if each in self._failures:  # the error of its parent was raised in its own work, too
                    self._failures[each] = _Failure(planned, reason)
                else:
                    names += self._fail(each, reason)
        return names

    def _fail(self, name: str, reason: str) -> list[str]:
        self._failures[name] = _Failure(self._planned[name], reason)
        return self._let_go([name, *self._drop_hidden(name)])

    def _drop_hidden(self, name: str) -> list[str]:
        """The next epoch ends the hidden views of a view.  Returns them."""
        hidden = self._hidden_in(name)
        self._dropped.update(hidden)
        return hidden

    def _hidden_in(self, name: str) -> list[str]:
        """The hidden views of a view, declared or recorded."""
        names = {base_name(each) for each in (*self._planned, *self.versions) if declared_name(each) == name}
        return sorted(filter(is_hidden_view, names))

    def _let_go(self, names: Sequence[str]) -> list[str]:
        """Ends the maintenance of views, and their backfills with the next epoch, unless others have their rows.

        Returns:
            The views that are maintained no longer.
        """
        ended = [each for name in names if (each := self.shared.leave(name)) is not None]
        for name in ended:
            for views in (self._backfills, self._full, self._derived):
                views.drop(name)
            self._maintained.discard(name)
            self._regrouped.pop(name, None)
            self._dropped.add(next_name(name))
        return ended

    @property
    def has_news(self) -> bool:
        """Whether the next epoch creates, shows, replaces, fails or ends a view, even without rows."""
        is_changed = bool(self._new or self._dropped or self._failures or self._regrouped)
        is_changed = is_changed or bool(self._shareable() & self._unshared)
        is_changed = is_changed or self._backfills.has_news or self._full.has_news
        return is_changed or self._derived.has_news(self._parents({}))

    def are_timers_due(self) -> bool:
        """Whether an epoch that is made now takes rows out of a view, or lets some in, as time has passed.

        It looks at most once in five seconds.
        """
        now_s = self._clock.monotonic()
        if now_s < self._looked_s + TIMERS_EVERY_S:
            return False
        self._looked_s = now_s
        return self._derived.are_due(next_epoch(self._clock, self._epoch), self._parents({}), self.versions)

    def shown(self, num_rows: Mapping[str, int | None]) -> list[ShownView]:
        """Progress of the views that readers see.

        Args:
            num_rows: name → number of rows of each view; None if it is not known.
        """
        return [
            ShownView(
                self._planned[name].plan.view_class,
                rows,
                seconds_behind(self.versions[name], self._rows_epoch),
                name=name,
            )
            for name, rows in num_rows.items()
            if name in self.versions
        ]

    def run_epoch(
        self,
        epoch: int,
        sources: Set[str],
        apply: Callable[[], list[CatalogView]],
        correct: Callable[[], frozenset[str]],
        changes: Callable[[], Mapping[str, ChangeSet]],
        follow: RunWork,
        written: Callable[[], None] = lambda: None,
    ) -> EpochViews:
        """Does the work of an epoch, and makes its record.

        Args:
            sources: the sources that have new rows.
            apply: takes groups over, by `regroup`, and writes the new rows into the views, by `write`; returns the
                views that the epoch creates.
            correct: replaces the rows of corrected files in the views; returns the sources of the files.
            changes: name → changes of each view over sources in this epoch, of those that other views read.
            follow: does the work on some views over views.
            written: waits until all versions are written; views whose rows cannot be written fail.
        """
        ended = self._end_dropped()
        before = dict(self.versions)
        created = apply()
        corrected = correct()
        restarted = self._backfills.restart(corrected)
        created = [each for each in created if each.name not in restarted]
        self._dropped.update(self._backfills.take_restarted())
        created += self._show_complete(epoch)
        created += self._show_recomputed(epoch)
        created += self._follow(epoch, changes(), follow)
        written()
        created += self._share(epoch)
        stopped, created = self._stop(epoch, before, created)
        dropped = tuple(sorted({*ended, *self._end_dropped()}))
        self._new.clear()
        changed = corrected.union(sources)
        self.ingested.update(changed)
        changed = changed.union(self._changed_by_time(before))
        self._epoch = epoch
        if changed or not self._rows_epoch:
            self._rows_epoch = epoch
        self._full.on_rows(changed)
        self._begin_computations()
        unshown = self._backfills.recorded() | self._full.recorded(epoch) | self._derived.recorded(epoch)
        kept_for_others = self.shared.without_own_name()
        views = {name: each for name, each in self.versions.items() if name not in kept_for_others}
        created = [each for each in created if each.name not in kept_for_others]
        return EpochViews(views | unshown, tuple(created), dropped, (), stopped)

    def _changed_by_time(self, before: Mapping[str, ViewVersion]) -> set[str]:
        """The sources of views with filters by the time that an epoch has changed.

        Args:
            before: the versions before the epoch.
        """
        timed = {name: each.plan for name, each in self._planned.items() if each.plan.has_temporal_filter}
        return {
            source
            for name, plan in timed.items()
            if name in before and name in self.versions and before[name].datasets != self.versions[name].datasets
            for source in plan.sources
        }

    def regroup(self, epoch: int, make: Callable[[ViewPlan], GroupedView], run: RunWork) -> list[CatalogView]:
        """Makes the views that take over the groups of those that they replace; they follow from this epoch on.

        Args:
            make: makes the maintenance of a view.
            run: does all of the work, in any order; a view that fails has no version.

        Returns:
            The views that the epoch creates.
        """
        regrouped, self._regrouped = self._regrouped, {}
        views: dict[str, GroupedView] = {}
        parents = self._parents({})

        def take_over(plan: ViewPlan, before: ViewPlan) -> ViewVersion:
            view = views[plan.name] = make(plan)
            return self._take_over(epoch, plan, before, view, parents)

        work = {
            name: partial(take_over, each.plan, each.before.plan)
            for name, each in regrouped.items()
            if each.before is not None
        }
        versions = run(work)
        for name, version in versions.items():
            plan = regrouped[name].plan
            if version.name != name:
                self._derived.begin(self._epoch, plan, views[name], version, parents)
                self._rebuilt.add(name)
                continue
            (self._derived.add if plan.parents else self._adopt)(plan, views[name])
            self._maintained.add(name)
            self.versions[name] = version
        return [regrouped[name].catalog_view(version.name, epoch) for name, version in versions.items()]

    def _take_over(
        self, epoch: int, plan: ViewPlan, before: ViewPlan, view: GroupedView, parents: Mapping[str, Parent]
    ) -> ViewVersion:
        """Makes a view of the groups of another one; its version has the name of a backfill if it lacks measures."""
        version = view.take_over(epoch, before, self.versions[plan.name])
        if not view.lacks:
            return version
        completed = self._derived.complete(self._epoch, plan, view, parents)
        return completed or replace(version, name=next_name(plan.name))

    @property
    def regrouped(self) -> list[ViewPlan]:
        """The plans of the views that the next epoch makes of the groups of those that they replace."""
        return [each.plan for each in self._regrouped.values()]

    def write(
        self,
        epoch: int,
        rows: EpochRows,
        blocks: Mapping[str, Sequence[Block]],
        work: Work,
        run: RunWork,
    ) -> list[CatalogView]:
        """Writes an epoch's new rows into all views.

        Args:
            blocks: source → the blocks of these rows.
            work: the work on the views that readers see, and on the stored rows.
            run: does all of the work, in any order; a view that fails has no version.

        Returns:
            The views that the epoch creates.
        """
        full_work = self._full.create_work(epoch)
        backfill_work = self._backfills.work(epoch, rows, blocks)
        new = [name for name in work if name not in self.versions and not is_stored_rows(name)]
        new += [name for name in self._backfills.not_created if name in backfill_work]
        new += full_work
        versions = run({**work, **full_work, **backfill_work})
        self.versions.update({name: versions[name] for name in work if name in versions})
        return [self._planned[base_name(name)].catalog_view(name, epoch) for name in new if name in versions]

    def next_due(self) -> Backfill | None:
        """Begins computations that are due.  Returns a backfill that can take a piece of history."""
        self._begin_computations()
        return self._backfills.next_due()

    def _follow(self, epoch: int, changes: Mapping[str, ChangeSet], run: RunWork) -> list[CatalogView]:
        """Takes the changes of the views over sources through those over views."""
        created = self._derived.follow(epoch, self._parents(changes), self.versions, run)
        self._maintained.update(name for name in created if name == base_name(name))
        self._dropped.update(self._derived.take_ended())
        return [self._planned[base_name(name)].catalog_view(name, epoch) for name in created]

    def _parents(self, changes: Mapping[str, ChangeSet]) -> dict[str, Parent]:
        """Name → parent, of the views that are maintained epoch by epoch, and of those that share their rows."""
        parents = {
            name: Parent(self._planned[name].plan, self.versions[name], changes.get(name))
            for name in self._maintained
            if name in self.versions
        }
        return parents | {name: parents[self.shared.representative(name)] for name in self._shareable()}

    def _shareable(self) -> set[str]:
        """The views that have the rows of another one which is maintained."""
        shown = self._maintained & self.versions.keys()
        return {name for name, representative in self.shared.followers() if representative in shown}

    def _share(self, epoch: int) -> list[CatalogView]:
        """Gives these views the datasets of the other ones.  Returns those that the epoch creates."""
        shareable = sorted(self._shareable())
        for name in shareable:
            self.versions[name] = replace(self.versions[self.shared.representative(name)], name=name)
        created = [self._planned[name].catalog_view(name, epoch) for name in shareable if name in self._unshared]
        self._unshared.difference_update(shareable)
        return created

    def _show_complete(self, epoch: int) -> list[CatalogView]:
        """Shows the backfills that are complete, from this epoch on."""
        created = []
        for complete in self._backfills.take_complete():
            name = complete.plan.name
            self._adopt(complete.plan, complete.view)
            self._maintained.add(name)
            self.versions[name] = complete.finished()
            self._dropped.add(next_name(name))
            created.append(self._planned[name].catalog_view(name, epoch, complete.missing))
        return created

    def _show_recomputed(self, epoch: int) -> list[CatalogView]:
        """Shows a recomputation that is over, from this epoch on."""
        try:
            finished = self._full.take_finished()
        except ViewFailedError as error:
            self.fail(error)
            return []
        if finished is None:
            return []
        name = finished.version.name
        self.versions[name] = finished.version
        if not finished.is_first:
            return []
        self._dropped.add(next_name(name))
        return [self._planned[name].catalog_view(name, epoch)]

    def _stop(
        self, epoch: int, before: Mapping[str, ViewVersion], created: Sequence[CatalogView]
    ) -> tuple[dict[str, Stopped], list[CatalogView]]:
        """Ends the maintenance of the failed views, and of those that a backfill replaces.

        Args:
            before: the versions before it.
            created: the views that it creates.

        Returns:
            The views that stand from now on, and those that the epoch creates.
        """
        failed, self._failures = self._failures, {}
        self._failed.update(failed)
        kept = [each for each in created if declared_name(each.name) not in failed]
        rebuilt = (self._rebuilt & before.keys()).difference((each.name for each in kept), self._dropped)
        self._rebuilt = set()
        stopped = {name: Stopped(self._stands_at(before[name])) for name in rebuilt}
        for name, failure in failed.items():
            version = before.get(name)
            stopped[name] = Stopped(0 if version is None else self._stands_at(version), failure.error)
            if version is None:
                assert failure.view is not None, "a view that cannot be analysed is recorded"
                version = self._create_empty(failure.view.plan, epoch)
                kept.append(failure.view.catalog_view(name, epoch))
            self.versions[name] = version
        return stopped, kept

    def _stands_at(self, version: ViewVersion) -> int:
        """The last epoch whose rows a version from before this epoch has."""
        return self._epoch if version.reflects_epoch is None else version.reflects_epoch

    def _end_dropped(self) -> set[str]:
        """Ends the views that were dropped so far; one of their names that the epoch creates is another view."""
        dropped, self._dropped = self._dropped, set()
        for name in dropped - self.shared.without_own_name():
            self.versions.pop(name, None)
        return dropped

    def _begin_computations(self) -> None:
        parents = self._parents({})
        rows = stored_versions(self.versions) | {name: each.version for name, each in parents.items()}
        self._full.begin_due(self._clock.monotonic(), self._rows_epoch, rows)
        self._derived.begin_due(self._epoch, parents)


def _is_same(failed: PlannedView | None, planned: PlannedView | None) -> bool:
    return failed is not None and planned is not None and planned.plan.identity == failed.plan.identity

"""The views that epochs record: the next epoch creates, changes, shows and ends some of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace

from actors.protocol.blocks import Block
from spark_bridge.changes.change_set import ChangeSet, Parent
from spark_bridge.changes.view import ShownView, View, seconds_behind
from spark_bridge.ingest.epoch_rows import EpochRows, EpochViews, Stopped
from spark_bridge.maintenance.backfill import Beginning, HistoryBackfill
from spark_bridge.maintenance.backfills import Backfills
from spark_bridge.maintenance.declaration import Declaration, Start
from spark_bridge.maintenance.derived_views import DerivedViews, RunWork, Work
from spark_bridge.maintenance.full_views import FullViews
from spark_bridge.maintenance.shared_views import SharedViews
from spark_bridge.maintenance.view_life import Cause, Transition, ViewLife, ViewLives, ViewState, log_transition
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
    is_internal_view,
    is_stored_rows,
    is_view,
    next_name,
    stored_versions,
)

_OVER = (ViewState.FAILING, ViewState.STALE, ViewState.DROPPING)
TIMERS_EVERY_S = 5.0
"""Rows that leave as time passes make an epoch of their own at most so often."""


class RecordedViews:
    """Decides the order of the work of an epoch, and what its record says of the views.

    `ViewLives` has the state of each view.  Backfills, and full views before their first recomputation, are recorded
    under a name with a dot, and readers do not see them.  The epoch that shows such a view ends that name.  The
    internal views of a query have names with dots too; they fail and end with the view.  Of internal views with the
    same rows one is maintained, see `SharedViews`.

    A view that fails keeps the version of the epoch before; a view without a version gets an empty one.  The record
    has the last epoch of its rows, as for a replaced view: only a backfill continues from there.

    A view that takes over the groups of the view that it replaces does so in the next epoch, before the rows of that
    epoch.  It is live from then on, unless the groups lack measures.

    Attributes:
        versions: name → last version of each view that readers see, and of the stored rows.
        ingested: the sources that have ingested rows.
        shared: the internal views that have the rows of others.

    Args:
        backfills: the views that lack ingested rows.
        full: the views that are recomputed as a whole.
        derived: the incremental views over other views.
        adopt: maintains a backfill that is complete epoch by epoch, from now on.
        create_empty: makes the dataset of a view that fails in its first epoch, without rows.
        clock: begins recomputations, and tells the time of the next epoch.
        observe: is called after each transition of a view.
        is_small: whether the rows of a view can be copied within an epoch.
    """

    def __init__(
        self,
        backfills: Backfills,
        full: FullViews,
        derived: DerivedViews,
        adopt: Callable[[ViewPlan, View], None],
        create_empty: Callable[[ViewPlan, int], ViewVersion],
        clock: Clock,
        observe: Callable[[Transition], None] = log_transition,
        is_small: Callable[[ViewVersion], bool] = lambda _: True,
    ) -> None:
        self._backfills, self._full, self._derived = backfills, full, derived
        self._adopt, self._clock = adopt, clock
        self.shared = SharedViews()
        self._create_empty, self._is_small = create_empty, is_small
        self._planned: Mapping[str, PlannedView] = {}
        self._lives = ViewLives(observe)
        self._begun: dict[str, ViewVersion] = {}
        self._ending: set[str] = set()
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
        self, definitions: Mapping[str, ViewDefinition], planned: Mapping[str, PlannedView], declaration: Declaration
    ) -> dict[str, ViewPlan]:
        """Replaces the set of views.  After an error, call `fail`, and this again.

        Args:
            definitions: name → definition of each declared view.
            planned: name → view, of those whose sources have schemas.
            declaration: the start of each of them.

        Returns:
            Name → plan of each view over sources that is maintained epoch by epoch and lacks no ingested rows.

        Raises:
            StorageError: a version cannot be opened.
            ViewFailedError: the maintenance of a view cannot be made.
        """
        self._planned = planned
        failing = self._still_failing(declaration)
        plans = {
            name: each.plan
            for name, each in planned.items()
            if declared_name(name) not in failing and declaration.starts[name] is not Start.STALE
        }
        self._share_rows(definitions, plans, declaration)
        self._start(declaration, plans, failing)
        self._ending.update(declaration.abandoned)
        own = {name: plan for name, plan in plans.items() if self.shared.representative(name) == name}
        return self._maintain(definitions, own, declaration)

    def _still_failing(self, declaration: Declaration) -> set[str]:
        """The views whose failure the next epoch records: those that are declared as they failed, or not analysable."""
        for name in declaration.names(Start.FAILS):
            self._fail(name, declaration.broken[name])
        return {
            name
            for name in self._lives.within(ViewState.FAILING)
            if declaration.starts.get(name) is Start.FAILS
            or _is_same(self._lives[name].failed, self._planned.get(name))
        }

    def _start(self, declaration: Declaration, plans: Mapping[str, ViewPlan], failing: Set[str]) -> None:
        """Moves each view to the state in which it starts.

        Args:
            declaration: the start of each view.
            plans: name → plan, without the failed views.
            failing: the views that keep their failure.
        """
        unwanted = set(declaration.abandoned)
        for name in self._lives:
            if declared_name(name) in failing and not is_view(name):
                unwanted.add(name)
            elif name not in {*declaration.starts, *unwanted} and self._lives.state(name) is not ViewState.DROPPING:
                self._lives.move(name, Cause.DECLARE, ViewLife(ViewState.ABSENT))
        self._leave([name for name in self._lives if name in unwanted])
        for name, start in declaration.starts.items():
            # The next epoch ends the internal view of a failed definition; a stale view has no internal view.
            ends = start is Start.STALE and not is_view(name) and self._lives.state(name) is ViewState.DROPPING
            if declared_name(name) not in failing and not ends:
                self._lives.move(name, Cause.DECLARE, self._life_of(name, start, plans.get(name)))

    def _life_of(self, name: str, start: Start, plan: ViewPlan | None) -> ViewLife:
        """The life of a view from its declaration on."""
        is_shared = self.shared.representative(name) != name
        match start:
            case Start.STALE:
                return ViewLife(ViewState.STALE if is_view(name) else ViewState.ABSENT)
            case Start.WAITS:
                return ViewLife(ViewState.WAITING, stops=name in self.versions)
            case Start.CONTINUES:
                return ViewLife(ViewState.LIVE)
            case Start.NEW if not is_shared and plan is not None and not plan.parents and plan.view_class != "full":
                return ViewLife(ViewState.DECLARED)
            case Start.NEW:
                return ViewLife(ViewState.BACKFILLING)
        # The view that it replaces is shown as it is until the backfill is complete.
        return ViewLife(ViewState.BACKFILLING, stops=name in self.versions)

    def _maintain(
        self, definitions: Mapping[str, ViewDefinition], plans: Mapping[str, ViewPlan], declaration: Declaration
    ) -> dict[str, ViewPlan]:
        """Gives each view with rows of its own to its kind of maintenance; result and errors as of `declare`."""
        full = {name: self._planned[name] for name, plan in plans.items() if plan.view_class == "full"}
        derived = {name: plan for name, plan in plans.items() if plan.parents and name not in full}
        of_sources = {name: plan for name, plan in plans.items() if name not in full and name not in derived}
        lacking = declaration.names(Start.BACKFILLS, Start.OF_GROUPS)
        backfills = {name: of_sources[name] for name in lacking if name in of_sources}
        # A backfill of another query, or of a dropped view, does not continue.
        begun = {name: each for name, each in self._begun.items() if name not in self._ending}
        beginnings = self._beginnings(plans, declaration)
        self._backfills.declare(definitions, backfills, begun, beginnings)
        self._full.declare(full, declaration.fresh, begun, self.versions)
        self._derived.declare(derived, declaration.fresh, begun, self.versions, self.shared, beginnings)
        self._begun = {}
        return {name: plan for name, plan in of_sources.items() if name not in backfills}

    def _beginnings(self, plans: Mapping[str, ViewPlan], declaration: Declaration) -> dict[str, Beginning]:
        """Name → stored rows with which a view begins."""
        groups = {
            name: Beginning(before.plan, self.versions[name], before.has_all)
            for name in declaration.names(Start.OF_GROUPS)
            if name in plans and (before := self._planned[name].before) is not None
        }
        own = {
            name: Beginning(plans[name], version, has_all=False, since=epoch)
            for name, epoch in declaration.resumable.items()
            if name in plans and (version := self.versions.get(name)) is not None and self._is_small(version)
        }
        return groups | own

    def _share_rows(
        self, definitions: Mapping[str, ViewDefinition], plans: Mapping[str, ViewPlan], declaration: Declaration
    ) -> None:
        """Chooses the internal views that are maintained for others."""
        for name in self.shared.without_own_name():
            self.versions.pop(name, None)
        begun = {base_name(name) for name in self._begun}.union(self._derived.unshown)
        begun.update(each.name for each in self._backfills.plans)
        apart = {name for name in plans if definitions[declared_name(name)].on_missing == "allow"}
        self.shared.declare(plans, apart.union(declaration.incomplete), declaration.fresh, begun)

    @property
    def followed(self) -> Set[str]:
        """The views that are maintained and whose changes others follow."""
        return {self.shared.representative(parent) for each in self._planned.values() for parent in each.plan.parents}

    @property
    def failing(self) -> frozenset[str]:
        """The views whose failure the next epoch records."""
        return frozenset(self._lives.within(ViewState.FAILING))

    @property
    def ending(self) -> Set[str]:
        """The recorded names that the next epoch ends."""
        return self._ending

    def drop(self, name: str) -> list[str]:
        """The next epoch ends a view: a maintained view, a stopped view or a backfill.

        Returns:
            The views that are maintained no longer, internal views among them.
        """
        names = [name, *self._internal_views_of(name)]
        self._ending.update(names)
        ended = self._let_go(names)
        self._leave(names)
        return ended

    def fail(self, error: ViewFailedError) -> list[str]:
        """The next epoch records that a view has failed, and with it those that follow it; a backfill of it ends.

        Args:
            error: names the view, its backfill, or an internal view.

        Returns:
            The views that are maintained no longer, internal views among them.
        """
        names = list[str]()
        for user in dict.fromkeys(map(declared_name, self.shared.names(base_name(error.view)))):
            if user in self._planned and self._lives.state(user) not in _OVER:
                names += self._fail(user, error.reason)
        for each, planned in self._planned.items():  # a view comes after its parents
            if not is_view(each) or self._lives.state(each) in (ViewState.STALE, ViewState.DROPPING):
                continue
            read = {*planned.plan.parents}.union(*(inner.parents for inner in planned.plan.inner))
            if failed := read.intersection(self._lives.within(ViewState.FAILING)):
                # A failing view has the error of its parent, which was raised in its own work, too.
                names += self._fail(each, f"view {min(failed)!r}, which it reads, has failed")
        return names

    def _fail(self, name: str, reason: str) -> list[str]:
        """Ends the maintenance of a view, and its internal views.  Returns the views that are maintained no longer."""
        internal = self._internal_views_of(name)
        self._ending.update(internal)
        ended = self._let_go([name, *internal])
        life = ViewLife(ViewState.FAILING, error=reason, failed=self._planned.get(name))
        self._lives.move(name, Cause.FAIL, life)
        self._leave(internal)
        return ended

    def _internal_views_of(self, name: str) -> list[str]:
        """The internal views of a view, declared or recorded."""
        names = {base_name(each) for each in (*self._planned, *self.versions) if declared_name(each) == name}
        return sorted(filter(is_internal_view, names))

    def _let_go(self, names: Sequence[str]) -> list[str]:
        """Ends the maintenance of views, and their backfills with the next epoch, unless others have their rows.

        Returns:
            The views that are maintained no longer.
        """
        ended = [each for name in names if (each := self.shared.leave(name)) is not None]
        for name in ended:
            for views in (self._backfills, self._full, self._derived):
                views.drop(name)
            self._ending.add(next_name(name))
            if not is_view(name):
                self._ending.add(name)  # its own view may have left before
        self._leave([name for name in ended if not is_view(name)])
        return ended

    def _leave(self, names: Sequence[str]) -> None:
        """Moves the views that the next epoch ends, except those whose rows others have."""
        kept = self.shared.without_own_name()
        for name in names:
            if name not in kept:
                self._lives.move(name, Cause.DROP, ViewLife(ViewState.DROPPING))

    @property
    def has_news(self) -> bool:
        """Whether the next epoch creates, shows, replaces, fails or ends a view, even without rows."""
        is_changed = bool(self._ending or self._lives.within(ViewState.DECLARED, ViewState.FAILING))
        is_changed = is_changed or bool(self._unshared(self._shareable()))
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
            apply: writes the new rows into the views, by `write`; returns the views that the epoch creates.
            correct: replaces the rows of corrected files in the views; returns the sources of the files.
            changes: name → changes of each view over sources in this epoch, of those that other views read.
            follow: does the work on some views over views.
            written: waits until all versions are written; views whose rows cannot be written fail.
        """
        ended = self._end_views()
        before = dict(self.versions)
        created = self._take_over(epoch, follow)
        created += self._show_complete(epoch, apply())
        corrected = correct()
        restarted = self._backfills.restart(corrected)
        created = [each for each in created if each.name not in restarted]
        self._ending.update(self._backfills.take_restarted())
        created += self._show_recomputed(epoch)
        created += self._follow(epoch, changes(), follow)
        written()
        created += self._share(epoch)
        stopped, created = self._stop(epoch, before, created)
        dropped = tuple(sorted({*ended, *self._end_views()}))
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

    def _take_over(self, epoch: int, run: RunWork) -> list[CatalogView]:
        """Creates the derived views that begin with the groups of the views that they replace."""
        made = self._derived.take_over(self._epoch, epoch, self._parents({}), run)
        for name in filter(is_view, made):
            self._go_live(name)
            self.versions[name] = made[name]
        return [self._planned[base_name(name)].catalog_view(name, epoch) for name in made]

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
        for name in self._lives.within(ViewState.DECLARED):
            if name in work and name in versions:
                self._go_live(name)
        return [self._planned[base_name(name)].catalog_view(name, epoch) for name in new if name in versions]

    def next_due(self) -> HistoryBackfill | None:
        """Begins computations that are due.  Returns a backfill that can take a piece of history."""
        self._begin_computations()
        return self._backfills.next_due()

    def _follow(self, epoch: int, changes: Mapping[str, ChangeSet], run: RunWork) -> list[CatalogView]:
        """Takes the changes of the views over sources through those over views."""
        created = self._derived.follow(epoch, self._parents(changes), self.versions, run)
        for name in created:
            if self._lives.state(name) is ViewState.BACKFILLING:  # neither internal nor failed meanwhile
                self._go_live(name)
        self._ending.update(self._derived.take_ended())
        return [self._planned[base_name(name)].catalog_view(name, epoch) for name in created]

    def _parents(self, changes: Mapping[str, ChangeSet]) -> dict[str, Parent]:
        """Name → parent, of the views that are maintained epoch by epoch, and of those that share their rows."""
        parents = {
            name: Parent(self._planned[name].plan, self.versions[name], changes.get(name)) for name in self._maintained
        }
        return parents | {name: parents[self.shared.representative(name)] for name in self._shareable()}

    def _shareable(self) -> set[str]:
        """The views that have the rows of another one which is maintained."""
        maintained = self._maintained
        return {name for name, representative in self.shared.followers() if representative in maintained}

    @property
    def _maintained(self) -> set[str]:
        """The views that are maintained epoch by epoch, under their own names, and that readers see."""
        return {
            name
            for name in self._lives.within(ViewState.LIVE)
            if name in self.versions
            and name in self._planned
            and self._planned[name].plan.view_class != "full"
            and self.shared.representative(name) == name
        }

    def _unshared(self, names: set[str]) -> list[str]:
        """Those of some views that share rows which readers do not see yet."""
        return sorted(names.intersection(self._lives.within(ViewState.BACKFILLING)))

    def _go_live(self, name: str) -> None:
        self._lives.move(name, Cause.EPOCH, ViewLife(ViewState.LIVE))

    def _share(self, epoch: int) -> list[CatalogView]:
        """Gives these views the datasets of the other ones.  Returns those that the epoch creates."""
        shareable = self._shareable()
        for name in sorted(shareable):
            self.versions[name] = replace(self.versions[self.shared.representative(name)], name=name)
        created = self._unshared(shareable)
        for name in created:
            self._go_live(name)
        return [self._planned[name].catalog_view(name, epoch) for name in created]

    def _show_complete(self, epoch: int, created: list[CatalogView]) -> list[CatalogView]:
        """Shows the backfills that are complete, from this epoch on.

        Args:
            created: the views that earlier steps of the epoch create.

        Returns:
            The views that it creates.
        """
        for complete in self._backfills.take_complete():
            name = complete.plan.name
            created = [each for each in created if each.name != next_name(name)]
            self._adopt(complete.plan, complete.view)
            self._go_live(name)
            self.versions[name] = complete.finished()
            self._ending.add(next_name(name))
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
        self._go_live(name)
        self._ending.add(next_name(name))
        return [self._planned[name].catalog_view(name, epoch)]

    def _stop(
        self, epoch: int, before: Mapping[str, ViewVersion], created: Sequence[CatalogView]
    ) -> tuple[dict[str, Stopped], list[CatalogView]]:
        """Ends the maintenance of the failed views, and of those that a backfill replaces.

        Args:
            before: the versions before it.
            created: the views that it creates.

        Returns:
            The views that stop, and the views that the epoch creates.
        """
        stopping = self._lives.take_stopping()
        failed = {name: self._lives[name] for name in self._lives.within(ViewState.FAILING)}
        for name in failed:
            self._lives.move(name, Cause.EPOCH, ViewLife(ViewState.STALE))
        kept = [each for each in created if declared_name(each.name) not in failed]
        rebuilt = (stopping & before.keys()).difference((each.name for each in kept), self._ending)
        stopped = {name: Stopped(self._last_epoch_of(before[name])) for name in rebuilt}
        for name, life in failed.items():
            version = before.get(name)
            stopped[name] = Stopped(0 if version is None else self._last_epoch_of(version), life.error)
            if version is None:
                assert life.failed is not None, "a view that cannot be analysed is recorded"
                version = self._create_empty(life.failed.plan, epoch)
                kept.append(life.failed.catalog_view(name, epoch))
            self.versions[name] = version
        return stopped, kept

    def _last_epoch_of(self, version: ViewVersion) -> int:
        """The last epoch whose rows a version from before this epoch has."""
        return self._epoch if version.reflects_epoch is None else version.reflects_epoch

    def _end_views(self) -> set[str]:
        """Ends the views that were dropped so far; one of their names that the epoch creates is another view."""
        ending, self._ending = self._ending, set()
        for name in ending - self.shared.without_own_name():
            self.versions.pop(name, None)
        for name in self._lives.within(ViewState.DROPPING):
            self._lives.move(name, Cause.EPOCH, ViewLife(ViewState.ABSENT))
        return ending

    def _begin_computations(self) -> None:
        parents = self._parents({})
        rows = stored_versions(self.versions) | {name: each.version for name, each in parents.items()}
        self._full.begin_due(self._clock.monotonic(), self._rows_epoch, rows)
        self._derived.begin_due(self._epoch, parents)


def _is_same(failed: PlannedView | None, planned: PlannedView | None) -> bool:
    return failed is not None and planned is not None and planned.plan.identity == failed.plan.identity

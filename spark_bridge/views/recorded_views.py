"""The views that epochs record: the next epoch creates, changes, shows and ends some of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, TypeAlias

from actors.protocol.blocks import Block
from spark_bridge.analysis.declaration import Declaration
from spark_bridge.analysis.planned_view import PlannedView
from spark_bridge.analysis.view_definition import ViewDefinition
from spark_bridge.analysis.view_plan import ViewPlan
from spark_bridge.hand_over.epoch_rows import EpochRows, EpochViews
from spark_bridge.views.backfill import Backfill
from spark_bridge.views.backfills import Backfills
from spark_bridge.views.full_views import FullViews
from spark_bridge.views.view import ShownView, seconds_behind
from state.clock import Clock
from state.tables.records import CatalogView, ViewVersion
from state.tables.stored_rows import base_name, is_stored_rows, next_name, stored_versions

if TYPE_CHECKING:
    from spark_bridge.views.view import View

Work: TypeAlias = Mapping[str, Callable[[], ViewVersion]]
"""Recorded name → the work that writes the next version of a view, or of stored rows."""


class RecordedViews:
    """Decides the order of the work of an epoch, and what its record says of the views.

    Backfills, and full views before their first recomputation, are recorded under a name with a dot, and hidden.  The
    epoch that shows such a view ends that name.

    Attributes:
        versions: name → last version of each view that readers see, and of the stored rows.
        ingested: the sources that have ingested rows.

    Args:
        backfills: the views that lack ingested rows.
        full: the views that are recomputed as a whole.
        adopt: maintains a backfill that is complete epoch by epoch, from now on.
        clock: begins recomputations.
    """

    def __init__(
        self, backfills: Backfills, full: FullViews, adopt: Callable[[ViewPlan, View], None], clock: Clock
    ) -> None:
        self._backfills, self._full, self._adopt, self._clock = backfills, full, adopt, clock
        self._planned: Mapping[str, PlannedView] = {}
        self._begun: dict[str, ViewVersion] = {}
        self._new: set[str] = set()
        self._dropped: set[str] = set()
        self._rows_epoch = 0
        self.versions: dict[str, ViewVersion] = {}
        self.ingested: set[str] = set()

    def open(self, views: Mapping[str, ViewVersion], epoch: int, ingested: Set[str]) -> None:
        """Continues from the record of the last committed epoch.

        Args:
            views: the versions that it records.
            epoch: its number.
            ingested: the sources that have ingested rows.
        """
        self.versions = {name: view for name, view in views.items() if view.pinned_epoch is None}
        self._begun = {name: view for name, view in views.items() if view.pinned_epoch is not None}
        self._rows_epoch, self.ingested = epoch, {*ingested}

    def declare(
        self,
        definitions: Mapping[str, ViewDefinition],
        planned: Mapping[str, PlannedView],
        declaration: Declaration,
    ) -> dict[str, ViewPlan]:
        """Replaces the set of views.

        Args:
            definitions: name → definition of each declared view.
            planned: name → view, of those whose sources have schemas.
            declaration: what each of them needs.

        Returns:
            Name → plan of each view that is maintained epoch by epoch and lacks no ingested rows.

        Raises:
            StorageError: a version cannot be opened.
        """
        plans = {name: each.plan for name, each in planned.items()}
        full = {name: each for name, each in planned.items() if each.plan.view_class == "full"}
        # The view that a backfill replaces is shown as it is until then.
        backfills = {name: plans[name] for name in declaration.backfills if name not in full}
        self._planned = planned
        self._new = {name for name in declaration.new if name not in full}
        self._dropped.update(declaration.abandoned)
        # A backfill of another query, or of a dropped view, does not continue.
        begun = {name: each for name, each in self._begun.items() if name not in self._dropped}
        self._backfills.declare(definitions, backfills, begun)
        self._full.declare(full, {*declaration.new, *declaration.backfills}, begun, self.versions)
        self._begun = {}
        return {name: plan for name, plan in plans.items() if name not in backfills and name not in full}

    def drop(self, name: str) -> None:
        """The next epoch ends a view: a maintained view, a frozen view or a backfill."""
        self._backfills.drop(name)
        self._full.drop(name)
        self._dropped.update([name, next_name(name)])

    @property
    def has_news(self) -> bool:
        """Whether the next epoch creates, shows, replaces or ends a view, even without rows."""
        return bool(self._new or self._dropped) or self._backfills.has_news or self._full.has_news

    def shown(self, num_rows: Mapping[str, int | None]) -> list[ShownView]:
        """Progress of the views that readers see.

        Args:
            num_rows: name → number of rows of each view; None if it is not known.
        """
        return [
            ShownView(
                name, self._planned[name].plan.view_class, rows, seconds_behind(self.versions[name], self._rows_epoch)
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
    ) -> EpochViews:
        """Does the work of an epoch, and makes its record.

        Args:
            epoch: its number.
            sources: the sources that have new rows.
            apply: writes the new rows into the views, by `write`; returns the views that the epoch creates.
            correct: replaces the rows of corrected files in the views; returns the sources of the files.
        """
        ended = self._end_dropped()
        created = apply()
        corrected = correct()
        restarted = self._backfills.restart(corrected)
        created = [each for each in created if each.name not in restarted]
        self._dropped.update(self._backfills.take_restarted())
        created += self._show_complete(epoch)
        created += self._show_recomputed(epoch)
        dropped = tuple(sorted({*ended, *self._end_dropped()}))
        self._new.clear()
        changed = corrected.union(sources)
        self.ingested.update(changed)
        if changed or not self._rows_epoch:
            self._rows_epoch = epoch
        self._full.on_rows(changed)
        self._begin_recomputation()
        views = {**self.versions, **self._backfills.recorded(), **self._full.recorded(epoch)}
        return EpochViews(views, tuple(created), dropped, ())

    def write(
        self,
        epoch: int,
        rows: EpochRows,
        blocks: Mapping[str, Sequence[Block]],
        work: Work,
        run: Callable[[Work], Mapping[str, ViewVersion]],
    ) -> list[CatalogView]:
        """Writes an epoch's new rows into all views.

        Args:
            epoch: its number.
            rows: its new rows.
            blocks: source → the blocks of these rows.
            work: the work on the views that readers see, and on the stored rows.
            run: does all of the work, in any order.

        Returns:
            The views that the epoch creates.
        """
        full_work = self._full.create_work(epoch)
        backfill_work = self._backfills.work(epoch, rows, blocks)
        new = [name for name in work if name not in self.versions and not is_stored_rows(name)]
        new += [name for name in self._backfills.not_created if name in backfill_work]
        new += full_work
        versions = run({**work, **full_work, **backfill_work})
        self.versions.update({name: versions[name] for name in work})
        return [self._planned[base_name(name)].catalog_view(name, epoch) for name in new]

    def next_due(self) -> Backfill | None:
        """Begins a recomputation that is due.  Returns a backfill that can take a piece of history."""
        self._begin_recomputation()
        return self._backfills.next_due()

    def _show_complete(self, epoch: int) -> list[CatalogView]:
        """Shows the backfills that are complete, from this epoch on."""
        created = []
        for complete in self._backfills.take_complete():
            name = complete.plan.name
            self._adopt(complete.plan, complete.view)
            self.versions[name] = complete.finished()
            self._dropped.add(next_name(name))
            created.append(self._planned[name].catalog_view(name, epoch, complete.missing))
        return created

    def _show_recomputed(self, epoch: int) -> list[CatalogView]:
        """Shows a recomputation that is over, from this epoch on."""
        finished = self._full.take_finished()
        if finished is None:
            return []
        name = finished.version.name
        self.versions[name] = finished.version
        if not finished.is_first:
            return []
        self._dropped.add(next_name(name))
        return [self._planned[name].catalog_view(name, epoch)]

    def _end_dropped(self) -> set[str]:
        """Ends the views that were dropped so far; one of their names that the epoch creates is another view."""
        dropped, self._dropped = self._dropped, set()
        for name in dropped:
            self.versions.pop(name, None)
        return dropped

    def _begin_recomputation(self) -> None:
        self._full.begin_due(self._clock.monotonic(), self._rows_epoch, stored_versions(self.versions))

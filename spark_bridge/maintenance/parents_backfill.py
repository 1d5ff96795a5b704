"""A backfill of a view over other views: computed at once from their rows, then brought up to date."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from spark_bridge.changes.change_set import ChangeLog, ChangeSet, Parent
from spark_bridge.datasets.index_audit import IndexAudit
from spark_bridge.ingest.epoch_rows import EpochRows
from spark_bridge.maintenance.backfill import Backfill, Beginning
from spark_bridge.plans.view_plan import ViewPlan
from state.tables.records import ViewVersion
from state.tables.stored_rows import next_name

_AT_ONCE_ROWS = 200_000
"""Rows of the parents up to which a view is computed within an epoch, as the new rows of any epoch are."""


class DerivedView(Protocol):
    """The datasets of one view over parents."""

    changes: ChangeLog

    def create(self, epoch: int, rows: EpochRows) -> ViewVersion: ...

    def open(self, version: ViewVersion) -> None: ...

    def apply(self, rows: EpochRows) -> ViewVersion: ...

    def correct(self, rows: Any) -> ViewVersion: ...

    @property
    def num_rows(self) -> int: ...

    def tidy(self, audit: IndexAudit | None) -> bool: ...


class RowsOfParents(Protocol):
    """The rows of parents, see `spark_bridge.maintenance.parent_rows.ParentRows`."""

    def all(self, plan: ViewPlan) -> EpochRows: ...

    def none(self) -> EpochRows: ...

    def count(self, plan: ViewPlan) -> int: ...

    def are_changed(self, plan: ViewPlan) -> bool: ...

    @property
    def time_us(self) -> int: ...

    def since(self, begun_us: int | None) -> RowsOfParents: ...


class ParentsBackfill(Backfill):
    """A backfill of a view over other views: the rows of its parents are its earlier rows.

    Few rows are computed within an epoch.  Many are computed in a thread, from the versions of one epoch; the changes
    since then are kept, and follow in the epoch that shows the view.

    Args:
        plan, view, version, beginning: as of `Backfill`.
    """

    def __init__(
        self,
        plan: ViewPlan,
        view: DerivedView,
        version: ViewVersion | None = None,
        beginning: Beginning | None = None,
    ) -> None:
        super().__init__(plan, view, version, beginning)
        self.work: Callable[[], ViewVersion] | None = None
        self.computed: Future[ViewVersion] | None = None
        self.begun_us = 0
        self._begun: dict[str, ViewVersion] = {}
        self._changes: dict[str, ChangeSet] = {}

    @property
    def is_computed(self) -> bool:
        return self.computed is not None and self.computed.done()

    def has_few(self, rows: RowsOfParents) -> bool:
        """True if its earlier rows can be computed within an epoch."""
        return rows.count(self.plan) <= _AT_ONCE_ROWS

    def create(self, epoch: int, rows: RowsOfParents) -> ViewVersion:
        """Makes the view with all rows of its parents."""
        version: ViewVersion = self.view.create(epoch, rows.all(self.plan))
        return version

    def create_of_groups(self, epoch: int, rows: RowsOfParents) -> ViewVersion:
        """Makes the view of the groups; the version has the name of a backfill if they lack measures over many rows.

        Args:
            rows: the rows of its parents in the epoch before.
        """
        version = self.take_over(epoch)
        if not self.lacks:
            return version
        return self._add(rows) if self.has_few(rows) else replace(version, name=next_name(self.plan.name))

    def begin(self, begun_us: int, parents: Mapping[str, Parent], rows: RowsOfParents) -> None:
        """Begins to keep the changes of its parents; the work on their rows before that may follow in the thread."""
        self._begun = {name: parents[name].version for name in self.plan.parents}
        self.begun_us, self.work = begun_us, partial(self._add, rows)

    def _add(self, rows: RowsOfParents) -> ViewVersion:
        """The version with all rows of its parents, in all aggregates or in the missing aggregates."""
        version: ViewVersion
        if self.lacks:
            version = self.view.complete(rows.all(replace(self.plan, columns=self.view.earlier_columns)))
        else:
            version = self.view.apply(rows.all(self.plan))
        return version

    def keep(self, parents: Mapping[str, Parent]) -> None:
        """Adds the changes of an epoch to those since the computation began."""
        for name in self.plan.parents:
            if (changes := parents[name].changes) is not None:
                known = self._changes.get(name)
                self._changes[name] = changes.held() if known is None else known.then(changes)

    def changed_parents(self, parents: Mapping[str, Parent]) -> dict[str, Parent]:
        """Its parents, with all changes since the computation began."""
        return {name: parents[name].since(self._begun[name], self._changes.get(name)) for name in self.plan.parents}

    def catch_up(self, rows: RowsOfParents) -> ViewVersion:
        """The version of the computed view, with the changes since the computation began."""
        assert self.computed is not None, "it is computed"
        version = self.computed.result()
        if rows.are_changed(self.plan):
            version = self.view.correct(rows)
        return version

"""Checks of the tables that follow views."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from state.tables.expectations import PUBLISHED, Gate
from state.tables.records import Head
from state.tables.stored_rows import base_name, declared_name
from tests.simulation.memory.memory_disk import MemoryDataset
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.world.published_tables import Items, ModelTable, items_of


class PublicationChecker:
    """Checks that a table has exactly the rows of the view at the epoch that it names, and names no epoch that an
    expectation holds back.

    Args:
        datasets: path → dataset of a view.
        views: the published views.
    """

    def __init__(self, datasets: Mapping[str, MemoryDataset], views: Collection[str]) -> None:
        self._datasets, self._views = datasets, views
        self._rows: dict[tuple[str, int], Items] = {}
        self._published: set[int] = set()
        self._last = dict.fromkeys(views, 0)

    def on_version(self, head: Head, gate: Gate) -> None:
        """Notes the rows of the published views at the next version of the store."""
        if not self._views:
            return
        self._published.add(_last_published(head, gate))
        for view in self._views:
            version = head.views.get(view)
            if version is not None and version.pinned_epoch is None:
                rows = self._datasets[version.path].rows(version.path, version.version)
                self._rows.setdefault((view, head.epoch), items_of(rows))

    def is_current(self, table: ModelTable, head: Head, gate: Gate) -> bool:
        """Whether a table has the rows of the last epoch that nothing holds back."""
        epoch = _last_published(head, gate)
        rows = self._rows.get((table.view, epoch))
        return rows is None or (bool(table.commits) and table.commits[-1].rows == rows)

    def names_last(self, table: ModelTable, head: Head, gate: Gate) -> bool:
        """True if a table names the last epoch that nothing holds back."""
        return table.epoch == _last_published(head, gate)

    def has_epoch(self, table: ModelTable, epoch: int) -> bool:
        """Whether a table has the rows of an epoch: it names this one or a later one, or one with the same rows."""
        if not table.commits:
            return False
        return (table.epoch or 0) >= epoch or table.commits[-1].rows == self._rows.get((table.view, epoch))

    def check(self, table: ModelTable) -> None:
        """Checks the last commit of a table."""
        commit = table.commits[-1]
        assert commit.published is not None, "it is a commit of a run"
        epoch = commit.published.epoch
        if epoch not in self._published:
            raise PromiseBroken("published", f"the table of {table.view} names epoch {epoch}, which is held back")
        if epoch < self._last[table.view]:
            raise PromiseBroken("published", f"the table of {table.view} goes back to epoch {epoch}")
        self._last[table.view] = epoch
        rows = self._rows.get((table.view, epoch))
        if rows is None:
            raise PromiseBroken("published", f"the table of {table.view} names epoch {epoch}, which does not have it")
        if rows != commit.rows:
            missing, more = rows - commit.rows, commit.rows - rows
            raise PromiseBroken(
                "published",
                f"the table of {table.view} at epoch {epoch} lacks {dict(missing)}, and has {dict(more)} too much",
            )


def is_building(view: str, recorded: Collection[str]) -> bool:
    """True if the backfill of a view, or of its new definition, is among the recorded names."""
    return any(each != base_name(each) and declared_name(each) == view for each in recorded)


def _last_published(head: Head, gate: Gate) -> int:
    """The last epoch that nothing holds back; 0 without one."""
    return head.tags.get(PUBLISHED, 0) if gate == "closed" else head.epoch

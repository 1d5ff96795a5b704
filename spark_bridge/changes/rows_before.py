"""The rows of a view before the changes that its readers follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import lance
import pyarrow as pa

from spark_bridge.changes.change_set import ChangeLog, Parent
from spark_bridge.changes.memory_tier import MemoryTier
from spark_bridge.datasets.look_ups import look_up
from spark_bridge.work_cost import count
from state.tables.epoch_trace import WorkCost
from state.tables.records import ViewVersion

Logs = Callable[[ViewVersion], ChangeLog]
"""Gives the changes of a view, of which this is the version."""
OpenVersion = Callable[[ViewVersion], lance.LanceDataset]
"""Opens the rows of a view at a recorded version."""


class FoundRows(Protocol):
    """Rows that are found by their keys."""

    def with_keys(self, by: str, keys: pa.Array, columns: list[str]) -> pa.Table:
        """The rows with some keys, in any order.

        Args:
            by: the column of the keys.
            keys: those that are wanted; a key may have no row, or many.
        """


class RowsBefore:
    """Finds them, in memory where they are kept, and else in the datasets.

    Args:
        open_version: opens the rows of a recorded version.
        logs: see `Logs`.
    """

    def __init__(self, open_version: OpenVersion, logs: Logs, tier: MemoryTier) -> None:
        self._open, self._logs, self._tier = open_version, logs, tier

    def of(self, parent: Parent) -> FoundRows:
        """All of them."""
        if parent.begun is not None:
            return _StoredRows(self._open(parent.begun))
        log = self._logs(parent.version)
        snapshot = log.snapshot
        assert snapshot is not None, "the sides of joins are projection views"
        kept = self._tier.rows(log, parent, snapshot)
        if kept is not None:
            return kept
        if parent.changes is None:
            return _StoredRows(snapshot())
        assert parent.changes.before is not None, "changes of one epoch have a handle on the rows before"
        return _StoredRows(parent.changes.before)

    def gone(self, parent: Parent) -> pa.Table:
        """Those that leave, with the columns of those that come."""
        changes = parent.changes
        assert changes is not None, "it has changes"
        if changes.gone is not None:
            return changes.gone
        if not len(changes.keys):
            return changes.added.schema.empty_table()
        names = changes.added.schema.names
        rows = self.of(parent).with_keys(parent.key_column, changes.keys, names)
        count(WorkCost(found=rows.num_rows))
        return rows.cast(changes.added.schema)


class _StoredRows:
    """The rows of a dataset, see `FoundRows`."""

    def __init__(self, dataset: lance.LanceDataset) -> None:
        self._dataset = dataset

    def with_keys(self, by: str, keys: pa.Array, columns: list[str]) -> pa.Table:
        return look_up(self._dataset, by, keys, list(dict.fromkeys([by, *columns]))).select(columns)

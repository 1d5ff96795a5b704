"""The rows of a view before the changes that its readers follow."""

from __future__ import annotations

from collections.abc import Callable

import lance
import pyarrow as pa

from spark_bridge.changes.change_set import Parent
from spark_bridge.datasets.view_table import look_up
from spark_bridge.work_cost import count
from state.lance.lance_access import open_dataset
from state.location import Location
from state.tables.epoch_trace import WorkCost
from state.tables.records import ViewVersion

Snapshot = Callable[[ViewVersion], lance.LanceDataset]
"""Gives a handle on the present rows of a view, of which this is the version."""


class RowsBefore:
    """Finds them.

    Args:
        root: the directory of the pipeline.
        snapshot: see `Snapshot`.
    """

    def __init__(self, root: Location, snapshot: Snapshot) -> None:
        self._root, self._snapshot = root, snapshot

    def of(self, parent: Parent) -> lance.LanceDataset:
        """A handle on all of them."""
        if parent.changes is None:
            return self._snapshot(parent.version)
        if parent.changes.before is not None:
            return parent.changes.before
        assert parent.begun is not None, "changes of one epoch have a handle on the rows before"
        return open_dataset(self._root.child(parent.begun.path), parent.begun.version)

    def gone(self, parent: Parent) -> pa.Table:
        """Those that leave, with the columns of those that come."""
        changes = parent.changes
        assert changes is not None, "it has changes"
        if changes.gone is not None:
            return changes.gone
        if not len(changes.keys):
            return changes.new.slice(0, 0)
        rows = look_up(self.of(parent), parent.key_column, changes.keys, changes.new.schema.names)
        count(WorkCost(found=rows.num_rows))
        return rows.select(changes.new.schema.names).cast(changes.new.schema)

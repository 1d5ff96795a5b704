"""The rows of windows: all of them, or those that an epoch changes.  Nobody stores them.

A window sees the rows of one key.  So the functions are computed again over all rows of each key that has a changed
row, before the epoch and after it, by one job; rows that are the same before and after are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from spark_bridge.analysis.computed_leaves import ROWS, WindowPlan
from spark_bridge.catalyst.catalyst import Catalyst
from spark_bridge.catalyst.leaves import LeafRows, graft
from spark_bridge.catalyst.planned_once import PlannedOnce
from spark_bridge.changes.all_rows import all_rows, for_large
from spark_bridge.changes.change_set import Parent, with_weights
from spark_bridge.changes.hot_keys import note_hottest
from spark_bridge.changes.rows_before import RowsBefore
from spark_bridge.changes.sides import Side, stored_names
from spark_bridge.hand_over.dataset_frame import WantedRows
from spark_bridge.work_cost import count
from state.location import Location
from state.tables.epoch_trace import WorkCost
from state.tables.group_key import group_keys
from state.tables.stored_rows import WEIGHT_FIELD


class WindowQueries:
    """The queries of windows, planned once.

    Args:
        catalyst: of the session.
    """

    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst, self._lock = catalyst, Lock()
        self._planned: WeakKeyDictionary[WindowPlan, PlannedOnce] = WeakKeyDictionary()

    def rows(self, window: WindowPlan, rows: pa.Table) -> pa.Table:
        """The rows of a window over rows with weights, which stay their last column."""
        with self._lock:
            planned = self._planned.get(window)
            if planned is None:
                planned = self._planned[window] = PlannedOnce(self._catalyst, window.plan)
        return planned.table(rows)


class TouchedRows:
    """Makes the rows of windows.

    Args:
        catalyst: of the session.
        root: the directory of the pipeline.
        parents: name → parent; the views with the rows below the windows are among them.
        before: finds their rows before the changes.
        queries: of all windows.
    """

    def __init__(
        self,
        catalyst: Catalyst,
        root: Location,
        parents: Mapping[str, Parent],
        before: RowsBefore,
        queries: WindowQueries,
    ) -> None:
        self._catalyst = catalyst
        self._root, self._parents, self._before, self._queries = root, parents, before, queries

    def changed(self, window: WindowPlan, columns: list[str]) -> pa.Table:
        """The rows that leave and those that come, with their weights at the end.

        Args:
            window: the window.
            columns: of its result that are wanted, in its order.
        """
        rows = Side.of(self._parents[window.rows], self._before)
        hashes = rows.hashes
        found = rows.rows_before(hashes)
        touched = with_weights(found.before, rows.rows_after(found, hashes))
        count(WorkCost(given=touched.num_rows))
        note_hottest(touched, np.arange(touched.num_rows), sorted(window.key))
        if not touched.num_rows:
            return self._queries.rows(window, touched).select([*columns, WEIGHT_FIELD.name])
        return _different(self._queries.rows(window, touched).select([*columns, WEIGHT_FIELD.name]))

    def all(self, window: WindowPlan, columns: list[str], values: Mapping[str, pa.Array]) -> tuple[LeafRows, int]:
        """All rows, or at least those with these values, and the size of the rows that they are made of, in bytes.

        Args:
            window: the window.
            columns: of its result that are wanted, in its order.
            values: column of the result → its values.
        """
        of_key = {name: stored for name, stored in window.columns if stored in window.key and stored is not None}
        wanted = {stored: values[name] for name, stored in of_key.items() if name in values}
        parent = self._parents[window.rows]
        rows, nbytes = all_rows(
            self._catalyst.spark, self._root, parent, stored_names(parent), WantedRows(values=wanted)
        )
        catalyst = for_large(self._catalyst, nbytes)
        frame = catalyst.frame(graft(catalyst, window.whole, window.leaves, {ROWS: rows}))
        return LeafRows.of_frame(frame.select(*columns)), nbytes


def _different(rows: pa.Table) -> pa.Table:
    """The rows without those that leave and come again, one for one.

    Args:
        rows: with their weights, -1 or 1, in the last column.
    """
    weights = rows.column(WEIGHT_FIELD.name).to_numpy()
    kinds = group_keys(rows.columns[:-1]).dictionary_encode().indices.to_numpy()
    net = np.bincount(kinds, weights, minlength=int(kinds.max(initial=-1)) + 1).astype(np.int64)
    order = np.lexsort((weights, kinds))
    of_same = kinds[order] * 2 + (weights[order] > 0)
    at = np.arange(len(order)) - np.searchsorted(of_same, of_same, "left")
    stays = np.empty(len(order), np.bool_)
    stays[order] = at < net[kinds[order]] * weights[order]
    return rows.filter(pa.array(stays))

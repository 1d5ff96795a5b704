"""The rows of windows: all of them, or those that an epoch changes.  Nobody stores them.

A window sees the rows of one key.  So the functions are computed again over all rows of each key that has a changed
row, before the epoch and after it, by one job; rows that are the same before and after are left out.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from spark_bridge.changes.change_set import with_weights
from spark_bridge.changes.equal_rows import different
from spark_bridge.changes.hot_keys import note_hottest
from spark_bridge.changes.parents import Parents
from spark_bridge.changes.sides import stored_names
from spark_bridge.engine.catalyst.leaves import LeafRows, graft
from spark_bridge.ingest.dataset_frame import WantedRows
from spark_bridge.plans.computed_leaves import ROWS, WindowPlan
from spark_bridge.work_cost import count
from state.tables.epoch_trace import WorkCost
from state.tables.stored_rows import WEIGHT_FIELD


class TouchedRows:
    """Makes the rows of windows.

    Args:
        parents: the views with the rows below the windows are among them.
    """

    def __init__(self, parents: Parents) -> None:
        self._parents = parents

    def changed(self, window: WindowPlan, columns: list[str]) -> pa.Table:
        """The rows that leave and those that come, with their weights at the end.

        Args:
            window: the window.
            columns: of its result that are wanted, in its order.
        """
        rows = self._parents.side(window.rows)
        hashes = rows.hashes
        found = rows.rows_before(hashes)
        touched = with_weights(found.before, rows.rows_after(found, hashes))
        count(WorkCost(given=touched.num_rows))
        note_hottest(touched, np.arange(touched.num_rows), sorted(window.key))
        computed = self._parents.queries.of(window).table(touched, window.schema)
        return different(computed.select([*columns, WEIGHT_FIELD.name]))

    def all(self, window: WindowPlan, columns: list[str], values: Mapping[str, pa.Array]) -> tuple[LeafRows, int]:
        """All rows, or at least those with these values, and the size of the rows that they are made of, in bytes.

        Args:
            window: the window.
            columns: of its result that are wanted, in its order.
            values: column of the result → its values.
        """
        of_key = {name: stored for name, stored in window.columns if stored in window.key and stored is not None}
        wanted = {stored: values[name] for name, stored in of_key.items() if name in values}
        names = stored_names(self._parents.by_name[window.rows])
        rows, nbytes = self._parents.all(window.rows, names, WantedRows(values=wanted))
        catalyst = self._parents.catalyst_for(nbytes)
        frame = catalyst.frame(graft(catalyst, window.whole, window.leaves, {ROWS: rows}))
        return LeafRows.of_frame(frame.select(*columns)), nbytes

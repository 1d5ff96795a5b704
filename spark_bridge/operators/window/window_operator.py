"""Windows by key: their rows, all of them or those that an epoch changes.  Nobody stores them.

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
from spark_bridge.changes.sides import stored_names
from spark_bridge.engine.catalyst.trees import Plan
from spark_bridge.engine.execution.leaves import LeafRows
from spark_bridge.ingest.dataset_frame import WantedRows
from spark_bridge.operators.cut import Cut
from spark_bridge.operators.operator import Operator, OperatorInput
from spark_bridge.operators.window.window_cut import KEYS, cut_window
from spark_bridge.operators.window.window_plan import WindowPlan
from spark_bridge.plans.operator_plan import ROWS
from spark_bridge.work_cost import count
from state.tables.epoch_trace import WorkCost
from state.tables.stored_rows import WEIGHT_FIELD


class WindowOperator(Operator[WindowPlan]):
    """Window functions by key, computed again for the keys that changed rows have."""

    plan_type, inner_rows = WindowPlan, (KEYS,)

    def cut(self, cut: Cut, plan: Plan) -> Plan | None:
        """See `cut_window`."""
        return cut_window(cut, plan)

    def changed(self, given: OperatorInput, plan: WindowPlan, columns: list[str]) -> tuple[LeafRows, int]:
        """All rows of the touched keys, before and after, as far as they differ.  See `Operator.changed`."""
        parents, window = given.parents, plan
        rows = parents.side(window.rows)
        hashes = rows.hashes
        found = rows.rows_before(hashes)
        touched = with_weights(found.before, rows.rows_after(found, hashes))
        count(WorkCost(given=touched.num_rows))
        note_hottest(touched, np.arange(touched.num_rows), sorted(window.key))
        computed = parents.queries.of(window).table(touched, window.schema)
        changed = different(computed.select([*columns, WEIGHT_FIELD.name]))
        return LeafRows.of_table(parents.catalyst.spark, changed), changed.nbytes

    def all(
        self, given: OperatorInput, plan: WindowPlan, columns: list[str], values: Mapping[str, pa.Array]
    ) -> tuple[LeafRows, int]:
        """See `Operator.all`."""
        parents, window = given.parents, plan
        of_key = {name: stored for name, stored in window.columns if stored in window.key and stored is not None}
        wanted = {stored: values[name] for name, stored in of_key.items() if name in values}
        names = stored_names(parents.by_name[window.rows])
        rows, nbytes = parents.all(window.rows, names, WantedRows(values=wanted))
        found = parents.computed(window, "all", window.whole, window.leaves, {ROWS: rows}, columns, nbytes)
        return found, nbytes

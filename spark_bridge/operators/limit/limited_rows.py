"""The rows of limits: the first ones in an order, or those that an epoch changes.  Nobody stores them.

The first rows are kept with spare ones, see `first_rows`.  An epoch puts the rows that come in order among them, and
cuts at the last kept row: below it may be rows that are not kept.  With too few rows left, all are put in order again::

    kept before         - rows that leave, + rows that come        kept after
    9 8 | 7 6 5  ...    - 8 7                9 6 5  + 9 3          9 9 | 6 5          3 is below 5, like rows not kept
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_bridge.changes.change_set import Parent, with_weights
from spark_bridge.changes.equal_rows import different, without
from spark_bridge.changes.first_rows import First
from spark_bridge.changes.parents import Parents
from spark_bridge.engine.catalyst.arrow_frames import table_of_frame
from spark_bridge.engine.catalyst.leaves import LeafRows, graft
from spark_bridge.ingest.dataset_frame import WantedRows
from spark_bridge.plans.computed_leaves import POSITION_FIELD, ROWS, LimitPlan
from spark_bridge.work_cost import count
from state.tables.epoch_trace import WorkCost
from state.tables.records import ViewVersion
from state.tables.stored_rows import WEIGHT_FIELD

_SPARE_ROWS = 1_000
"""Rows that are kept behind those of a limit, at least: so many may leave until all rows are put in order again."""


class LimitedRows:
    """Makes the rows of limits.

    Args:
        parents: the views with the rows below the limits are among them.
    """

    def __init__(self, parents: Parents) -> None:
        self._parents = parents

    def changed(self, limit: LimitPlan, columns: list[str]) -> pa.Table:
        """The rows that leave and those that come, with their weights at the end.

        Args:
            limit: the limit.
            columns: of its result that are wanted, in its order.
        """
        parent = self._parents.by_name[limit.rows]
        before = self._at(limit, parent, parent.version_before)
        after = self._after(limit, parent, before)
        self._parents.first.keep(limit, parent.version, after)
        both = with_weights(_result(limit, before), _result(limit, after))
        return different(both.select([*columns, WEIGHT_FIELD.name]))

    def all(self, limit: LimitPlan, columns: list[str]) -> tuple[LeafRows, int]:
        """All rows, and the size of the rows that they are made of, in bytes.

        Args:
            limit: the limit.
            columns: of its result that are wanted, in its order.
        """
        parent = self._parents.by_name[limit.rows]
        first = self._at(limit, parent, parent.version)
        self._parents.first.keep(limit, parent.version, first)
        rows = _result(limit, first).select(columns)
        return LeafRows.of_table(self._parents.catalyst.spark, rows), rows.nbytes

    def _at(self, limit: LimitPlan, parent: Parent, version: ViewVersion) -> First:
        """The first rows at a version: those that are kept, if they are of this version, or computed from all rows."""
        return self._parents.first.of(limit, version) or self._computed(limit, parent, version)

    def _after(self, limit: LimitPlan, parent: Parent, before: First) -> First:
        """The first rows after the changes of an epoch."""
        changes, schema = parent.changes, parent.plan.schema
        assert changes is not None, "it has changes"
        gone, new = (each.select(schema.names).cast(schema) for each in (self._parents.gone(limit.rows), changes.new))
        rows = pa.concat_tables([without(before.rows, gone), new])
        after = self._in_order(limit, rows, None if before.are_all else before.rows.slice(before.rows.num_rows - 1))
        if after.num_rows < max(1, limit.end) and not before.are_all:
            return self._computed(limit, parent, parent.version)
        most = _most(limit)
        return First(after.slice(0, most), before.are_all and after.num_rows <= most)

    def _in_order(self, limit: LimitPlan, rows: pa.Table, last: pa.Table | None) -> pa.Table:
        """Rows in their order, without those behind this one if there is one; one more than are kept, at most."""
        among = rows if last is None else pa.concat_tables([rows, last])
        count(WorkCost(given=among.num_rows))
        numbers = pa.array(np.arange(among.num_rows), POSITION_FIELD.type)
        query = self._parents.queries.of(limit)
        found = query.table(among.append_column(POSITION_FIELD, numbers), pa.schema([POSITION_FIELD]))
        positions = found.column(0).combine_chunks()
        if last is not None:
            # Of rows that tie the last one has the highest number: it is behind its equals.
            positions = positions.slice(0, pc.index(positions, rows.num_rows).as_py())
        return rows.take(positions.slice(0, _most(limit) + 1))

    def _computed(self, limit: LimitPlan, parent: Parent, version: ViewVersion) -> First:
        """The first rows at a version, of all rows."""
        most = _most(limit)
        rows, nbytes = self._parents.all_at(version, parent.plan.schema.names, WantedRows())
        catalyst = self._parents.catalyst_for(nbytes)
        frame = catalyst.frame(graft(catalyst, limit.whole, limit.leaves, {ROWS: rows}))
        first = table_of_frame(frame.limit(most), parent.plan.schema)
        return First(first, first.num_rows < most)


def _most(limit: LimitPlan) -> int:
    """The number of rows that are kept."""
    return limit.end + max(_SPARE_ROWS, limit.end)


def _result(limit: LimitPlan, first: First) -> pa.Table:
    return first.rows.slice(limit.skipped, limit.end - limit.skipped)

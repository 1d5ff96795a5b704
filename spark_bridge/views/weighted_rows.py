"""A row-by-row view over joins, windows or limits: its rows come and leave by their values."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from spark_bridge.analysis.view_plan import ViewPlan
from spark_bridge.catalyst.catalyst import Catalyst
from spark_bridge.changes.change_set import ChangeSet
from spark_bridge.changes.equal_rows import without
from spark_bridge.changes.parent_rows import ParentRows
from spark_bridge.views.row_query import RowQuery
from spark_bridge.views.row_view import RowView
from state.location import Location
from state.tables.records import ViewVersion
from state.tables.stored_rows import HASH_FIELD, WEIGHT_FIELD


class WeightedRows(RowView):
    """Maintains one such view.

    Its dataset has the hash of each row in a hidden column.  A row that leaves is found by its hash, and of equal rows
    any one leaves.

    Args:
        catalyst: of the session.
        root: the directory of the pipeline.
        plan: of the view.
    """

    def __init__(self, catalyst: Catalyst, root: Location, plan: ViewPlan) -> None:
        columns = catalyst.items(plan.plan.output())
        hashed = catalyst.alias(catalyst.hash_of(columns), HASH_FIELD.name)
        with_hash = replace(
            plan, plan=catalyst.project([*columns, hashed], plan.plan), schema=plan.schema.append(HASH_FIELD)
        )
        super().__init__(catalyst, root, with_hash, None)
        self._changing = RowQuery(catalyst, with_hash, WEIGHT_FIELD)
        self._names = [HASH_FIELD.name, *plan.schema.names]
        self._are_alone = True

    def correct(self, rows: ParentRows) -> ViewVersion:
        """Takes out the rows that leave, and adds those that come.

        Raises:
            CommitRefusedError: another process has written to the view.
        """
        changed = self._changing.over(rows.both(self._plan, weighted=True)).table()
        is_gone = pc.equal(changed.column(WEIGHT_FIELD.name), -1)
        changed = changed.select(self._names)
        gone, new = changed.filter(is_gone), changed.filter(pc.invert(is_gone))
        if not changed.num_rows:
            return self._version()
        before, begun = self._snapshot() if self.changes.is_kept else None, self._table.version
        hashes = pc.unique(gone.column(0).combine_chunks())
        stored = self._stored(hashes, gone)
        is_touched = pc.is_in(new.column(0), value_set=hashes)
        left = without(pa.concat_tables([stored, new.filter(is_touched)]), gone)
        present = pa.concat_tables([left, new.filter(pc.invert(is_touched))])
        self._table.exchange(hashes, present.select([*self._names[1:], self._names[0]]))
        self.changes.note(ChangeSet(hashes, stored, present, before, begun))
        return self._version()

    def _stored(self, hashes: pa.Array, gone: pa.Table) -> pa.Table:
        """The stored rows with these hashes, which need not be read if none but those that leave have them."""
        if self._are_alone:
            self._are_alone = self._table.count_of(hashes) == gone.num_rows
        return gone if self._are_alone else self._table.rows_of(hashes, self._names)

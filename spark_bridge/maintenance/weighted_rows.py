"""A projection view over joins, windows or limits: its rows are inserted and deleted by their values."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from spark_bridge.changes.change_set import ChangeSet
from spark_bridge.changes.equal_rows import without
from spark_bridge.datasets.dataset_writer import NewRows, has_rows
from spark_bridge.datasets.result_rows import Result, new_rows
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.maintenance.parent_rows import ParentRows
from spark_bridge.maintenance.row_view import RowQuery, RowView
from spark_bridge.operators.join.join_plan import JoinPlan
from spark_bridge.plans.view_plan import ViewPlan
from state.location import Location
from state.tables.records import ViewVersion
from state.tables.stored_rows import HASH_FIELD, WEIGHT_FIELD


class WeightedRows(RowView):
    """Maintains one such view.

    Its dataset has the hash of each row in a hidden column.  A row that leaves is found by its hash, and of equal rows
    any one leaves.

    Args:
        root: the directory of the pipeline.
    """

    def __init__(self, catalyst: Catalyst, root: Location, plan: ViewPlan) -> None:
        columns = catalyst.trees.items(plan.plan.output())
        hashed = catalyst.expressions.alias(catalyst.expressions.hash_of(columns), HASH_FIELD.name)
        with_hash = replace(
            plan, plan=catalyst.plans.project([*columns, hashed], plan.plan), schema=plan.schema.append(HASH_FIELD)
        )
        super().__init__(catalyst, root, with_hash, None)
        self._changing = RowQuery(catalyst, with_hash, WEIGHT_FIELD)
        self._names, self._stored_names = [HASH_FIELD.name, *plan.schema.names], with_hash.schema.names
        # Where rows of a side have expired, a row may leave that was not there, and come again.
        self._expires = any(isinstance(leaf, JoinPlan) and leaf.between for leaf in plan.computed.values())
        self._are_alone = not self._expires

    def correct(self, rows: ParentRows) -> ViewVersion:
        """Takes out the rows that leave, and adds those that come.

        Raises:
            CommitRefusedError: another process has written to the view.
        """
        changed = self._changing.over(rows.both(self._plan, weighted=True))
        if rows.are_large(self._plan) and not self._expires:
            gone, new = self._gone_and_new_by_tasks(changed)
        else:
            gone, new = _gone_and_new(changed.table())
        gone = gone.select(self._names)
        before, begun = self._snapshot() if self.changes.is_kept else None, self._table.version
        hashes = pc.unique(gone.column(0).combine_chunks())
        if not len(hashes) and not has_rows(new):
            return self._version()
        stored = self._stored(hashes, gone)
        if isinstance(new, pa.Table):
            is_touched = pc.is_in(new.column(HASH_FIELD.name), value_set=hashes)
            left = without(pa.concat_tables([stored, new.filter(is_touched).select(self._names)]), gone)
            present = pa.concat_tables([left.select(self._stored_names), new.filter(pc.invert(is_touched))])
        else:
            left = without(stored, gone).select(self._stored_names)
            present = [*self._table.staged(left), *new]
        self._table.exchange(hashes, present)
        if before is not None:
            self.changes.note(ChangeSet(hashes, stored, self._added(present, before, self._names), before, begun))
        return self._version()

    def _stored(self, hashes: pa.Array, gone: pa.Table) -> pa.Table:
        """The stored rows with these hashes, which need not be read if none but those that leave have them."""
        if self._are_alone:
            self._are_alone = self._table.count_of(hashes) == gone.num_rows
        return gone if self._are_alone else self._table.rows_of(hashes, self._names)

    def _gone_and_new_by_tasks(self, changed: Result) -> tuple[pa.Table, NewRows]:
        """The rows that leave, and those that come, which tasks write."""
        weight, names = F.col(WEIGHT_FIELD.name), self._stored_names
        gone = changed.query(lambda rows: rows.where(weight == -1), names).table()
        return gone, new_rows(self._table, changed.query(lambda rows: rows.where(weight == 1), names))


def _gone_and_new(changed: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows that leave, and those that come, without their weights."""
    is_gone = pc.equal(changed.column(WEIGHT_FIELD.name), -1)
    rows = changed.drop_columns(WEIGHT_FIELD.name)
    return rows.filter(is_gone), rows.filter(pc.invert(is_gone))

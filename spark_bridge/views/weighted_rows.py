"""A row-by-row view over joins, windows or limits: its rows come and leave by their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_bridge.analysis.view_plan import ViewPlan
from spark_bridge.catalyst.arrow_frames import frame_of_table
from spark_bridge.catalyst.catalyst import Catalyst
from spark_bridge.changes.change_set import ChangeSet
from spark_bridge.changes.equal_rows import without
from spark_bridge.changes.parent_rows import ParentRows
from spark_bridge.datasets.result_rows import Result, new_rows
from spark_bridge.datasets.view_table import NewRows, ViewTable, has_rows
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
        self._names, self._stored_names = [HASH_FIELD.name, *plan.schema.names], with_hash.schema.names

    def correct(self, rows: ParentRows) -> ViewVersion:
        """Takes out the rows that leave, and adds those that come.

        Raises:
            CommitRefusedError: another process has written to the view.
        """
        result = self._changing.over(rows.both(self._plan, weighted=True))
        is_large = rows.are_large(self._plan)
        changed = _ByTasks(self._catalyst, self._table, result) if is_large else _InHand(result.table())
        before, begun = self._snapshot() if self.changes.is_kept else None, self._table.version
        gone = changed.gone(self._names)
        hashes = pc.unique(gone.column(0).combine_chunks())
        stored = self._table.rows_of(hashes, self._names)
        touched, others = changed.new(self._stored_names, hashes)
        left = without(pa.concat_tables([stored, touched.select(self._names)]), gone).select(self._stored_names)
        present = _together(self._table, left, others)
        if len(hashes) or has_rows(present):
            self._table.exchange(hashes, present)
            if before is not None:
                added = self._added(present, before, self._names)
                self.changes.note(ChangeSet(hashes, stored, added, before, begun))
        return self._version()


class _Changed(Protocol):
    """The rows that leave and those that come, with their weights."""

    def gone(self, names: Sequence[str]) -> pa.Table:
        """Some columns of the rows that leave."""

    def new(self, names: Sequence[str], hashes: pa.Array) -> tuple[pa.Table, NewRows]:
        """Some columns of the rows that come: of those with one of these hashes, and of the others."""


class _InHand:
    """A table of them, see `_Changed`."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows
        self._is_gone = pc.equal(rows.column(WEIGHT_FIELD.name), -1)

    def gone(self, names: Sequence[str]) -> pa.Table:
        return self._rows.filter(self._is_gone).select(names)

    def new(self, names: Sequence[str], hashes: pa.Array) -> tuple[pa.Table, NewRows]:
        rows = self._rows.filter(pc.invert(self._is_gone)).select(names)
        is_touched = pc.is_in(rows.column(HASH_FIELD.name), value_set=hashes)
        return rows.filter(is_touched), rows.filter(pc.invert(is_touched))


class _ByTasks:
    """A result that tasks compute, see `_Changed`: they write the new rows that no other row can be equal to."""

    def __init__(self, catalyst: Catalyst, table: ViewTable, result: Result) -> None:
        self._catalyst, self._table, self._result = catalyst, table, result

    def gone(self, names: Sequence[str]) -> pa.Table:
        return self._with_weight(-1).of(names).table()

    def new(self, names: Sequence[str], hashes: pa.Array) -> tuple[pa.Table, NewRows]:
        new = self._with_weight(1).of(names)
        if not len(hashes):
            return new.schema.empty_table(), new_rows(self._table, new)
        known = F.broadcast(frame_of_table(self._catalyst.spark, pa.table([hashes], schema=pa.schema([HASH_FIELD]))))
        touched, others = (
            new.under(partial(DataFrame.join, other=known, on=HASH_FIELD.name, how=how)).of(names)
            for how in ("left_semi", "left_anti")
        )
        return touched.table(), new_rows(self._table, others)

    def _with_weight(self, weight: int) -> Result:
        return self._result.under(lambda frame: frame.where(F.col(WEIGHT_FIELD.name) == weight))


def _together(table: ViewTable, rows: pa.Table, others: NewRows) -> NewRows:
    if isinstance(others, pa.Table):
        return pa.concat_tables([rows, others])
    return [*table.staged(rows), *others]

"""The rows of a join: all of them, or those that an epoch changes.  Nobody stores them.

A row of one side finds its partners by the hash of its key, in `__sw_join`.  Equal hashes of different keys do no harm:
the condition of the join is computed by Spark's expressions, over the rows that meet.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame

from spark_bridge.changes.parents import Parents
from spark_bridge.changes.sides import stored_names
from spark_bridge.engine.catalyst.leaves import LeafRows, graft, with_weight
from spark_bridge.ingest.dataset_frame import WantedRows
from spark_bridge.operators.join.joined_changes import changed_rows
from spark_bridge.operators.join.large_sides import LargeSide, few_hashes, terms
from spark_bridge.plans.computed_leaves import LEFT, RIGHT, JoinPlan
from state.tables.stored_rows import JOIN_FIELD


class JoinedRows:
    """Makes the rows of joins.

    Args:
        parents: the sides of the joins are among them.
    """

    def __init__(self, parents: Parents) -> None:
        self._parents = parents

    def changed(self, join: JoinPlan, columns: list[str]) -> tuple[LeafRows, int]:
        """The rows that leave and those that come, with their weights at the end, and the size of what is read.

        Args:
            join: the join.
            columns: of its result that are wanted, in its order.
        """
        if self._parents.are_large(join.sides):
            return self._changed_by_tasks(join, columns)
        left, right = map(self._parents.side, join.sides)
        rows = changed_rows(join, columns, left, right, self._parents.queries)
        return LeafRows.of_table(self._parents.catalyst.spark, rows), rows.nbytes

    def _changed_by_tasks(self, join: JoinPlan, columns: list[str]) -> tuple[LeafRows, int]:
        """The same, of rows that tasks read and join."""
        left, right = (LargeSide(self._parents, name) for name in join.sides)
        nbytes = left.nbytes + right.nbytes
        catalyst = self._parents.catalyst_for(nbytes)
        changed = list[DataFrame]()
        for weight, of_left, of_right in terms(join.kind, left, right):
            rows = graft(catalyst, join.plan, join.leaves, {LEFT: of_left, RIGHT: of_right})
            changed.append(with_weight(catalyst.frame(rows).select(*columns), weight))
        return LeafRows.of_frame(reduce(DataFrame.union, changed)), nbytes

    def all(self, join: JoinPlan, columns: list[str], values: Mapping[str, pa.Array]) -> tuple[LeafRows, int]:
        """All rows, or at least those with these values, and the size of the rows that they are made of, in bytes.

        Args:
            join: the join.
            columns: of its result that are wanted, in its order.
            values: column of the result → its values.
        """
        frames, nbytes = dict[str, LeafRows](), 0
        wanted = {side: _wanted(join, side, values) for side in (LEFT, RIGHT)}
        hashes: pa.Array | None = None
        for side in sorted(wanted, key=lambda each: not wanted[each]):
            name = join.sides[side == RIGHT]
            stored, known = stored_names(self._parents.by_name[name]), dict[str, pa.Array](wanted[side])
            if hashes is not None:
                known[JOIN_FIELD.name] = hashes  # only rows that meet those of the other side
            tells = bool(wanted[side]) and hashes is None
            columns_there = [*stored, JOIN_FIELD.name] if tells else stored
            rows, size = self._parents.all(name, columns_there, WantedRows(values=known))
            frames[side] = self._without_hashes(rows) if tells else rows
            hashes = few_hashes(rows.few) if tells and rows.few is not None else None
            nbytes += size
        catalyst = self._parents.catalyst_for(nbytes)
        frame = catalyst.frame(graft(catalyst, join.plan, join.leaves, frames))
        return LeafRows.of_frame(frame.select(*columns)), nbytes

    def _without_hashes(self, rows: LeafRows) -> LeafRows:
        if rows.few is None:
            return LeafRows.of_frame(rows.frame.drop(JOIN_FIELD.name))
        return LeafRows.of_table(self._parents.catalyst.spark, rows.few.drop_columns(JOIN_FIELD.name))


def _wanted(join: JoinPlan, side: str, values: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    """Column of a side → its values in the rows that are wanted."""
    # A row without a partner has nulls, and is wanted by the values of the other side.
    if join.kind != "inner" and (join.kind == "full" or side == RIGHT):
        return {}
    return {stored: values[column] for column, of, stored in join.columns if of == side and column in values and stored}

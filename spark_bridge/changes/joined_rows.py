"""The rows of a join: all of them, or those that an epoch changes.  Nobody stores them.

A row of one side finds its partners by the hash of its key, in `__sw_join`.  Equal hashes of different keys do no harm:
the condition of the join is computed by Spark's expressions, over the rows that meet.

With A the left side and B the right side, `-` and `+` for the rows that leave and come, and `0` for those that stay::

    inner      gone = A- · B before  +  A0 · B-        new = A+ · B after  +  A0 · B+
    full       gone = E(A before[K], B before[K])      new = E(A after[K], B after[K])     K = keys of all of them
    others     gone = E(A- + A0[K], B before)          new = E(A+ + A0[K], B after)        K = keys of B- and B+

`·` makes pairs, whose condition the view itself computes; E is the join.  The rules are those of incremental view
maintenance, see Griffin and Libkin, "Incremental maintenance of views with duplicates", SIGMOD 1995.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_bridge.analysis.computed_leaves import LEFT, RIGHT, JoinPlan
from spark_bridge.catalyst.leaves import LeafRows, graft
from spark_bridge.changes.change_set import with_weights
from spark_bridge.changes.hot_keys import note_hottest
from spark_bridge.changes.joined_positions import JoinedPositions, Positions, meeting
from spark_bridge.changes.leaf_queries import LeafQueries
from spark_bridge.changes.parents import Parents
from spark_bridge.changes.sides import Side, hashes_of, stored_names, with_hashes
from spark_bridge.hand_over.dataset_frame import WantedRows
from spark_bridge.work_cost import count
from state.tables.epoch_trace import WorkCost
from state.tables.stored_rows import JOIN_FIELD, WEIGHT_FIELD

_AT_ONCE = 1 << 18
_ANSWER = pa.schema([pa.field("are_partners", pa.bool_())])
_JOIN = JOIN_FIELD.name
_World = tuple[pa.Table, pa.Table]
"""Rows of the left side, and of the right side."""


class JoinedRows:
    """Makes the rows of joins.

    Args:
        parents: the sides of the joins are among them.
    """

    def __init__(self, parents: Parents) -> None:
        self._parents = parents

    def changed(self, join: JoinPlan, columns: list[str]) -> pa.Table:
        """The rows that leave and those that come, with their weights at the end.

        Args:
            join: the join.
            columns: of its result that are wanted, in its order.
        """
        left, right = map(self._parents.side, join.sides)
        if join.kind == "inner":
            rows = _pairs(join, columns, left, right)
        else:
            rows = with_weights(*(self._joined(join, columns, *world) for world in _worlds(join, left, right)))
        count(WorkCost(given=rows.num_rows))
        return rows

    def _joined(self, join: JoinPlan, columns: list[str], left: pa.Table, right: pa.Table) -> pa.Table:
        """The join of rows of both sides."""
        met = meeting(left.column(_JOIN), right.column(_JOIN))
        note_hottest(left, met[0], join.key)
        partners = _partners(self._parents.queries, join, left, right, met)
        return _taken(
            join, columns, left, right, JoinedPositions.of(join.kind, partners, left.num_rows, right.num_rows)
        )

    def all(self, join: JoinPlan, columns: list[str], values: Mapping[str, pa.Array]) -> tuple[LeafRows, int]:
        """All rows, or at least those with these values, and the size of the rows that they are made of, in bytes.

        Args:
            join: the join.
            columns: of its result that are wanted, in its order.
            values: column of the result → its values.
        """
        frames, nbytes = {}, 0
        for side, name in zip((LEFT, RIGHT), join.sides, strict=True):
            wanted = {
                stored: values[column]
                for column, of, stored in join.columns
                if of == side and column in values and stored
            }
            # A row without a partner has nulls, and is wanted by the values of the other side.
            is_kept = join.kind == "inner" or (join.kind != "full" and side == LEFT)
            known = WantedRows(values=wanted if is_kept else {})
            frames[side], size = self._parents.all(name, stored_names(self._parents.by_name[name]), known)
            nbytes += size
        catalyst = self._parents.catalyst_for(nbytes)
        frame = catalyst.frame(graft(catalyst, join.plan, join.leaves, frames))
        return LeafRows.of_frame(frame.select(*columns)), nbytes


def _partners(queries: LeafQueries, join: JoinPlan, left: pa.Table, right: pa.Table, met: Positions) -> Positions:
    """Those of the rows that meet whose condition is true, by Spark's own expressions in the driver."""
    are_partners, condition = np.zeros(len(met[0]), np.bool_), queries.of(join)
    for start in range(0, len(are_partners), _AT_ONCE):
        piece = slice(start, start + _AT_ONCE)
        rows = {LEFT: (left, met[0][piece])}
        arrays = []
        for side, column in join.condition_columns:
            table, at = rows.get(side, (right, met[1][piece]))
            arrays.append(table.column(column).take(pa.array(at)))
        pairs = pa.table(arrays, names=[f"c{number}" for number in range(len(arrays))])
        answer = condition.table(pairs, _ANSWER).column(0)
        are_partners[piece] = pc.fill_null(answer, False).to_numpy()
    return met[0][are_partners], met[1][are_partners]


def _pairs(join: JoinPlan, columns: list[str], left: Side, right: Side) -> pa.Table:
    partners = right.rows_before(left.hashes)
    staying = left.rows_before(right.hashes).stay
    parts = [
        (left.gone, partners.before, -1),
        (staying, right.gone, -1),
        (left.new, right.rows_after(partners, left.hashes), 1),
        (staying, right.new, 1),
    ]
    return pa.concat_tables(_meeting(join, columns, *each) for each in parts)


def _meeting(join: JoinPlan, columns: list[str], left: pa.Table, right: pa.Table, weight: int) -> pa.Table:
    """The pairs of rows with equal hashes."""
    left_at, right_at = meeting(left.column(_JOIN), right.column(_JOIN))
    note_hottest(left, left_at, join.key)
    pairs = _taken(join, columns, left, right, JoinedPositions(pa.array(left_at), pa.array(right_at)))
    return pairs.append_column(WEIGHT_FIELD, pa.array(np.full(len(left_at), weight), WEIGHT_FIELD.type))


def _taken(join: JoinPlan, columns: list[str], left: pa.Table, right: pa.Table, at: JoinedPositions) -> pa.Table:
    """Columns of a join by the positions of its rows."""
    rows = {LEFT: (left, at.left), RIGHT: (right, at.right)}
    arrays = []
    for name, side, stored in join.columns:
        if name in columns:
            table, positions = rows[side]
            arrays.append(at.exists if stored is None else table.column(stored).take(positions))
    return pa.table(arrays, names=columns)


def _worlds(join: JoinPlan, left: Side, right: Side) -> tuple[_World, _World]:
    """The rows of both sides before, and after, whose joins differ by the changes."""
    if join.kind == "full":
        hashes = pc.unique(pa.concat_arrays([left.hashes, right.hashes]))
        (left_gone, left_new), (right_gone, right_new) = (_both(each, hashes) for each in (left, right))
        return (left_gone, right_gone), (left_new, right_new)
    staying = left.rows_before(right.hashes).stay
    gone, new = pa.concat_tables([left.gone, staying]), pa.concat_tables([left.new, staying])
    partners = right.rows_before(hashes_of(gone, new))
    before = with_hashes(partners.before, hashes_of(gone))
    return (gone, before), (new, right.rows_after(partners, hashes_of(new)))


def _both(side: Side, hashes: pa.Array) -> tuple[pa.Table, pa.Table]:
    """The rows with these hashes, and those that change without a key: before and after."""
    found = side.rows_before(hashes)
    gone = pa.concat_tables([found.before, _without_key(side.gone)])
    return gone, pa.concat_tables([side.rows_after(found, hashes), _without_key(side.new)])


def _without_key(rows: pa.Table) -> pa.Table:
    return rows.filter(rows.column(_JOIN).is_null())

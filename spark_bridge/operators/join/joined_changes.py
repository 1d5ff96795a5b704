"""The rows of a join that an epoch changes, from the changed rows of its sides and their partners.

With A the left side and B the right side, `-` and `+` for the rows that leave and come, and `0` for those that stay::

    inner      gone = A- · B before  +  A0 · B-        new = A+ · B after  +  A0 · B+
    full       gone = E(A before[K], B before[K])      new = E(A after[K], B after[K])     K = keys of all of them
    others     gone = E(A- + A0[K], B before)          new = E(A+ + A0[K], B after)        K = keys of B- and B+

`·` makes pairs, whose condition the view itself computes; E is the join.  The rules are those of incremental view
maintenance, see Griffin and Libkin, "Incremental maintenance of views with duplicates", SIGMOD 1995.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_bridge.changes.change_set import with_weights
from spark_bridge.changes.hot_keys import note_hottest
from spark_bridge.changes.joined_positions import JoinedPositions, Positions, meeting
from spark_bridge.changes.sides import Pairs, Side, hashes_of, with_hashes
from spark_bridge.operators.join.join_plan import LEFT, RIGHT, JoinPlan
from spark_bridge.work_cost import count
from state.tables.epoch_trace import WorkCost
from state.tables.stored_rows import JOIN_FIELD, WEIGHT_FIELD

_JOIN = JOIN_FIELD.name
_AT_ONCE = 1 << 18
_ANSWER = pa.schema([pa.field("are_partners", pa.bool_())])
_World = tuple[pa.Table, pa.Table]
"""Rows of the left side, and of the right side."""


class Condition(Protocol):
    """The condition of a join over rows that meet, see `spark_bridge.engine.execution.planned_once.TableQuery`."""

    def table(self, rows: pa.Table, schema: pa.Schema) -> pa.Table: ...


class Conditions(Protocol):
    """The conditions of joins, see `spark_bridge.changes.leaf_queries.LeafQueries`."""

    def of(self, leaf: JoinPlan) -> Condition: ...


def changed_rows(join: JoinPlan, columns: list[str], left: Side, right: Side, conditions: Conditions) -> pa.Table:
    """The rows of a join that leave and those that come, with their weights at the end.

    Args:
        columns: of its result that are wanted, in its order.
        left: the left side, by the hash of its key.
        conditions: those of the joins; of an inner join the view itself computes it.
    """
    if join.kind == "inner":
        rows = pa.concat_tables(_with_weight(join, columns, each) for each in left.pairs(right))
    else:
        before, after = _worlds(join, left, right)
        rows = with_weights(*(_joined(join, columns, *world, conditions) for world in (before, after)))
    count(WorkCost(given=rows.num_rows))
    return rows


def _partners_of(conditions: Conditions, join: JoinPlan, left: pa.Table, right: pa.Table, met: Positions) -> Positions:
    """Those of the rows that meet whose condition is true, by Spark's own expressions in the driver."""
    are_partners, condition = np.zeros(len(met[0]), np.bool_), conditions.of(join)
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


def _joined(join: JoinPlan, columns: list[str], left: pa.Table, right: pa.Table, conditions: Conditions) -> pa.Table:
    """The join of rows of both sides."""
    met = meeting(left.column(_JOIN), right.column(_JOIN))
    note_hottest(left, met[0], join.key)
    partners = _partners_of(conditions, join, left, right, met)
    return _taken(join, columns, left, right, JoinedPositions.of(join.kind, partners, left.num_rows, right.num_rows))


def _with_weight(join: JoinPlan, columns: list[str], pairs: Pairs) -> pa.Table:
    left_at, right_at = pairs.at
    note_hottest(pairs.left, left_at, join.key)
    rows = _taken(join, columns, pairs.left, pairs.right, JoinedPositions(pa.array(left_at), pa.array(right_at)))
    return rows.append_column(WEIGHT_FIELD, pa.array(np.full(len(left_at), pairs.weight), WEIGHT_FIELD.type))


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

"""Joins: their rows, all of them or those that an epoch changes.  Nobody stores them.

A row of one side finds its partners by the hash of its key, in `__sw_join`.  Equal hashes of different keys do no harm:
the condition of the join is computed by Spark's expressions, over the rows that meet.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from spark_bridge.changes.parents import Parents
from spark_bridge.changes.sides import stored_names
from spark_bridge.engine.catalyst.trees import Plan
from spark_bridge.engine.execution.leaves import LeafRows, Leaves
from spark_bridge.ingest.dataset_frame import WantedRows
from spark_bridge.operators.cut import Cut
from spark_bridge.operators.join.join_cut import SIDES, cut_join
from spark_bridge.operators.join.join_plan import LEFT, RIGHT, JoinPlan
from spark_bridge.operators.join.joined_changes import changed_rows
from spark_bridge.operators.join.large_sides import LargeSide, few_hashes, terms
from spark_bridge.operators.operator import Operator, OperatorInput
from state.tables.stored_rows import JOIN_FIELD, WEIGHT_FIELD


class JoinOperator(Operator[JoinPlan]):
    """Joins, by the changed rows of their sides and the partners of these."""

    plan_type, inner_rows = JoinPlan, (SIDES,)

    def cut(self, cut: Cut, plan: Plan) -> Plan | None:
        """See `cut_join`."""
        return cut_join(cut, plan)

    def changed(self, given: OperatorInput, plan: JoinPlan, columns: list[str]) -> tuple[LeafRows, int]:
        """Changed rows with their partners before and after.  See `Operator.changed`."""
        parents, join = given.parents, plan
        if parents.are_large(join.sides):
            return _changed_by_tasks(parents, join, columns)
        left, right = map(parents.side, join.sides)
        rows = changed_rows(join, columns, left, right, parents.queries)
        return LeafRows.of_table(parents.catalyst.spark, rows), rows.nbytes

    def all(
        self, given: OperatorInput, plan: JoinPlan, columns: list[str], values: Mapping[str, pa.Array]
    ) -> tuple[LeafRows, int]:
        """See `Operator.all`."""
        parents, join = given.parents, plan
        frames, nbytes = dict[str, LeafRows](), 0
        wanted = {side: _wanted(join, side, values) for side in (LEFT, RIGHT)}
        hashes: pa.Array | None = None
        for side in sorted(wanted, key=lambda each: not wanted[each]):
            name = join.sides[side == RIGHT]
            stored, known = stored_names(parents.by_name[name]), dict[str, pa.Array](wanted[side])
            if hashes is not None:
                known[JOIN_FIELD.name] = hashes  # only rows that meet those of the other side
            tells = bool(wanted[side]) and hashes is None
            columns_there = [*stored, JOIN_FIELD.name] if tells else stored
            frames[side], size = parents.all(name, columns_there, WantedRows(values=known))
            rows = frames[side]
            hashes = few_hashes(rows.few) if tells and rows.few is not None else None
            nbytes += size
        return _joined(parents, join, frames, columns, nbytes), nbytes


def _changed_by_tasks(parents: Parents, join: JoinPlan, columns: list[str]) -> tuple[LeafRows, int]:
    """`JoinOperator.changed`, of rows that tasks read and join."""
    left, right = (LargeSide(parents, name) for name in join.sides)
    nbytes = left.nbytes + right.nbytes
    changed = [
        _joined(parents, join, {LEFT: of_left, RIGHT: of_right}, columns, nbytes).with_constant(
            parents.catalyst, WEIGHT_FIELD, weight
        )
        for weight, of_left, of_right in terms(join.kind, left, right)
    ]
    return LeafRows.together(parents.catalyst, changed), nbytes


def _joined(parents: Parents, join: JoinPlan, sides: Leaves, columns: list[str], nbytes: int) -> LeafRows:
    return parents.computed(join, "join", join.plan, join.leaves, sides, columns, nbytes)


def _wanted(join: JoinPlan, side: str, values: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    """Column of a side → its values in the rows that are wanted."""
    # A row without a partner has nulls, and is wanted by the values of the other side.
    if join.kind != "inner" and (join.kind == "full" or side == RIGHT):
        return {}
    return {stored: values[column] for column, of, stored in join.columns if of == side and column in values and stored}

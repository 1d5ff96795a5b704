"""Limits: the first rows in an order, or those that an epoch changes.  Nobody stores them.

The first rows are kept with spare ones, see `first_rows`.  An epoch puts the rows that come in order among them, and
cuts at the last kept row: below it may be rows that are not kept.  With too few rows left, all are put in order again::

    kept before         - rows that leave, + rows that come        kept after
    9 8 | 7 6 5  ...    - 8 7                9 6 5  + 9 3          9 9 | 6 5          3 is below 5, like rows not kept
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_bridge.changes.change_set import with_weights
from spark_bridge.changes.equal_rows import different, without
from spark_bridge.changes.parents import Parents
from spark_bridge.engine.catalyst.queries import analysed
from spark_bridge.engine.catalyst.trees import Plan
from spark_bridge.engine.execution.frame_queries import SEVERAL
from spark_bridge.engine.execution.leaves import LeafRows
from spark_bridge.ingest.dataset_frame import WantedRows
from spark_bridge.operators.cut import Cut
from spark_bridge.operators.limit.first_rows import First, FirstRows
from spark_bridge.operators.limit.limit_cut import ORDER, cut_limit
from spark_bridge.operators.limit.limit_plan import POSITION_FIELD, LimitPlan
from spark_bridge.operators.operator import Operator, OperatorInput
from spark_bridge.plans.operator_plan import ROWS
from spark_bridge.work_cost import count
from state.tables.epoch_trace import WorkCost
from state.tables.records import ViewVersion
from state.tables.stored_rows import WEIGHT_FIELD

_SPARE_ROWS = 1_000
"""Rows that are kept behind those of a limit, at least: so many may leave until all rows are put in order again."""


class LimitOperator(Operator[LimitPlan]):
    """Limits, by their first rows and some spare ones."""

    plan_type, inner_rows = LimitPlan, (ORDER,)

    def __init__(self) -> None:
        self._first = FirstRows()

    def cut(self, cut: Cut, plan: Plan) -> Plan | None:
        """See `cut_limit`."""
        return cut_limit(cut, plan)

    def changed(self, given: OperatorInput, plan: LimitPlan, columns: list[str]) -> tuple[LeafRows, int]:
        """The first rows before and after, as far as they differ.  See `Operator.changed`."""
        parents, limit = given.parents, plan
        parent = parents.by_name[limit.rows]
        before = self._at(parents, limit, parent.version_before)
        after = self._after(parents, limit, before)
        self._first.keep(limit, parent.version, after)
        both = with_weights(_result(limit, before), _result(limit, after))
        changed = different(both.select([*columns, WEIGHT_FIELD.name]))
        return LeafRows.of_table(parents.catalyst.spark, changed), changed.nbytes

    def all(
        self, given: OperatorInput, plan: LimitPlan, columns: list[str], values: Mapping[str, pa.Array]
    ) -> tuple[LeafRows, int]:
        """See `Operator.all`."""
        parents, limit = given.parents, plan
        parent = parents.by_name[limit.rows]
        first = self._at(parents, limit, parent.version)
        self._first.keep(limit, parent.version, first)
        rows = _result(limit, first).select(columns)
        return LeafRows.of_table(parents.catalyst.spark, rows), rows.nbytes

    def _at(self, parents: Parents, limit: LimitPlan, version: ViewVersion) -> First:
        """The first rows at a version: those that are kept, if they are of this version, or computed from all rows."""
        return self._first.of(limit, version) or self._computed(parents, limit, version)

    def _after(self, parents: Parents, limit: LimitPlan, before: First) -> First:
        """The first rows after the changes of an epoch."""
        parent = parents.by_name[limit.rows]
        changes, schema = parent.changes, parent.plan.schema
        assert changes is not None, "it has changes"
        gone, new = (each.select(schema.names).cast(schema) for each in (parents.gone(limit.rows), changes.new))
        rows = pa.concat_tables([without(before.rows, gone), new])
        after = _in_order(parents, limit, rows, None if before.are_all else before.rows.slice(before.rows.num_rows - 1))
        if after.num_rows < max(1, limit.end) and not before.are_all:
            return self._computed(parents, limit, parent.version)
        most = _most(limit)
        return First(after.slice(0, most), before.are_all and after.num_rows <= most)

    def _computed(self, parents: Parents, limit: LimitPlan, version: ViewVersion) -> First:
        """The first rows at a version, of all rows."""
        most, schema = _most(limit), parents.by_name[limit.rows].plan.schema
        rows, nbytes = parents.all_at(version, schema.names, WantedRows())
        catalyst = parents.catalyst_for(nbytes)
        query = parents.queries.planned(
            catalyst,
            limit,
            "first rows",
            lambda: analysed(catalyst.queries.frame(limit.whole).limit(most)),
            limit.leaves,
        )
        first = query.table({ROWS: rows}, schema, SEVERAL)
        return First(first, first.num_rows < most)


def _in_order(parents: Parents, limit: LimitPlan, rows: pa.Table, last: pa.Table | None) -> pa.Table:
    """Rows in their order, without those behind this one if there is one; one more than are kept, at most."""
    among = rows if last is None else pa.concat_tables([rows, last])
    count(WorkCost(given=among.num_rows))
    numbers = pa.array(np.arange(among.num_rows), POSITION_FIELD.type)
    query = parents.queries.of(limit)
    found = query.table(among.append_column(POSITION_FIELD, numbers), pa.schema([POSITION_FIELD]))
    positions = found.column(0).combine_chunks()
    if last is not None:
        # Of rows that tie the last one has the highest number: it is behind its equals.
        positions = positions.slice(0, pc.index(positions, rows.num_rows).as_py())
    return rows.take(positions.slice(0, _most(limit) + 1))


def _most(limit: LimitPlan) -> int:
    """The number of rows that are kept."""
    return limit.end + max(_SPARE_ROWS, limit.end)


def _result(limit: LimitPlan, first: First) -> pa.Table:
    return first.rows.slice(limit.skipped, limit.end - limit.skipped)

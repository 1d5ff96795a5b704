"""The condition of a join: whether two rows with equal hashes are partners."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_bridge.analysis.computed_leaves import LEFT, JoinPlan
from spark_bridge.changes.joined_positions import Positions
from spark_bridge.changes.leaf_queries import LeafQueries

_AT_ONCE = 1 << 18
_ANSWER = pa.schema([pa.field("are_partners", pa.bool_())])


def partners_of(queries: LeafQueries, join: JoinPlan, left: pa.Table, right: pa.Table, met: Positions) -> Positions:
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

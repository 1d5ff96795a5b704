"""The conditions of joins, compiled once: whether two rows with equal hashes are partners."""

from __future__ import annotations

from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_bridge.aggregation.driver_projection import DriverProjection
from spark_bridge.analysis.computed_leaves import LEFT, JoinPlan
from spark_bridge.catalyst.catalyst import Catalyst
from spark_bridge.changes.joined_positions import Positions

_AT_ONCE = 1 << 18
_ANSWER = pa.schema([pa.field("are_partners", pa.bool_())])


class JoinConditions:
    """Computes them, by Spark's own expressions in the driver.

    Args:
        catalyst: of the session.
    """

    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst, self._lock = catalyst, Lock()
        self._compiled: WeakKeyDictionary[JoinPlan, DriverProjection] = WeakKeyDictionary()

    def partners(self, join: JoinPlan, left: pa.Table, right: pa.Table, met: Positions) -> Positions:
        """Those of the rows that meet whose condition is true."""
        are_partners, projection = np.zeros(len(met[0]), np.bool_), self._projection(join)
        for start in range(0, len(are_partners), _AT_ONCE):
            piece = slice(start, start + _AT_ONCE)
            rows = {LEFT: (left, met[0][piece])}
            arrays = []
            for side, column in join.condition_columns:
                table, at = rows.get(side, (right, met[1][piece]))
                arrays.append(table.column(column).take(pa.array(at)))
            pairs = pa.table(arrays, names=[f"c{number}" for number in range(len(arrays))])
            answer = projection.run(pairs).column(0)
            are_partners[piece] = pc.fill_null(answer, False).to_numpy()
        return met[0][are_partners], met[1][are_partners]

    def _projection(self, join: JoinPlan) -> DriverProjection:
        with self._lock:
            if join not in self._compiled:
                leaf = join.condition.child()
                output, relation = self._catalyst.items(leaf.output()), self._catalyst.arrow_schema(leaf)
                self._compiled[join] = DriverProjection(self._catalyst, join.condition, output, relation, _ANSWER)
            return self._compiled[join]

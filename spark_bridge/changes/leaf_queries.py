"""The queries of operators: conditions of joins, windows, orders of limits, and others, each planned once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from threading import Lock
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import DataFrame

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Plan
from spark_bridge.engine.execution.frame_queries import FrameQueries
from spark_bridge.engine.execution.leaves import LeafRows
from spark_bridge.engine.execution.planned_once import PlannedOnce, TableQuery
from spark_bridge.plans.operator_plan import OperatorPlan, QueriedPlan


class LeafQueries:
    """Makes them when they are needed first."""

    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst, self._lock = catalyst, Lock()
        self._made: WeakKeyDictionary[QueriedPlan, TableQuery] = WeakKeyDictionary()
        self._planned: WeakKeyDictionary[OperatorPlan, dict[Hashable, PlannedOnce]] = WeakKeyDictionary()
        self._frames = FrameQueries()

    def of(self, leaf: QueriedPlan) -> TableQuery:
        """The condition of a join over rows that meet, an order of rows, or the query of another operator."""
        with self._lock:
            if leaf not in self._made:
                self._made[leaf] = TableQuery(self._catalyst, leaf.query)
            return self._made[leaf]

    def planned(
        self,
        catalyst: Catalyst,
        leaf: OperatorPlan,
        name: Hashable,
        make: Callable[[], Plan],
        leaves: Mapping[int, str],
    ) -> PlannedOnce:
        """A query of an operator over any number of rows; many take `SEVERAL` tasks.

        Args:
            catalyst: of the session whose number of partitions a shuffle has.
            name: of the query, unique within the operator.
            make: makes the analysed query, with empty leaves.
            leaves: id of a leaf's first attribute → its name.
        """
        with self._lock:
            planned, key = self._planned.setdefault(leaf, {}), (catalyst, name)
            if key not in planned:
                planned[key] = PlannedOnce(catalyst, make(), leaves)
            return planned[key]

    def of_frames(
        self, name: Hashable, make: Callable[..., DataFrame], *given: LeafRows, catalyst: Catalyst | None = None
    ) -> LeafRows:
        """The result of a query of DataFrames, see `FrameQueries.rows`.

        Args:
            catalyst: None for the session of the epochs.
        """
        return self._frames.rows(catalyst or self._catalyst, name, make, *given)

    def table(self, rows: LeafRows, schema: pa.Schema) -> pa.Table:
        """Rows in this process, see `FrameQueries.table`."""
        return self._frames.table(self._catalyst, rows, schema)

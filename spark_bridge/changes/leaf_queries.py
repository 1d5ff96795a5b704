"""The queries of operators: conditions of joins, windows, orders of limits, and others, each made once."""

from __future__ import annotations

from threading import Lock
from weakref import WeakKeyDictionary

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.execution.planned_once import TableQuery
from spark_bridge.plans.operator_plan import QueriedPlan


class LeafQueries:
    """Makes them when they are needed first."""

    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst, self._lock = catalyst, Lock()
        self._made: WeakKeyDictionary[QueriedPlan, TableQuery] = WeakKeyDictionary()

    def of(self, leaf: QueriedPlan) -> TableQuery:
        """The condition of a join over rows that meet, an order of rows, or the query of another operator."""
        with self._lock:
            if leaf not in self._made:
                self._made[leaf] = TableQuery(self._catalyst, leaf.query)
            return self._made[leaf]

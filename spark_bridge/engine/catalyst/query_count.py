"""The number of queries that Spark has begun to plan in a JVM."""

from __future__ import annotations

from typing import Any

from spark_bridge.engine.catalyst.scala import Scala


class QueryCount:
    """Reads Spark's own number of `QueryExecution` objects: one for each query that is analysed or planned.

    A listener of Spark sees actions only.  The number is private in Spark 3.5, in `QueryExecution._nextExecutionId`.
    """

    def __init__(self, scala: Scala) -> None:
        number = scala.java_class("execution.QueryExecution$").getDeclaredField("_nextExecutionId")
        number.setAccessible(True)
        self._number: Any = number
        self._owner = scala.singleton("execution.QueryExecution")

    @property
    def total(self) -> int:
        """Queries since the start of the JVM, of all its sessions and threads.  One call of py4j."""
        return int(self._number.get(self._owner))

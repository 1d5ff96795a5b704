"""Queries of DataFrames over rows: each is planned once for the columns of its rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from threading import Lock

import pyarrow as pa
from pyspark.sql import DataFrame

from spark_bridge.engine.catalyst.arrow_frames import frame_of_table
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.queries import analysed
from spark_bridge.engine.catalyst.trees import attribute_id
from spark_bridge.engine.execution.leaves import LeafRows
from spark_bridge.engine.execution.planned_once import PlannedOnce

SEVERAL = 2
"""A number of tasks by which the rows of a leaf stay in their partitions."""


class FrameQueries:
    """Makes them when they are needed first; their number is bounded by the columns that the views read."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._made: dict[Hashable, PlannedOnce] = {}

    def rows(self, catalyst: Catalyst, name: Hashable, make: Callable[..., DataFrame], *given: LeafRows) -> LeafRows:
        """The result of a query.

        Args:
            catalyst: of the session whose number of partitions a shuffle has.
            name: of the query, with every other value that `make` uses.
            make: makes the query of one DataFrame for each of `given`.
            given: the rows.  Values that differ between two calls are rows, too.
        """
        return self._query(catalyst, name, make, given).rows(_numbered(given), SEVERAL)

    def table(self, catalyst: Catalyst, rows: LeafRows, schema: pa.Schema) -> pa.Table:
        """Rows in this process.

        Args:
            schema: the columns of the rows; only Arrow's names of the types may differ.
        """
        query = self._query(catalyst, "all rows", lambda rows: rows, [rows])
        return query.table(_numbered([rows]), schema, SEVERAL)

    def _query(
        self, catalyst: Catalyst, name: Hashable, make: Callable[..., DataFrame], given: Sequence[LeafRows]
    ) -> PlannedOnce:
        schemas = [_columns(catalyst, each) for each in given]
        key = catalyst, name, *schemas
        with self._lock:
            if key not in self._made:
                self._made[key] = _planned(catalyst, make, schemas)
            return self._made[key]


def _numbered(given: Sequence[LeafRows]) -> dict[str, LeafRows]:
    return {str(number): each for number, each in enumerate(given)}


def _columns(catalyst: Catalyst, rows: LeafRows) -> pa.Schema:
    if rows.few is not None:
        return rows.few.schema
    parts = rows.parts(catalyst)
    constants = [pa.schema([(name, pa.int64()) for name in each.constants]) for each in parts]
    return pa.unify_schemas([*(each.schema for each in parts), *constants])


def _planned(catalyst: Catalyst, make: Callable[..., DataFrame], schemas: list[pa.Schema]) -> PlannedOnce:
    frames = [frame_of_table(catalyst.spark, each.empty_table()) for each in schemas]
    leaves = {attribute_id(analysed(frame).output().apply(0)): str(number) for number, frame in enumerate(frames)}
    return PlannedOnce(catalyst, analysed(make(*frames)), leaves)

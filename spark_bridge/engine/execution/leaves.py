"""The leaves of an analysed plan: replaces the empty ones by an epoch's rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, reduce
from threading import RLock

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_bridge.engine.catalyst.arrow_frames import arrow_schema, frame_of_rdd, frame_of_table
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.execution.driver_plan import HeldRows, held_rows
from spark_bridge.engine.execution.task_rows import TaskRows, rows_of_table

FEW_BYTES = 4 << 20
"""Rows up to this size need no job, see `spark_bridge.engine.execution.driver_plan`."""

_FEW_ROWS = 200_000
"""A row takes some 80 bytes of the JVM in addition to its values: 4 MiB of booleans would take 2.7 GiB there."""


class LeafRows:
    """The rows of a leaf.

    Attributes:
        few: the rows, if they are few and this process holds them.
        halved: the same rows, with `FILE_HALVES` in place of their file; None if only the file is known.

    Args:
        make: makes the DataFrame of the rows, if it is needed.
        parts: makes the rows as Spark's tasks read them, if they are needed; None for the rows of the DataFrame.
    """

    def __init__(
        self,
        few: pa.Table | None,
        make: Callable[[], DataFrame],
        halved: LeafRows | None = None,
        parts: Callable[[], Sequence[TaskRows]] | None = None,
    ) -> None:
        self.few, self.halved = few, halved
        self._make, self._make_parts, self._lock = make, parts, RLock()
        self._frame: DataFrame | None = None
        self._held: HeldRows | None = None
        self._parts: Sequence[TaskRows] | None = None

    @classmethod
    def of_table(cls, spark: SparkSession, rows: pa.Table) -> LeafRows:
        """Rows of this process."""
        few = rows if rows.nbytes <= FEW_BYTES and rows.num_rows <= _FEW_ROWS else None
        return cls(few, lambda: frame_of_table(spark, rows), parts=lambda: [rows_of_table(spark, rows)])

    @classmethod
    def of_frame(cls, frame: DataFrame) -> LeafRows:
        """Rows of a DataFrame, which Spark plans."""
        return cls(None, lambda: frame)

    @classmethod
    def of_parts(cls, spark: SparkSession, make: Callable[[], Sequence[TaskRows]]) -> LeafRows:
        """The rows of all parts, whose columns may differ.

        Args:
            make: makes the parts, at least one, when they are needed.
        """
        parts = cache(make)
        return cls(None, lambda: _frame_of(spark, parts()), parts=parts)

    @classmethod
    def together(cls, catalyst: Catalyst, rows: Sequence[LeafRows]) -> LeafRows:
        """The rows of several, at least one; a column that some lack is null in their rows."""
        few = [each.few for each in rows if each.few is not None]
        if len(few) == len(rows):
            return cls.of_table(catalyst.spark, pa.concat_tables(few, promote_options="default"))
        return cls.of_parts(catalyst.spark, lambda: [part for each in rows for part in each.parts(catalyst)])

    def with_constant(self, catalyst: Catalyst, column: pa.Field, value: int) -> LeafRows:
        """The rows with a further column of integers, last, which has the same value in all rows."""
        if self.few is not None:
            values = pa.repeat(pa.scalar(value, column.type), self.few.num_rows)
            return LeafRows.of_table(catalyst.spark, self.few.append_column(column, values))
        constant = {column.name: value}
        return LeafRows.of_parts(
            catalyst.spark,
            lambda: [replace(each, constants={**each.constants, **constant}) for each in self.parts(catalyst)],
        )

    def with_halved(self, halved: LeafRows | None) -> LeafRows:
        """The rows of a leaf without few rows, and the same rows with `FILE_HALVES`."""
        return LeafRows(None, self._make, halved, self._make_parts)

    @property
    def frame(self) -> DataFrame:
        """The rows as a DataFrame, the same one each time."""
        with self._lock:
            if self._frame is None:
                self._frame = self._make()
            return self._frame

    def held(self, spark: SparkSession) -> HeldRows:
        """The few rows in the memory of the driver's JVM, the same each time."""
        assert self.few is not None, "only few rows are held"
        with self._lock:
            if self._held is None:
                self._held = held_rows(spark, self.few)
            return self._held

    def parts(self, catalyst: Catalyst) -> Sequence[TaskRows]:
        """The rows as Spark's tasks read them, the same each time."""
        with self._lock:
            if self._parts is None:
                if self._make_parts is None:
                    self._parts = [TaskRows(catalyst.rows.rdd_of(self.frame), arrow_schema(self.frame.schema))]
                else:
                    self._parts = self._make_parts()
            return self._parts


Leaves = Mapping[str, LeafRows | None]
"""Source → its new rows; a source that is missing or None has no new rows."""


def is_few(rows: Iterable[LeafRows]) -> bool:
    """True if this process holds the rows of all of these leaves, and they are few together."""
    few = [each.few for each in rows]
    return sum(FEW_BYTES + 1 if each is None else each.nbytes for each in few) <= FEW_BYTES


def _frame_of(spark: SparkSession, parts: Sequence[TaskRows]) -> DataFrame:
    frames = []
    for part in parts:
        frame = frame_of_rdd(spark, part.rdd, part.schema)
        for name, value in part.constants.items():
            frame = frame.withColumn(name, F.lit(value).cast("bigint"))
        frames.append(frame)
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)

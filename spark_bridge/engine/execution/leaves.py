"""The leaves of an analysed plan: replaces the empty ones by an epoch's rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from actors.schemas.ddl import quoted_name
from actors.sources.event_time import event_times_us
from spark_bridge.engine.catalyst.arrow_frames import frame_of_table
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Plan, attribute_id
from state.tables.stored_rows import WEIGHT_FIELD

FEW_BYTES = 2 << 20
"""Rows up to this size need no job and no plan, see `spark_bridge.engine.execution.compiled_rows`."""


class LeafRows:
    """The rows of a leaf.

    Attributes:
        few: the rows, if they are few and this process holds them.
        halved: the same rows, with `FILE_HALVES` in place of their file; None if only the file is known.

    Args:
        make: makes the DataFrame of the rows, if it is needed.
    """

    def __init__(self, few: pa.Table | None, make: Callable[[], DataFrame], halved: LeafRows | None = None) -> None:
        self.few, self.halved = few, halved
        self._make, self._lock = make, Lock()
        self._frame: DataFrame | None = None

    @classmethod
    def of_table(cls, spark: SparkSession, rows: pa.Table) -> LeafRows:
        """Rows of this process."""
        return cls(rows if rows.nbytes <= FEW_BYTES else None, lambda: frame_of_table(spark, rows))

    @classmethod
    def of_frame(cls, frame: DataFrame) -> LeafRows:
        """Rows that Spark's tasks make."""
        return cls(None, lambda: frame)

    @property
    def frame(self) -> DataFrame:
        """The rows as a DataFrame, the same one each time."""
        with self._lock:
            if self._frame is None:
                self._frame = self._make()
            return self._frame

    def parted(self, spark: SparkSession, column: str, time_us: int) -> tuple[LeafRows | None, LeafRows]:
        """The rows before a time, None if it is known that there are none, and the others.

        Args:
            spark: the session of the rows.
            column: a timestamp or a date, never null; a time without a zone counts as UTC.
            time_us: the time, in microseconds since 1970.
        """
        if self.few is None:
            is_before = F.unix_micros(F.col(quoted_name(column)).cast("timestamp")) < time_us
            return LeafRows.of_frame(self.frame.where(is_before)), LeafRows.of_frame(self.frame.where(~is_before))
        before = pc.less(event_times_us(self.few.column(column)), time_us)
        if not pc.any(before).as_py():
            return None, self
        rows = (self.few.filter(each) for each in (before, pc.invert(before)))
        early, others = (LeafRows.of_table(spark, each) for each in rows)
        return early, others


def with_weight(rows: DataFrame, weight: int) -> DataFrame:
    """The rows with a weight, in the last column."""
    return rows.withColumn(WEIGHT_FIELD.name, F.lit(weight).cast("bigint"))


Leaves = Mapping[str, LeafRows | None]
"""Source → its new rows; a source that is missing or None has no new rows."""


class RowsOver:
    """An analysed plan over an epoch's rows.

    Attributes:
        few: the rows of the only source or view that it reads, if they are few: a compiled plan takes them as they are.

    Args:
        make: makes the plan with the rows in its leaves, if it is needed.
    """

    def __init__(self, few: pa.Table | None, make: Callable[[], Plan]) -> None:
        self.few, self._make = few, make
        self._plan: Plan | None = None

    @property
    def plan(self) -> Plan:
        """The plan with the rows in its leaves."""
        if self._plan is None:
            self._plan = self._make()
        return self._plan

    def under(self, wrap: Callable[[Plan], Plan]) -> RowsOver:
        """The same rows under further operators."""
        return RowsOver(self.few, lambda: wrap(self.plan))


def rows_over(catalyst: Catalyst, plan: Plan, sources: Mapping[int, str], rows: Leaves, *, has_time: bool) -> RowsOver:
    """A plan over an epoch's rows.

    Args:
        plan: the analysed plan.
        sources: id of a leaf's first attribute → the source of the leaf.
        has_time: whether the plan has the time of the epoch: compiled code would keep that of the first one.
    """
    names = {*sources.values()}
    leaf = rows.get(names.pop()) if len(names) == 1 and not has_time else None
    few = None if leaf is None else leaf.few
    return RowsOver(few, lambda: graft(catalyst, plan, sources, rows))


def graft(catalyst: Catalyst, plan: Plan, sources: Mapping[int, str], rows: Leaves) -> Plan:
    """The plan over an epoch's rows.

    The new leaves have the attributes of the old ones, so the plan is not analysed again.

    Args:
        plan: the analysed plan.
        sources: id of a leaf's first attribute → the source of the leaf.
    """
    children = catalyst.trees.items(plan.children())
    if children:
        return catalyst.trees.with_children(plan, [graft(catalyst, child, sources, rows) for child in children])
    output = plan.output()
    new = rows.get(sources[attribute_id(output.apply(0))])
    return plan if new is None else catalyst.rows.leaf(output, new.frame)

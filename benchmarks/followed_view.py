"""Views over one source each in a local session, without files: the first rows, and then epochs in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median
from types import MappingProxyType

import pyarrow as pa
from pyspark.sql import SparkSession

from actors.protocol.blocks import Block
from benchmarks.result import Number, Row, Target
from spark_bridge.engine.catalyst.current_rows import RowKeys
from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from state.location import Location
from state.tables.records import ViewVersion

NEW_ROWS = 1_000
WARM_EPOCHS = 5
COLUMNS = ("p50", "p95", "the first rows, until they show", "recomputed by Spark", "recomputed by DuckDB")
"""Of `compared`."""
SOURCE = "t"


class FollowedView:
    """See `benchmarks.view_life.Followed`.

    Attributes:
        tables: the rows of all epochs.
        first_s: seconds until the view shows the first rows.

    Args:
        spark: the session.
        root: the directory of the view.
        query: of the view, over `SOURCE`.
        make: makes so many further rows.
        rows: the number of the first rows.
        memory_bytes: see `spark_bridge.changes.memory_tier.MemoryTier`.
        keys: the key of the source, if it has one.
    """

    def __init__(
        self,
        spark: SparkSession,
        root: Location,
        query: str,
        make: Callable[[int], pa.Table],
        rows: int,
        memory_bytes: int,
        keys: RowKeys = MappingProxyType({}),
    ) -> None:
        self._make, self._epoch = make, 0
        self.root, self.seconds, self.tidied_s = root, list[float](), list[float]()
        self.views: Mapping[str, ViewVersion] = {}
        self.tables = [make(rows)]
        self.materializer = Materializer(spark, root, join_memory_bytes=memory_bytes, keys=keys)
        self.materializer.declare([ViewDefinition("v", query)], {SOURCE: self.tables[0].schema}, {})
        started = time.perf_counter()
        self._run(self.tables[0])
        while "v" not in self.views:
            time.sleep(0.1)
            self._run(self.tables[0].slice(0, 0))
        self.first_s = time.perf_counter() - started

    def turn(self) -> None:
        """An epoch of new rows."""
        self.tables.append(self._make(NEW_ROWS))
        self.seconds.append(self._run(self.tables[-1]))

    def _run(self, rows: pa.Table) -> float:
        self._epoch += 1
        block = Block("benchmark", SOURCE, rows, rows.num_rows, rows.nbytes, tuple(rows.column_names))
        started = time.perf_counter()
        self.views = self.materializer.run_epoch(self._epoch, {SOURCE: [block]}).views
        ended = time.perf_counter()
        self.materializer.tidy()
        self.tidied_s.append(time.perf_counter() - ended)
        return ended - started


def follow_in_turns(views: Mapping[str, FollowedView], epochs: int) -> None:
    """Runs so many epochs of each view, and some before that are not measured."""
    for _ in range(WARM_EPOCHS + epochs):
        for view in views.values():
            view.turn()


def compared(
    views: Mapping[str, FollowedView], recomputed: Mapping[str, tuple[float, float | None]], target: Target | None
) -> tuple[Row, ...]:
    """A row for each view.

    Args:
        views: name → view, after `follow_in_turns`.
        recomputed: name → seconds in which Spark and DuckDB compute the view from all rows; the first view has some.
        target: of an epoch of those; None without one.
    """
    first, rows = next(iter(views)), list[Row]()
    for name, view in views.items():
        seconds = sorted(view.seconds[WARM_EPOCHS:])
        times = median(seconds), seconds[int(0.95 * len(seconds))], view.first_s, *recomputed.get(name, (None, None))
        numbers = tuple(None if each is None else Number(each, "s") for each in times)
        by_spark, _ = recomputed.get(name, recomputed[first])
        rows.append(Row(name, numbers, median(seconds) / by_spark, target if name in recomputed else None))
    return tuple(rows)

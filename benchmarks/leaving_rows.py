"""Cost of an epoch in which rows leave as time passes: by a filter against `now()`, a time to live, and out of a join.

    python -m benchmarks.leaving_rows [--rows 1000000] [--epochs 60]

One local session measures in turns:

* an aggregation of the rows of the last hour, by the clock and by the watermark, and the aggregation of all rows;
* a join of orders with their payments within an hour, with rows that expire, and the same join without expiry.

Each epoch adds a thousand rows to a source, and the time passes in which a thousand rows expire.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping, Sequence
from statistics import median

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from actors.protocol.blocks import Block
from benchmarks.command import run_benchmark
from benchmarks.result import Number, Result, Row, Table
from spark_bridge.engine.session.local_session import start_local_session
from spark_bridge.engine.session.settings import SparkSettings
from spark_bridge.engine.session.warm_up import warm_up
from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from state.lance.lance_access import open_dataset
from state.location import Location
from state.tables.records import ViewVersion
from state.tables.stored_rows import is_internal_view

SCHEMA = pa.schema(
    [
        ("at", pa.timestamp("us", tz="UTC")),
        ("k", pa.int64()),
        ("x", pa.int64()),
        ("_path", pa.string()),
        ("_row", pa.int64()),
    ]
)
GROUPING, BY_KEY = "SELECT k % 1000 AS k, count(*) AS n, sum(x) AS s FROM t", "GROUP BY k % 1000"
OF_LAST_HOUR = "at > now() - INTERVAL 1 HOUR"
JOIN = "SELECT t.k, t.at, t.x, u.at AS paid FROM t JOIN u ON t.k = u.k AND u.at BETWEEN t.at AND t.at + INTERVAL 1 HOUR"
NEW_ROWS, WARM_EPOCHS = 1_000, 5
_HOUR_US = 3_600_000_000
_BEGIN_US = 1_700_000_000_000_000
_BITS_BELOW_TIME = 16  # of the number of an epoch
_US_A_MS = 1_000


class Arrivals:
    """The rows of a source, evenly in time: an hour has so many."""

    def __init__(self, an_hour: int) -> None:
        self._step_us = _HOUR_US // an_hour
        self._random = np.random.default_rng(1)
        self._made = 0

    @property
    def now_us(self) -> int:
        """The time of the next row, in microseconds since 1970."""
        return _BEGIN_US + self._made * self._step_us

    def take(self, count: int) -> pa.Table:
        """The next rows; each has a key of its own."""
        keys = np.arange(self._made, self._made + count)
        times = pa.array(_BEGIN_US + keys * self._step_us).cast(pa.timestamp("us")).cast(SCHEMA.field("at").type)
        values = pa.array(self._random.integers(0, 1_000, count))
        self._made += count
        path = pa.repeat("s3://bucket/events/1.parquet", count)
        return pa.table([times, pa.array(keys), values, path, pa.array(keys)], schema=SCHEMA)


class PassingView:
    """A view, and epochs in which time passes.

    Attributes:
        seconds: of each epoch after the first one.

    Args:
        spark: the session.
        root: the directory of the view.
        view: its definition, over `t` or over `t` and `u`.
        rows: the number of the first rows of each source, which an hour has.
        sources: those that it reads.
    """

    def __init__(
        self, spark: SparkSession, root: Location, view: ViewDefinition, rows: int, sources: Sequence[str]
    ) -> None:
        self._root = root
        self._arrivals = {source: Arrivals(rows) for source in sources}
        self.seconds = list[float]()
        self._views: Mapping[str, ViewVersion] = {}
        self._materializer = Materializer(spark, root, event_times=dict.fromkeys(sources, "at"))
        self._materializer.declare([view], dict.fromkeys(sources, SCHEMA), {})
        self.first_s = self._run(rows)

    def turn(self) -> None:
        """An epoch of new rows for each source."""
        self.seconds.append(self._run(NEW_ROWS))
        self._materializer.tidy()

    @property
    def stored_rows(self) -> int:
        """The number of rows that are kept beside the view."""
        internal = [each for name, each in self._views.items() if is_internal_view(name)]
        return sum(open_dataset(self._root.child(each.path), each.version).count_rows() for each in internal)

    def close(self) -> None:
        self._materializer.close()

    def _run(self, count: int) -> float:
        rows = {source: each.take(count) for source, each in self._arrivals.items()}
        [now_us] = {each.now_us for each in self._arrivals.values()}
        blocks = {
            source: [Block("benchmark", source, table, count, table.nbytes, tuple(table.column_names))]
            for source, table in rows.items()
        }
        started = time.perf_counter()
        epoch = (now_us // _US_A_MS) << _BITS_BELOW_TIME
        self._views = self._materializer.run_epoch(epoch, blocks, (), dict.fromkeys(rows, now_us)).views
        return time.perf_counter() - started


def measure(options: argparse.Namespace) -> Result:
    spark = start_local_session(SparkSettings(executor_cores=2, driver_memory="6g"), "leaving-rows")
    warm_up(spark)
    definitions = {
        "an aggregation of all rows": ("t", ViewDefinition("v", f"{GROUPING} {BY_KEY}")),
        "of those of the last hour": ("t", ViewDefinition("v", f"{GROUPING} WHERE {OF_LAST_HOUR} {BY_KEY}")),
        "the same by a time to live": ("t", ViewDefinition("v", f"{GROUPING} {BY_KEY}", ttl="1 hour")),
        "a join, all of its rows kept": ("tu", ViewDefinition("v", JOIN)),
        "the same, its rows expire": ("tu", ViewDefinition("v", JOIN, expire="by_watermark")),
    }
    with tempfile.TemporaryDirectory() as directory:
        views = {
            name: PassingView(spark, Location(f"{directory}/{number}"), view, options.rows, sources)
            for number, (name, (sources, view)) in enumerate(definitions.items())
        }
        for _ in range(WARM_EPOCHS + options.epochs):
            for view in views.values():
                view.turn()
        rows = [_row(name, view) for name, view in views.items()]
        for view in views.values():
            view.close()
    spark.stop()
    columns = ("p50", "p95", "the first rows", "rows kept beside the view")
    caption = (
        f"An epoch in which {NEW_ROWS:,} rows come to each source and as many leave, {options.rows:,} rows an hour"
    )
    return Result((Table(columns, tuple(rows), caption=caption),))


def _row(name: str, view: PassingView) -> Row:
    seconds = sorted(view.seconds[WARM_EPOCHS:])
    times = (median(seconds), seconds[int(0.95 * len(seconds))], view.first_s)
    return Row(name, (*(Number(each, "s") for each in times), Number(view.stored_rows, "")))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--epochs", type=int, default=60)
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()

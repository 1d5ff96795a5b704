"""Cost of windows and limits that are kept up to date: the three largest rows of each of many keys, the largest of all.

    python -m benchmarks.windows [--rows 5000000] [--visits 1000000] [--epochs 30] [--life 300]

In one local session: five million rows of 500,000 keys, then epochs of 1,000 rows of as many keys, in turns with the
same view whose rows below the window are not kept in memory.  Beside it, the same query by Spark and by DuckDB over all
rows.  Then sessions by key, of a million rows in the order of time, of which some come late.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.command import run_benchmark
from benchmarks.followed_view import COLUMNS, NEW_ROWS, FollowedView, compared, follow_in_turns
from benchmarks.result import Result, Table, Target
from benchmarks.view_life import measure_life
from spark_bridge.engine.catalyst.arrow_frames import arrow_schema, frame_of_table, table_of_frame
from spark_bridge.engine.session.local_session import start_local_session
from spark_bridge.engine.session.settings import SparkSettings
from spark_bridge.engine.session.warm_up import warm_up
from state.location import Location

SCHEMA = pa.schema([("k", pa.int64()), ("score", pa.int64()), ("id", pa.int64())])
TOP = (
    "SELECT k, score, id FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY score DESC, id) AS place FROM t) "
    "WHERE place <= 3"
)
LARGEST = "SELECT k, score, id FROM t ORDER BY score DESC, id LIMIT 100"
RUNNING = "SELECT k, id, sum(score) OVER (PARTITION BY k ORDER BY id) AS total FROM t"
IN_MEMORY, OF_ALL = "the three largest rows of each key", "the 100 largest of all rows"
CASES: Mapping[str, tuple[str, int]] = {
    IN_MEMORY: (TOP, 512 << 20),
    "the same, nothing in memory": (TOP, 0),
    "a running sum of each key": (RUNNING, 512 << 20),
    OF_ALL: (LARGEST, 512 << 20),
}
ROWS_A_KEY = 10
VISITS = pa.schema([("k", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
SESSIONS = "sessions by key"
SESSION_CASES: Mapping[str, tuple[str, int]] = {
    name: (
        "SELECT k, session_window AS w, count(*) AS n FROM t GROUP BY k, session_window(at, '10 minutes')",
        memory_bytes,
    )
    for name, memory_bytes in ((SESSIONS, 512 << 20), ("the same, nothing in memory", 0))
}
LATE_SHARE = 0.05


class _RandomKeys:
    """Makes rows of random keys.

    Args:
        keys: the number of the keys.
    """

    def __init__(self, keys: int) -> None:
        self._random, self._keys, self._rows = np.random.default_rng(1), keys, 0

    def _numbers(self, count: int) -> npt.NDArray[np.int64]:
        """The numbers of so many further rows."""
        first, self._rows = self._rows, self._rows + count
        return np.arange(first, first + count)


class Scores(_RandomKeys):
    """Rows of random keys; each has a number of its own."""

    def rows(self, count: int) -> pa.Table:
        """So many further rows."""
        keys, scores = self._random.integers(0, self._keys, count), self._random.integers(0, 1_000_000, count)
        return pa.table([keys, scores, self._numbers(count)], schema=SCHEMA)


class Visits(_RandomKeys):
    """Rows of random keys at times that go on, a hundred rows a second; some are up to an hour late."""

    def rows(self, count: int) -> pa.Table:
        """So many further rows."""
        late_s = self._random.integers(0, 3_600, count) * (self._random.random(count) < LATE_SHARE)
        times = self._numbers(count) * 10_000 - late_s * 1_000_000
        keys = self._random.integers(0, self._keys, count)
        return pa.table([keys, pa.array(times).cast(VISITS.field("at").type)], schema=VISITS)


def recomputed_s(spark: SparkSession, view: FollowedView, query: str) -> tuple[float, float | None]:
    """Seconds in which Spark and DuckDB compute a query from all rows in memory; None if DuckDB lacks its function."""
    rows = pa.concat_tables(view.tables)
    frame_of_table(spark, rows).createOrReplaceTempView("t")
    started = time.perf_counter()
    frame = spark.sql(query)
    expected = table_of_frame(frame, arrow_schema(frame.schema))
    by_spark = time.perf_counter() - started
    spark.catalog.dropTempView("t")
    if "session_window" in query:
        return by_spark, None
    connection = duckdb.connect()
    connection.register("t", rows)
    started = time.perf_counter()
    found = connection.sql(query).to_arrow_table()
    by_duckdb = time.perf_counter() - started
    assert found.num_rows == expected.num_rows, "both have the same rows"
    return by_spark, by_duckdb


def measure(options: argparse.Namespace) -> Result:
    spark = start_local_session(SparkSettings(executor_cores=2, driver_memory="4g"), "windows")
    warm_up(spark)
    with ExitStack() as stack:
        followed = {}
        for name, (query, memory_bytes) in CASES.items():
            root = Location(stack.enter_context(tempfile.TemporaryDirectory()))
            make = Scores(options.rows // ROWS_A_KEY).rows
            followed[name] = FollowedView(spark, root, query, make, options.rows, memory_bytes)
            stack.callback(followed[name].materializer.close)
        follow_in_turns(followed, options.epochs)
        recomputed = {name: recomputed_s(spark, followed[name], CASES[name][0]) for name in (IN_MEMORY, OF_ALL)}
        rows = compared(followed, recomputed, Target(0.3, "s"))
        life = measure_life(followed[IN_MEMORY], options.life, "of the three largest rows")
    of_sessions = sessions(spark, options)
    spark.stop()
    caption = (
        f"An epoch of {NEW_ROWS:,} rows of as many keys, {options.rows:,} rows of {options.rows // ROWS_A_KEY:,} keys"
    )
    return Result((Table(COLUMNS, rows, "of a recomputation by Spark", caption), life, of_sessions))


def sessions(spark: SparkSession, options: argparse.Namespace) -> Table:
    """Measures sessions by key."""
    keys = options.visits // ROWS_A_KEY
    with ExitStack() as stack:
        followed = {}
        for name, (query, memory_bytes) in SESSION_CASES.items():
            root = Location(stack.enter_context(tempfile.TemporaryDirectory()))
            followed[name] = FollowedView(spark, root, query, Visits(keys).rows, options.visits, memory_bytes)
            stack.callback(followed[name].materializer.close)
        follow_in_turns(followed, options.epochs)
        recomputed = {SESSIONS: recomputed_s(spark, followed[SESSIONS], SESSION_CASES[SESSIONS][0])}
        rows = compared(followed, recomputed, None)
    caption = f"An epoch of {NEW_ROWS:,} rows of as many keys, {options.visits:,} rows of {keys:,} keys"
    return Table(COLUMNS, rows, "of a recomputation by Spark", caption)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rows", type=int, default=5_000_000)
    arguments.add_argument("--visits", type=int, default=1_000_000)
    arguments.add_argument("--epochs", type=int, default=30)
    arguments.add_argument("--life", type=int, default=300)
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()

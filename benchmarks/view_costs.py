"""What an epoch costs beside views of a thousand and of a million groups, and what an upsert into a large one costs.

    python -m benchmarks.view_costs [--groups 1000000] [--views 10] [--epochs 30]

In one local session, small and large views in turns; medians of the epochs after the first third.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from statistics import median

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from actors.messages import Block
from benchmarks.machine import describe_machine
from spark_bridge.materializer import Materializer
from spark_bridge.session import SparkSettings, start_local_session, warm_up
from spark_bridge.view_definition import ViewDefinition
from spark_bridge.view_table import ViewTable
from state.group_key import KEY_COLUMN
from state.location import Location

SCHEMA = pa.schema([("user", pa.int64()), ("amount", pa.float64()), ("kind", pa.int64())])
AGGREGATES = (
    "count(*) AS n, avg(amount) AS mean",
    "sum(kind) AS total",
    "max(amount) AS highest, min(amount) AS lowest",
    "stddev(amount) AS deviation",
    "count(*) AS n, sum(kind) AS total, avg(kind) AS mean",
)
NEW_ROWS = 1_000
UPSERTED, STORED = 10_000, 5_000_000


class Followed:
    """Some views over one source, of so many groups."""

    def __init__(self, spark: SparkSession, root: Location, views: int, groups: int) -> None:
        self._random, self._groups, self._epoch = np.random.default_rng(groups), groups, 1
        self._materializer = Materializer(spark, root)
        queries = [f"SELECT user, {AGGREGATES[each % 5]} FROM events GROUP BY user" for each in range(views)]
        definitions = [ViewDefinition(f"v{number}", query) for number, query in enumerate(queries)]
        self._materializer.declare(definitions, {"events": SCHEMA}, {})
        self.seconds: list[float] = []
        self._run(np.arange(groups))
        for _ in range(2 * views):
            self._materializer.tidy()

    def run(self, rows: int) -> None:
        """One epoch, and what follows it."""
        started = time.perf_counter()
        self._run(self._random.integers(0, self._groups, rows))
        self.seconds.append(time.perf_counter() - started)
        self._materializer.tidy()

    def median(self) -> float:
        return median(self.seconds[len(self.seconds) // 3 :])

    def close(self) -> None:
        self._materializer.close()

    def _run(self, users: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
        amounts = self._random.random(len(users))
        table = pa.table({"user": users, "amount": amounts, "kind": users % 100}, schema=SCHEMA)
        block = Block("benchmark", "events", table, table.num_rows, table.nbytes, tuple(SCHEMA.names))
        self._materializer.run_epoch(self._epoch, {"events": [block]})
        self._epoch += 1


def measure_epochs(spark: SparkSession, views: int, groups: int, epochs: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        small = Followed(spark, Location(f"{directory}/small"), views, 1_000)
        large = Followed(spark, Location(f"{directory}/large"), views, groups)
        for _ in range(epochs):
            small.run(NEW_ROWS)
            large.run(NEW_ROWS)
        ratio = large.median() / small.median()
        print(f"{NEW_ROWS:,} new rows, {views} views: 1,000 groups each {small.median():.3f} s, ", end="")
        print(f"{groups:,} groups each {large.median():.3f} s: {ratio:.2f} x")
        small.close()
        large.close()


def measure_one(spark: SparkSession, rows: int, epochs: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        view = Followed(spark, Location(directory), 1, 1_000)
        for _ in range(epochs):
            view.run(rows)
        print(f"{rows:,} new rows, one view of 1,000 groups: {view.median():.3f} s")
        view.close()


def stored_rows(numbers: np.ndarray[tuple[int], np.dtype[np.int64]], value: int) -> pa.Table:
    keys = pa.array(numbers).cast(pa.string())
    schema = pa.schema([("user", pa.int64()), ("n", pa.int64()), pa.field(KEY_COLUMN, pa.string(), nullable=False)])
    return pa.table([pa.array(numbers), pa.array(numbers % 100 + value), keys], schema=schema)


def measure_upserts() -> None:
    random = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as directory:
        numbers = random.permutation(STORED)
        table = ViewTable.create(Location(f"{directory}/v.lance"), stored_rows(numbers, 0))
        table.tidy()
        looked_up, upserted = [], []
        for epoch in range(30):
            rows = stored_rows(random.choice(STORED, UPSERTED, replace=False), epoch)
            started = time.perf_counter()
            table.rows_of(rows.column(KEY_COLUMN).combine_chunks(), ["n"])
            between = time.perf_counter()
            table.upsert(rows)
            looked_up.append(between - started)
            upserted.append(time.perf_counter() - between)
            table.tidy()
        print(f"{UPSERTED:,} of {STORED:,} groups: look-up {median(looked_up):.3f} s, ", end="")
        print(f"upsert {median(upserted):.3f} s")


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--groups", type=int, default=1_000_000)
    arguments.add_argument("--views", type=int, default=10)
    arguments.add_argument("--epochs", type=int, default=30)
    options = arguments.parse_args()
    print(describe_machine())
    spark = start_local_session(SparkSettings(executor_cores=2, driver_memory="4g"), "view-costs")
    warm_up(spark)
    measure_one(spark, 100, 2 * options.epochs)
    measure_one(spark, 200_000, options.epochs)
    measure_upserts()
    measure_epochs(spark, options.views, options.groups, options.epochs)
    spark.stop()


if __name__ == "__main__":
    main()

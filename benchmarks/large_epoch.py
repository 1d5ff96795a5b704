"""Cost of an epoch with many rows of a join: time, and memory of the process that holds the Spark session.

    python -m benchmarks.large_epoch [--orders 1000000,10000000] [--epochs 3]

In one local session.  Each epoch has `--orders` new orders and a file of customers that move.  The views are an
aggregation of orders joined with customers, and the rows of a left join.  For comparison, Spark joins the same orders
with all customers as a batch, from the same Arrow tables.
Sizes below 128 MiB are joined in the process itself, larger ones by Spark's tasks.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

import psutil
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.command import run_benchmark
from benchmarks.joined_view import JOINED, LEFT, VIEWS, Followed, shown_to_spark
from benchmarks.result import TIMES, Number, Result, Row, Table
from spark_bridge.engine.session.local_session import start_local_session
from spark_bridge.engine.session.settings import SparkSettings
from spark_bridge.engine.session.warm_up import warm_up
from state.location import Location

FIRST_ORDERS, WARM_EPOCHS, MEMORY_BYTES = 1_000_000, 1, 512 << 20
QUERIES = {"an aggregation of orders and customers": JOINED, "the rows of a left join": VIEWS[LEFT]}
_SAMPLE_S = 0.02


class Growth:
    """The memory of this process.

    Attributes:
        mib: by how much it has been larger than at the start, at most; the new orders themselves are in it.
    """

    def __init__(self) -> None:
        self.mib = 0.0


@contextmanager
def measured() -> Iterator[Growth]:
    """Samples the memory of this process until the context ends."""
    growth, over, process = Growth(), threading.Event(), psutil.Process()
    before = process.memory_info().rss

    def sample() -> None:
        while not over.wait(_SAMPLE_S):
            growth.mib = max(growth.mib, (process.memory_info().rss - before) / 2**20)

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield growth
    finally:
        over.set()
        thread.join()


def batch_s(spark: SparkSession, view: Followed, query: str) -> float:
    """Seconds in which Spark joins the orders of the last epoch with all customers, and writes nothing."""
    tables = {"orders": view.orders[-1], "customers": pa.concat_tables(view.regions.values())}
    with shown_to_spark(spark, tables):
        started = time.perf_counter()
        spark.sql(query).write.format("noop").mode("overwrite").save()
        return time.perf_counter() - started


def measure(options: argparse.Namespace) -> Result:
    spark = start_local_session(SparkSettings(executor_cores=2, driver_memory="6g"), "large-epoch")
    warm_up(spark)
    rows = []
    for query_name, query in QUERIES.items():
        for orders in map(int, options.orders.split(",")):
            with tempfile.TemporaryDirectory() as directory:
                view = Followed(spark, Location(directory), [query], FIRST_ORDERS, MEMORY_BYTES)
                grown, alone = list[float](), list[float]()
                for number in range(WARM_EPOCHS + options.epochs):
                    with measured() as growth:
                        view.turn(orders)
                    if number >= WARM_EPOCHS:
                        grown.append(growth.mib - view.orders[-1].nbytes / 2**20)
                        alone.append(batch_s(spark, view, query))
                view.materializer.close()
            seconds = median(view.seconds[WARM_EPOCHS:])
            numbers = Number(seconds, "s"), Number(median(alone), "s"), Number(max(grown), "MiB")
            rows.append(Row(f"{query_name}, {orders:,} orders", numbers, seconds / median(alone)))
    spark.stop()
    columns = ("p50", "Spark joins the new orders", "the process grows by")
    caption = f"An epoch of many new orders, {FIRST_ORDERS:,} orders and a tenth as many customers before"
    return Result((Table(columns, tuple(rows), f"{TIMES} Spark's batch", caption),))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--orders", default="1000000,10000000")
    arguments.add_argument("--epochs", type=int, default=3)
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()

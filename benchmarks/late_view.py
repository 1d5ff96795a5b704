"""A view that is declared late, out of stored rows, beside a Spark batch job over the same rows.

    python -m benchmarks.late_view [--rows 10000000] [--groups 1000 1000000]

The job reads the Lance dataset of the stored rows with `mapInArrow`, a task for each fragment, groups, and collects the
result as Arrow; the view catches up to the same rows, as between two epochs, and is complete in its dataset.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from statistics import median

import lance
import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.machine import describe_machine
from slackwater.stored_history import StoredHistory
from spark_bridge.materializer import Materializer
from spark_bridge.session import SparkSettings, start_local_session, warm_up
from spark_bridge.view_definition import ViewDefinition
from spark_bridge.view_plan import ViewPlan
from state.lance_access import create_dataset
from state.location import Location
from state.records import ViewVersion

SCHEMA = pa.schema([("user", pa.int64()), ("amount", pa.float64()), ("kind", pa.int64())])
QUERIES = {
    "grouped": "SELECT user, count(*) AS n, sum(amount) AS total FROM events GROUP BY user",
    "row by row": "SELECT user, amount * 2 AS twice FROM events WHERE kind < 5",
}
AT_ONCE = 500_000


def batches(rows: int, groups: int) -> Iterator[pa.RecordBatch]:
    random = np.random.default_rng(1)
    for start in range(0, rows, AT_ONCE):
        count = min(AT_ONCE, rows - start)
        columns = [random.integers(0, groups, count), random.random(count), random.integers(0, 10, count)]
        yield pa.record_batch(columns, schema=SCHEMA)


def batch_seconds(spark: SparkSession, path: str, query: str) -> tuple[float, int]:
    started = time.perf_counter()
    fragments = [each.fragment_id for each in lance.dataset(path).get_fragments()]

    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import lance

        dataset = lance.dataset(path)
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from dataset.get_fragment(number).to_batches(batch_size=65_536)

    numbers = spark.createDataFrame([(each,) for each in fragments], "fragment bigint").repartition(len(fragments))
    frame = numbers.mapInArrow(read, "user bigint, amount double, kind bigint")
    frame.createOrReplaceTempView("events")
    result = pa.Table.from_batches(spark.sql(query)._collect_as_arrow())
    return time.perf_counter() - started, result.num_rows


def view_seconds(
    spark: SparkSession, root: Location, stored: ViewVersion, query: str, number: int
) -> tuple[float, int]:
    def open_history(plan: ViewPlan, epoch: int, progress: str | None) -> StoredHistory:
        return StoredHistory(root, {"events": stored}, {"events": SCHEMA}, plan.columns, progress)

    materializer = Materializer(spark, root, materialized={"events"}, open_history=open_history)
    materializer.open({}, 1, {"events"})
    materializer.declare([ViewDefinition(f"v{number}", query)], {"events": SCHEMA}, {})
    started = time.perf_counter()
    materializer.run_epoch(10 + 10 * number, {})
    pieces = 0
    while materializer.catching_up[f"v{number}"] < 1:
        materializer.catch_up()
        pieces += 1
    materializer.catch_up()
    done = materializer.run_epoch(11 + 10 * number, {})
    seconds = time.perf_counter() - started
    version = done.views[f"v{number}"]
    materializer.close()
    return seconds, int(lance.dataset(root.child(version.path).lance_uri, version=version.version).count_rows())


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rows", type=int, default=10_000_000)
    arguments.add_argument("--groups", type=int, nargs="*", default=[1_000, 1_000_000])
    arguments.add_argument("--turns", type=int, default=3)
    options = arguments.parse_args()
    spark = start_local_session(SparkSettings(executor_cores=2, driver_memory="4g"), "late-view")
    warm_up(spark)
    print(describe_machine())
    for groups in options.groups:
        with tempfile.TemporaryDirectory() as directory:
            root = Location(directory)
            table = pa.Table.from_batches(batches(options.rows, groups))
            create_dataset(root.child("rows.lance"), table.slice(0, 0))
            path = root.child("rows.lance").lance_uri
            for start in range(0, options.rows, AT_ONCE):
                lance.write_dataset(table.slice(start, AT_ONCE), path, mode="append")
            del table
            stored = ViewVersion("events", "rows.lance", lance.dataset(path).version)
            for kind, query in QUERIES.items():
                turns: list[tuple[float, float]] = []
                for _ in range(options.turns):
                    batch, expected = batch_seconds(spark, path, query)
                    ours, got = view_seconds(spark, root, stored, query, 100 * len(turns) + len(kind) + groups)
                    assert got == expected, (got, expected)
                    turns.append((batch, ours))
                batch, ours = (median(each) for each in zip(*turns, strict=True))
                print(
                    f"{options.rows:,} rows, {kind}, {expected:,} rows in the view: batch {batch:.2f} s, "
                    f"view {ours:.2f} s: {batch / ours:.2f} of its speed"
                )
    spark.stop()


if __name__ == "__main__":
    main()

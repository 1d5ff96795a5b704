"""A view that is declared late, out of stored rows, beside a Spark batch job over the same rows.

    python -m benchmarks.backfill [--rows 10000000] [--groups 1000 1000000]

The job reads the Lance dataset of the stored rows with `mapInArrow`, a task for each fragment, groups, and collects the
result as Arrow; the backfill reaches the same rows, as between two epochs, and is complete in its dataset.
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

from benchmarks.command import run_benchmark
from benchmarks.result import TIMES, Number, Result, Row, Table, Target
from slackwater.backfill.stored_history import StoredHistory
from spark_bridge.engine.session.local_session import start_local_session
from spark_bridge.engine.session.settings import SparkSettings
from spark_bridge.engine.session.warm_up import warm_up
from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from state.lance.lance_access import create_dataset
from state.location import Location
from state.tables.records import ViewVersion
from state.tables.stored_rows import LINEAGE

SCHEMA = pa.schema([("user", pa.int64()), ("amount", pa.float64()), ("kind", pa.int64())])
QUERIES = {
    "grouped": "SELECT user, count(*) AS n, sum(amount) AS total FROM events GROUP BY user",
    "projection": "SELECT user, amount * 2 AS twice FROM events WHERE kind < 5",
}
AT_ONCE = 500_000
FILE_ROWS = 50_000


def batches(rows: int, groups: int) -> Iterator[pa.RecordBatch]:
    """As they are stored: each row with the file that it came from."""
    schema = pa.schema([*SCHEMA, *LINEAGE])
    random = np.random.default_rng(1)
    for start in range(0, rows, AT_ONCE):
        count = min(AT_ONCE, rows - start)
        columns = [random.integers(0, groups, count), random.random(count), random.integers(0, 10, count)]
        numbers = np.arange(start, start + count)
        paths = pa.array([f"part-{number:05}.parquet" for number in (numbers // FILE_ROWS).tolist()])
        yield pa.record_batch([*columns, paths, np.ones(count, np.int64), numbers % FILE_ROWS], schema=schema)


def batch_seconds(spark: SparkSession, path: str, query: str) -> tuple[float, int]:
    started = time.perf_counter()
    fragments = [each.fragment_id for each in lance.dataset(path).get_fragments()]

    names = SCHEMA.names

    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import lance

        dataset = lance.dataset(path)
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from dataset.get_fragment(number).to_batches(columns=names, batch_size=65_536)

    numbers = spark.createDataFrame([(each,) for each in fragments], "fragment bigint").repartition(len(fragments))
    frame = numbers.mapInArrow(read, "user bigint, amount double, kind bigint")
    frame.createOrReplaceTempView("events")
    result = pa.Table.from_batches(spark.sql(query)._collect_as_arrow())
    return time.perf_counter() - started, result.num_rows


def view_seconds(
    spark: SparkSession, root: Location, stored: ViewVersion, query: str, number: int
) -> tuple[float, int]:
    def open_history(plan: ViewPlan, since: int, epoch: int, progress: str | None) -> StoredHistory:
        return StoredHistory(root, {"events": stored}, {"events": SCHEMA}, plan.columns, progress)

    materializer = Materializer(spark, root, materialized={"events"}, open_history=open_history)
    materializer.open({}, 1, {"events"})
    materializer.declare([ViewDefinition(f"v{number}", query)], {"events": SCHEMA}, {})
    started = time.perf_counter()
    materializer.run_epoch(10 + 10 * number, {})
    while not materializer.has_news():
        if not materializer.backfill():
            time.sleep(0.005)
    done = materializer.run_epoch(11 + 10 * number, {})
    seconds = time.perf_counter() - started
    version = done.views[f"v{number}"]
    materializer.close()
    return seconds, int(lance.dataset(root.child(version.path).lance_uri, version=version.version).count_rows())


def measure_rows(spark: SparkSession, rows: int, groups: int, turns: int) -> Iterator[Row]:
    """Each query over so many rows."""
    with tempfile.TemporaryDirectory() as directory:
        root = Location(directory)
        table = pa.Table.from_batches(batches(rows, groups))
        create_dataset(root.child("rows.lance"), table.slice(0, 0))
        path = root.child("rows.lance").lance_uri
        for start in range(0, rows, AT_ONCE):
            lance.write_dataset(table.slice(start, AT_ONCE), path, mode="append")
        del table
        stored = ViewVersion("events", "rows.lance", lance.dataset(path).version)
        for kind, query in QUERIES.items():
            seconds: list[tuple[float, float]] = []
            for turn in range(turns):
                batch, expected = batch_seconds(spark, path, query)
                ours, got = view_seconds(spark, root, stored, query, 100 * turn + len(kind) + groups)
                assert got == expected, (got, expected)
                seconds.append((batch, ours))
            batch, ours = (median(each) for each in zip(*seconds, strict=True))
            name = f"{kind}, {expected:,} rows in the view"
            yield Row(name, (Number(batch, "s"), Number(ours, "s")), batch / ours, Target(0.7, TIMES, at_least=True))


def measure(options: argparse.Namespace) -> Result:
    spark = start_local_session(SparkSettings(executor_cores=2, driver_memory="4g"), "backfill")
    warm_up(spark)
    rows = [row for groups in options.groups for row in measure_rows(spark, options.rows, groups, options.turns)]
    spark.stop()
    turns = f"medians of {options.turns} turns" if options.turns > 1 else "one turn"
    caption = f"{options.rows:,} stored rows, {turns}"
    return Result((Table(("batch job", "view"), tuple(rows), "of the job's speed", caption),))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rows", type=int, default=10_000_000)
    arguments.add_argument("--groups", type=int, nargs="*", default=[1_000, 1_000_000])
    arguments.add_argument("--turns", type=int, default=3)
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()

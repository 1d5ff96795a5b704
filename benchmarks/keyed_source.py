"""Cost of a source with a key: a grouped view over the last row of each of five million keys.

    python -m benchmarks.keyed_source [--keys 5000000] [--epochs 30] [--life 300]

In one local session: a row for each key, then epochs of 1,000 rows, of which most are new versions of random keys and
some are deletions, in turns with the same view whose rows are not kept in memory, and with the same aggregation over a
source without a key.  Beside it, the same answer by Spark and by DuckDB over all rows.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack

import duckdb
import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from actors.sources.row_key import Key
from benchmarks.command import run_benchmark
from benchmarks.followed_view import COLUMNS, NEW_ROWS, SOURCE, FollowedView, compared, follow_in_turns
from benchmarks.result import Result, Table, Target
from benchmarks.view_life import measure_life
from spark_bridge.engine.catalyst.arrow_frames import arrow_schema, frame_of_table, table_of_frame
from spark_bridge.engine.catalyst.current_rows import current_rows
from spark_bridge.engine.session.local_session import start_local_session
from spark_bridge.engine.session.settings import SparkSettings
from spark_bridge.engine.session.warm_up import warm_up
from state.location import Location

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("customer", pa.int64()),
        ("amount", pa.int64()),
        ("at", pa.int64()),
        ("op", pa.string()),
        ("_path", pa.string()),
        ("_row", pa.int64()),
    ]
)
KEY = Key("id", order_by="at", deleted="op = 'D'")
GROUPED = f"SELECT customer, count(*) AS n, sum(amount) AS amount FROM {SOURCE} GROUP BY customer"
IN_MEMORY = "the last row of each key, grouped"
CASES: Mapping[str, tuple[Mapping[str, Key], int]] = {
    IN_MEMORY: ({SOURCE: KEY}, 1 << 30),
    "the same, nothing in memory": ({SOURCE: KEY}, 0),
    "all rows, grouped": ({}, 0),
}
ROWS_A_CUSTOMER, DELETED = 10, 0.05


class Versions:
    """Makes rows: first one for each key, then new versions of random ones.

    Args:
        keys: the number of the keys.
    """

    def __init__(self, keys: int) -> None:
        self._random, self._keys, self._at = np.random.default_rng(1), keys, 0

    def rows(self, count: int) -> pa.Table:
        """So many further rows, as of one file."""
        ids = np.arange(count) if not self._at else self._random.integers(0, self._keys, count)
        is_deleted = (self._random.random(count) < DELETED) & (self._at > 0)
        self._at += 1
        columns = [
            pa.array(ids),
            pa.array(self._random.integers(0, self._keys // ROWS_A_CUSTOMER, count)),
            pa.array(self._random.integers(0, 1_000, count)),
            pa.repeat(self._at, count),
            pa.array(np.where(is_deleted, "D", "U")),
            pa.repeat(f"s3://bucket/orders/{self._at:06}.parquet", count),
            pa.array(np.arange(count)),
        ]
        return pa.table(columns, schema=SCHEMA)


def _quoted(name: str) -> str:
    return f'"{name}"'


def recomputed_s(spark: SparkSession, view: FollowedView) -> tuple[float, float]:
    """Seconds in which Spark and DuckDB compute the view from all rows in memory."""
    rows = pa.concat_tables(view.tables)
    current_rows(frame_of_table(spark, rows), KEY).createOrReplaceTempView(SOURCE)
    started = time.perf_counter()
    frame = spark.sql(GROUPED)
    expected = table_of_frame(frame, arrow_schema(frame.schema))
    by_spark = time.perf_counter() - started
    connection = duckdb.connect()
    connection.register("versions", rows)
    numbered = f"SELECT *, {KEY.number(_quoted)} AS __sw_number FROM versions"
    query = GROUPED.replace(f"FROM {SOURCE}", f"FROM (SELECT * FROM ({numbered}) WHERE {KEY.is_current(_quoted)})")
    started = time.perf_counter()
    found = connection.sql(query).to_arrow_table()
    by_duckdb = time.perf_counter() - started
    assert found.num_rows == expected.num_rows, "both have the same groups"
    spark.catalog.dropTempView(SOURCE)
    return by_spark, by_duckdb


def measure(options: argparse.Namespace) -> Result:
    spark = start_local_session(SparkSettings(executor_cores=2, driver_memory="6g"), "keyed-source")
    warm_up(spark)
    with ExitStack() as stack:
        followed = {}
        for name, (keys, memory_bytes) in CASES.items():
            root = Location(stack.enter_context(tempfile.TemporaryDirectory()))
            make = Versions(options.keys).rows
            followed[name] = FollowedView(spark, root, GROUPED, make, options.keys, memory_bytes, keys)
            stack.callback(followed[name].materializer.close)
        follow_in_turns(followed, options.epochs)
        rows = compared(followed, {IN_MEMORY: recomputed_s(spark, followed[IN_MEMORY])}, Target(0.3, "s"))
        life = measure_life(followed[IN_MEMORY], options.life, "of the grouped view over a source with a key")
    spark.stop()
    caption = f"An epoch of {NEW_ROWS:,} new versions of {options.keys:,} keys, 5 % of them deletions"
    return Result((Table(COLUMNS, rows, "of a recomputation by Spark", caption), life))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--keys", type=int, default=5_000_000)
    arguments.add_argument("--epochs", type=int, default=30)
    arguments.add_argument("--life", type=int, default=300)
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()

"""Cost of a correction: a file of a thousand rows is forgotten, and comes back, in views over five million stored rows.

    python -m benchmarks.corrections [--rows 5000000] [--turns 5]

In one local session; the kinds of views in turns.  For comparison, Spark and
DuckDB recompute the whole view from the same stored rows.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from statistics import median

import duckdb
import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from actors.protocol.blocks import Block, Correction, StoredBlock
from benchmarks.command import run_benchmark
from benchmarks.result import Number, Result, Row, Table, Target
from spark_bridge.engine.catalyst.arrow_frames import arrow_schema, table_of_frame
from spark_bridge.engine.session.local_session import start_local_session
from spark_bridge.engine.session.settings import SparkSettings
from spark_bridge.engine.session.warm_up import warm_up
from spark_bridge.ingest.dataset_frame import frame_of_dataset
from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from state.lance.fragment_stager import FragmentStager
from state.lance.lance_access import open_dataset
from state.location import Location
from state.tables.records import ViewVersion
from state.tables.stored_rows import LINEAGE, stored_rows_name, stored_rows_path

SCHEMA = pa.schema([("user", pa.int64()), ("kind", pa.int64()), ("amount", pa.float64())])
QUERIES = {
    "counts, sums, averages": "SELECT user, count(*) AS n, sum(kind) AS total, avg(kind) AS mean "
    "FROM events GROUP BY user",
    "sums and deviations of floats": "SELECT kind, sum(amount) AS total, avg(amount) AS mean, "
    "stddev(amount) AS spread FROM events GROUP BY kind",
    "min, max, distinct": "SELECT user, min(amount) AS lowest, max(kind) AS highest, count(DISTINCT kind) AS kinds "
    "FROM events GROUP BY user",
    "percentile": "SELECT user, percentile(amount, 0.5) AS middle FROM events GROUP BY user",
}
TARGETS_S = {
    "counts, sums, averages": 1.0,
    "sums and deviations of floats": 1.0,
    "min, max, distinct": 1.0,
    "percentile": 1.5,
}
FILE_ROWS, LOADED_ROWS = 1_000, 500_000


class Corrected:
    """One view over one materialized source, whose files leave and come back."""

    def __init__(self, spark: SparkSession, root: Location, query: str, rows: int) -> None:
        self._random = np.random.default_rng(1)
        self._root, self._users = root, rows // 10
        self._versions = self._epoch = 0
        self._materializer = Materializer(spark, root, materialized=["events"], replacing=["events"])
        self._materializer.declare([ViewDefinition("v", query)], {"events": SCHEMA}, {})
        self.views: dict[str, ViewVersion] = {}
        for start in range(0, rows, LOADED_ROWS):
            files = range(start // FILE_ROWS, (start + LOADED_ROWS) // FILE_ROWS)
            self._run([self._block(files)], [])
            self._materializer.tidy()
        self.forget_s: list[float] = []
        self.replace_s: list[float] = []

    def turn(self, number: int) -> None:
        """A file is forgotten, and comes back with other rows."""
        path = _path(number)
        self.forget_s.append(self._timed(Correction("events", path)))
        stored = self._staged(self._rows(FILE_ROWS), [path] * FILE_ROWS)
        self.replace_s.append(self._timed(Correction("events", path, b"12345678", (stored,))))
        self._materializer.tidy()

    def close(self) -> None:
        self._materializer.close()

    def _timed(self, correction: Correction) -> float:
        started = time.perf_counter()
        self._run([], [correction])
        return time.perf_counter() - started

    def _run(self, blocks: list[Block], corrections: list[Correction]) -> None:
        self._epoch += 1
        done = self._materializer.run_epoch(self._epoch, {"events": blocks} if blocks else {}, corrections)
        self.views = dict(done.views)

    def _rows(self, count: int) -> pa.Table:
        users, kinds = self._random.integers(0, self._users, count), self._random.integers(0, 100, count)
        return pa.table([users, kinds, self._random.random(count)], schema=SCHEMA)

    def _block(self, files: range) -> Block:
        rows = self._rows(len(files) * FILE_ROWS)
        stored = self._staged(rows, [_path(each) for each in files for _ in range(FILE_ROWS)])
        return Block("benchmark", "events", rows, rows.num_rows, rows.nbytes, tuple(SCHEMA.names), stored)

    def _staged(self, rows: pa.Table, paths: list[str]) -> StoredBlock:
        self._versions += 1
        lineage = [paths, np.full(len(paths), self._versions), np.arange(len(paths)) % FILE_ROWS]
        arrays = [pa.array(values, field.type) for values, field in zip(lineage, LINEAGE, strict=True)]
        table = pa.table([*arrays, *rows.columns], schema=pa.schema([*LINEAGE, *SCHEMA]))
        place = stored_rows_path("events", 1)
        return StoredBlock(place, table.schema, FragmentStager(self._root.child(place)).stage(table))


def _path(number: int) -> str:
    return f"year=2026/month=11/part-{number:05}.parquet"


def _seconds(work: Callable[[], object], turns: int) -> float:
    taken = []
    for _ in range(turns):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return median(taken)


def measure_view(spark: SparkSession, kind: str, rows: int, turns: int) -> Row:
    with tempfile.TemporaryDirectory() as directory:
        root = Location(directory)
        view = Corrected(spark, root, QUERIES[kind], rows)
        for number in range(turns):
            view.turn(7 * number)
        version = view.views[stored_rows_name("events")]
        view.close()
        location = root.child(version.path)
        dataset = open_dataset(location, version.version)

        def by_spark() -> None:
            frame_of_dataset(spark, location, dataset, SCHEMA.names).createOrReplaceTempView("events")
            frame = spark.sql(QUERIES[kind])
            table_of_frame(frame, arrow_schema(frame.schema))

        def by_duckdb() -> None:
            with duckdb.connect() as connection:
                connection.execute("SET threads = 2")
                connection.register("events", dataset.to_table(columns=SCHEMA.names))
                connection.sql(QUERIES[kind].replace("percentile(amount, 0.5)", "median(amount)")).to_arrow_table()

        recomputed = Number(_seconds(by_spark, 2), "s"), Number(_seconds(by_duckdb, 2), "s")
    forget, replaced = Number(median(view.forget_s), "s"), Number(median(view.replace_s), "s")
    ratio = forget.value / recomputed[0].value
    return Row(kind, (forget, replaced, *recomputed), ratio, Target(TARGETS_S[kind], "s"))


def measure(options: argparse.Namespace) -> Result:
    spark = start_local_session(SparkSettings(executor_cores=2, driver_memory="4g"), "corrections")
    warm_up(spark)
    rows = tuple(measure_view(spark, kind, options.rows, options.turns) for kind in QUERIES)
    spark.stop()
    caption = (
        f"A file of {FILE_ROWS:,} of {options.rows:,} rows, in one view of {options.rows // 10:,} groups, of floats 100"
    )
    columns = ("forget", "replace", "recomputed by Spark", "recomputed by DuckDB")
    return Result((Table(columns, rows, "forget, of a recomputation by Spark", caption),))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rows", type=int, default=5_000_000)
    arguments.add_argument("--turns", type=int, default=5)
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()

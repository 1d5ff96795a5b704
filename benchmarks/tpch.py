"""TPC-H: an epoch that changes a thousandth of the rows, beside the same query by Spark over all of them.

    python -m benchmarks.tpch [--scale 1] [--epochs 10] [--queries q5,q13]

The queries of `benchmarks/tpch_queries.py`, one after the other, each in a root of its own in one local session.  The
first epoch has all rows but those of the later ones.  Each later epoch has a thousandth of the orders, with their line
items, and a file with a thousandth of the customers takes the place of one in which they live in another nation.
Spark's own time is for the query over the Parquet files of all tables, in the same session.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from actors.protocol.blocks import Block, Correction, StoredBlock
from actors.schemas.safe_types import safe_schema
from benchmarks.command import run_benchmark
from benchmarks.result import TIMES, Number, Result, Row, Table, Target
from benchmarks.tpch_queries import QUERIES, TABLES
from spark_bridge.engine.catalyst.arrow_frames import arrow_schema, table_of_frame
from spark_bridge.engine.session.local_session import start_local_session
from spark_bridge.engine.session.settings import SparkSettings
from spark_bridge.engine.session.warm_up import warm_up
from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from state.lance.fragment_stager import FragmentStager
from state.location import Location
from state.tables.fingerprint import path_fingerprint
from state.tables.stored_rows import FILE_FIELD, LINEAGE, stored_rows_path

SHARE = 1_000
WARM_EPOCHS = 10
FASTER = Target(10, TIMES, at_least=True)

Tables = Mapping[str, pa.Table]


def read_tables(place: Path, scale: float) -> Tables:
    """The tables at a scale, made by tpchgen-cli as Parquet files in a directory."""
    generator = Path(sys.executable).with_name("tpchgen-cli")
    command = [str(generator), "parquet", "-s", str(scale), f"--output-dir={place}"]
    subprocess.run(command, check=True, capture_output=True)
    read = {name: pq.read_table(place / f"{name}.parquet") for name in TABLES}
    return {name: table.cast(safe_schema(table.schema)).replace_schema_metadata(None) for name, table in read.items()}


class Followed:
    """One query over the tables, with its first rows."""

    def __init__(self, spark: SparkSession, root: Location, query: str, tables: Tables, epochs: int) -> None:
        self._tables, self._root, self._epoch, self._turns, self._versions = tables, root, 0, 0, 0
        schemas = {name: table.schema for name, table in tables.items()}
        self.materializer = Materializer(spark, root, materialized=["customer"], replacing=["customer"])
        self.plan = self.materializer.declare([ViewDefinition("v", query)], schemas, {}).plans["v"]
        keys = pc.sort_indices(tables["orders"]["o_orderkey"])
        keys = tables["orders"]["o_orderkey"].take(keys)
        step = len(keys) // SHARE
        self._bounds = [keys[len(keys) - step * (epochs - each) - 1].as_py() for each in range(epochs + 1)]
        first = {name: table for name, table in tables.items() if name in self.plan.sources}
        for name, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
            if name in first:
                first[name] = first[name].filter(pc.less_equal(first[name][key], self._bounds[0]))
        customers = first.pop("customer", None)
        self._customers = 0 if customers is None else max(1, customers.num_rows // SHARE)
        starts = range(0, customers.num_rows, self._customers) if customers is not None else ()
        files = {str(at): tables["customer"].slice(at, self._customers) for at in starts}
        started = time.perf_counter()
        shown = self._run(first, files, {})[1]
        while not shown:
            time.sleep(0.1)
            shown = self._run({}, {}, {})[1]
        self.first_s = time.perf_counter() - started

    def turn(self) -> float:
        """Runs an epoch.  Returns its seconds."""
        low, high = self._bounds[self._turns : self._turns + 2]
        self._turns += 1
        new = {}
        for name, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
            if name in self.plan.sources:
                column = self._tables[name][key]
                new[name] = self._tables[name].filter(pc.and_(pc.greater(column, low), pc.less_equal(column, high)))
        moved = {}
        if self._customers:
            at = self._turns * self._customers
            rows = self._tables["customer"].slice(at, self._customers)
            nations = pc.bit_wise_and(pc.add(rows["c_nationkey"], self._turns), 15).cast(rows["c_nationkey"].type)
            moved = {str(at): rows.set_column(rows.schema.get_field_index("c_nationkey"), "c_nationkey", nations)}
        return self._run(new, {}, moved)[0]

    def _run(self, rows: Tables, customers: Tables, moved: Tables) -> tuple[float, bool]:
        """Runs an epoch.  Returns its seconds, and whether it shows the view."""
        blocks = {name: [self._block(name, table)] for name, table in rows.items()}
        if customers:
            whole = pa.concat_tables(_with_file(path, each) for path, each in customers.items())
            blocks["customer"] = [self._block("customer", whole, self._stored(customers))]
        corrections = [
            Correction("customer", path, b"12345678", (self._stored({path: each}),)) for path, each in moved.items()
        ]
        self._epoch += 1
        started = time.perf_counter()
        done = self.materializer.run_epoch(self._epoch, blocks, corrections)
        ended = time.perf_counter()
        self.materializer.tidy()
        return ended - started, "v" in done.views

    def _block(self, source: str, rows: pa.Table, stored: StoredBlock | None = None) -> Block:
        used = self.materializer.columns()[source]
        seen = rows if used is None else rows.select([name for name in rows.column_names if name in used])
        return Block("benchmark", source, seen, seen.num_rows, seen.nbytes, tuple(seen.column_names), stored)

    def _stored(self, files: Tables) -> StoredBlock:
        self._versions += 1
        rows = pa.concat_tables(files.values())
        paths = [path for path, each in files.items() for _ in range(each.num_rows)]
        lineage = [paths, [self._versions] * rows.num_rows, range(rows.num_rows)]
        arrays = [pa.array(values, field.type) for values, field in zip(lineage, LINEAGE, strict=True)]
        table = pa.table([*arrays, *rows.columns], schema=pa.schema([*LINEAGE, *rows.schema]))
        place = stored_rows_path("customer", 1)
        return StoredBlock(place, table.schema, FragmentStager(self._root.child(place)).stage(table))


def _with_file(path: str, rows: pa.Table) -> pa.Table:
    files = pa.repeat(pa.scalar(path_fingerprint("customer", path), FILE_FIELD.type), rows.num_rows)
    return rows.append_column(FILE_FIELD, files)


def batch_s(spark: SparkSession, place: Path, query: str) -> float:
    """Seconds in which Spark computes a query from the Parquet files; the best one of three."""
    for name in TABLES:
        spark.read.parquet(str(place / f"{name}.parquet")).createOrReplaceTempView(name)
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        frame = spark.sql(query)
        table_of_frame(frame, arrow_schema(frame.schema))
        seconds.append(time.perf_counter() - started)
    for name in TABLES:
        spark.catalog.dropTempView(name)
    return min(seconds)


def measure(options: argparse.Namespace) -> Result:
    spark = start_local_session(SparkSettings(executor_cores=2, driver_memory="6g"), "tpch")
    warm_up(spark)
    rows = []
    with tempfile.TemporaryDirectory() as place:
        tables = read_tables(Path(place), options.scale)
        for name in options.queries.split(",") if options.queries else QUERIES:
            with tempfile.TemporaryDirectory() as root:
                view = Followed(spark, Location(root), QUERIES[name], tables, WARM_EPOCHS + options.epochs)
                seconds = [view.turn() for _ in range(WARM_EPOCHS + options.epochs)][WARM_EPOCHS:]
                view.materializer.close()
            by_spark = batch_s(spark, Path(place), QUERIES[name])
            numbers = (Number(median(seconds), "s"), Number(by_spark, "s"), Number(view.first_s, "s"))
            rows.append(Row(name, numbers, by_spark / median(seconds), FASTER))
    spark.stop()
    columns = ("an epoch, p50", "Spark, all rows", "the first rows, until they show")
    caption = f"Scale {options.scale:g}: an epoch changes a thousandth of the rows"
    return Result((Table(columns, tuple(rows), "times as fast", caption),))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--scale", type=float, default=1.0)
    arguments.add_argument("--epochs", type=int, default=10)
    arguments.add_argument("--queries", default="", help="names of queries, by commas; all without")
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()

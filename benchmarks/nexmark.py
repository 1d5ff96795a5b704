"""Nexmark: rows a second of each query, as a view and by Spark Structured Streaming, over the same files.

    python -m benchmarks.nexmark [--files 8] [--events 40000] [--queries q4,q9]

The queries of `benchmarks/nexmark_queries.py`, one after the other, each in a root of its own in one local session,
from Parquet files of persons, auctions and bids.  An epoch reads the next file of each source that the query needs; so
does a batch of Spark.  The first files are not measured.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from actors.protocol.blocks import Block
from benchmarks.command import run_benchmark
from benchmarks.nexmark_events import SCHEMAS, Nexmark, write_files
from benchmarks.nexmark_queries import LEFT_OUT, QUERIES, SOURCES
from benchmarks.result import Number, Result, Row, Table
from spark_bridge.engine.session.local_session import start_local_session
from spark_bridge.engine.session.settings import SparkSettings
from spark_bridge.engine.session.warm_up import warm_up
from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from state.errors import NotIncrementalError
from state.location import Location

WARM_FILES = 2
EVENTS = Nexmark(seed=1, start=datetime(2026, 3, 1, 23, 59, tzinfo=UTC), gap_us=100)
"""Ten thousand events a second."""


def view_s(spark: SparkSession, place: Path, query: str, sources: tuple[str, ...], files: int) -> float:
    """Seconds of the epochs of a view after the first ones, the reading of files and the folding in between included.

    Raises:
        NotIncrementalError: the query cannot be maintained epoch by epoch.
    """
    seconds = []
    with tempfile.TemporaryDirectory() as root:
        materializer = Materializer(spark, Location(root))
        materializer.declare([ViewDefinition("v", query)], SCHEMAS, {})
        columns = materializer.columns()
        for number in range(files):
            started = time.perf_counter()
            blocks = {}
            for name in sources:
                path = place / name / f"{number:04}.parquet"
                if path.exists():
                    rows = pq.read_table(path, columns=list(columns[name]))
                    blocks[name] = [
                        Block("benchmark", name, rows, rows.num_rows, rows.nbytes, tuple(rows.column_names))
                    ]
            materializer.run_epoch(number + 1, blocks)
            materializer.tidy()
            seconds.append(time.perf_counter() - started)
        materializer.close()
    return sum(seconds[WARM_FILES:])


def by_spark(place: Path, names: list[str]) -> dict[str, dict[str, Any]]:
    """What `benchmarks.contenders.spark_nexmark` prints."""
    command = [sys.executable, "-m", "benchmarks.contenders.spark_nexmark", str(place), str(WARM_FILES), *names]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    found: dict[str, dict[str, Any]] = json.loads(printed.splitlines()[-1])
    return found


def rows_of(place: Path, sources: tuple[str, ...], files: int) -> int:
    """The measured rows of these sources."""
    paths = [place / name / f"{number:04}.parquet" for name in sources for number in range(WARM_FILES, files)]
    return sum(pq.read_metadata(path).num_rows for path in paths if path.exists())


def measure(options: argparse.Namespace) -> Result:
    names = options.queries.split(",") if options.queries else list(QUERIES)
    remarks = [f"{name} is left out: {reason}." for name, reason in LEFT_OUT.items()]
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / "files"
        write_files(EVENTS, place, options.files, options.events)
        streamed = by_spark(place, names)
        spark = start_local_session(SparkSettings(executor_cores=2, driver_memory="6g"), "nexmark")
        warm_up(spark)
        for name in names:
            sources = SOURCES.get(name, ("bid",))
            count, theirs = rows_of(place, sources, options.files), streamed[name]
            own, other, ratio = None, None, None
            note = f"Spark refuses it: {theirs['refused']}" if "refused" in theirs else f"Spark: {theirs['mode']}"
            try:
                own = Number(count / view_s(spark, place, QUERIES[name], sources, options.files), "rows/s")
            except NotIncrementalError:
                note = f"not maintained as a view; {note}"
            if "seconds" in theirs:
                other = Number(count / theirs["seconds"], "rows/s")
            if own is not None and other is not None:
                ratio = own.value / other.value
            rows.append(Row(name, (Number(count), own, other), ratio, note=note))
        spark.stop()
    caption = f"Files of {options.events:,} events; {options.files} of them, the first {WARM_FILES} not measured"
    return Result(
        (Table(("rows", "Slackwater", "Spark"), tuple(rows), "times as fast", caption),), remarks=tuple(remarks)
    )


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--files", type=int, default=8)
    arguments.add_argument("--events", type=int, default=40_000)
    arguments.add_argument("--queries", default="", help="names of queries, by commas; all without")
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()

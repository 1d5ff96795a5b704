"""Cost of stored rows: the same files into the same view, with and without `materialize=True`.

    python -m benchmarks.stored_rows [--turns 5] [--shapes 3]

From S3 to S3; each run is warm, and measured from the moment it is told to go on to the commit of the last row.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from itertools import islice

import obstore

import slackwater as sw
from benchmarks.bulk_reading import QUERY as ALL_COLUMNS
from benchmarks.bulk_reading import SETTINGS, large_files
from benchmarks.command import run_benchmark
from benchmarks.events import QUERY, event_files
from benchmarks.paused_run import paused_run, seconds_to_commit, upload
from benchmarks.result import TIMES, Number, Result, Row, Table
from slackwater.testing.servers.s3_server import S3Server
from state.objects.object_client import object_client

Shape = tuple[str, Callable[[], Iterator[bytes]]]
SHAPES: dict[str, Shape] = {
    "2,000 files × 500 rows, 3 columns": (QUERY, lambda: event_files(2_000, 500)),
    "4 files × 1,000,000 rows, 8 of 8 columns used": (ALL_COLUMNS, lambda: large_files(4, 1_000_000)),
    "4 files × 1,000,000 rows, 1 of 8 columns used": (
        "SELECT count(*) AS n, sum(c0) AS c0 FROM events",
        lambda: large_files(4, 1_000_000),
    ),
}


def stored_bytes(s3: S3Server, bucket: str) -> int:
    """The size of everything that was staged for the rows."""
    listed = obstore.list(object_client(s3.location(bucket, "root/views")))
    return sum(each["size"] for batch in listed for each in batch if ".rows-" in each["path"])


def measure(shape: Shape, turns: int, *, materialize: bool) -> tuple[float, float]:
    """Seconds of the median turn, and the stored bytes for each byte of the files."""
    query, files = shape
    seconds = []
    with S3Server() as s3:
        bucket = s3.create_bucket("stored")
        with paused_run(s3, bucket, query, files(), settings=SETTINGS, materialize=materialize) as run:
            for turn in range(turns):
                seconds.append(seconds_to_commit(run, upload(s3, bucket, f"{turn}", files())))
                run.pause()
            report = run.stop()
        stored = stored_bytes(s3, bucket)
        if materialize:
            rows = sw.open(f"s3://{bucket}/root", s3.storage_options).snapshot().rows("events").count_rows()
            assert rows == report.rows, rows
    return statistics.median(seconds), stored / sum(map(len, files())) / (turns + 1)


def measure_all(options: argparse.Namespace) -> Result:
    rows = []
    for name, shape in islice(SHAPES.items(), options.shapes):
        without, _ = measure(shape, options.turns, materialize=False)
        stored, size = measure(shape, options.turns, materialize=True)
        numbers = Number(without, "s"), Number(stored, "s"), Number(size, TIMES)
        rows.append(Row(name, numbers, ratio=stored / without))
    columns = "without", "with stored rows", "stored, of the files' bytes"
    caption = f"Medians of {options.turns} turns" if options.turns > 1 else "One turn"
    return Result((Table(columns, tuple(rows), "of the time without", caption),))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--turns", type=int, default=5)
    arguments.add_argument("--shapes", type=int, default=len(SHAPES), help="only the first so many")
    run_benchmark(measure_all, arguments)


if __name__ == "__main__":
    main()

"""Freshness of one view, before and during the backfill of another one.

    python -m benchmarks.beside_backfill [--rows 4000000] [--files 60] [--materialize]

The bucket holds the rows in files of 200,000; the later view groups them by another column.  Files of 100 rows come
one at a time, first alone, then while its backfill runs, from the files or from stored rows.
"""

from __future__ import annotations

import argparse
import io
import random
import statistics
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import slackwater as sw
from benchmarks.command import run_benchmark
from benchmarks.events import QUERY, event_files
from benchmarks.result import TIMES, Number, Result, Row, Table, Target
from slackwater.testing.servers.s3_server import S3Server

FILE_ROWS = 200_000
WARM_FILES = 20
LATE = "SELECT kind, user % 10000 AS user, count(*) AS n, max(amount) AS most FROM events GROUP BY kind, user % 10000"


def large_file(seed: int) -> bytes:
    """The columns of `event_files`."""
    rng = np.random.default_rng(seed)
    kinds = pa.array(["view", "click", "buy"])
    table = pa.table(
        {
            "user": rng.integers(0, 100_000, FILE_ROWS),
            "amount": rng.random(FILE_ROWS),
            "kind": kinds.take(pa.array(rng.integers(0, 3, FILE_ROWS))),
        }
    )
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


class Trickle:
    """Puts small files, one at a time, and takes the time until each is committed."""

    def __init__(self, run: sw.Run, client: Any) -> None:
        self._run, self._client = run, client
        self._rng = random.Random(1)
        self._files = event_files(10_000, 100)

    def seconds(self, while_true: int | str) -> list[float]:
        """For so many files, or as long as the backfill of this view runs."""
        found: list[float] = []
        while len(found) < while_true if isinstance(while_true, int) else while_true in self._run.status().backfills:
            done = self._run.report().files
            self._client.put_object(Bucket="bench", Key=f"in/small-{done:06}.parquet", Body=next(self._files))
            started = time.perf_counter()
            while self._run.report().files <= done:
                self._run.wait(timeout_s=0.002)
            found.append(time.perf_counter() - started)
            time.sleep(self._rng.random() * 0.3)
        return found


def measure(given: argparse.Namespace) -> Result:
    with S3Server() as s3:
        bucket = s3.create_bucket("bench")
        client = s3.client()
        for number in range(given.rows // FILE_ROWS):
            client.put_object(Bucket=bucket, Key=f"in/{number:06}.parquet", Body=large_file(number))
        pipeline = sw.Pipeline("bench", f"s3://{bucket}/root", storage_options=s3.storage_options)
        discovery = sw.Listing(interval_s=0.1, max_requests_per_hour=72_000)
        pipeline.source(
            "events", f"s3://{bucket}/in", format="parquet", discovery=discovery, materialize=given.materialize
        )
        pipeline.view("by_user", QUERY)
        with pipeline.start() as run:
            run.wait(until="caught_up")
            trickle = Trickle(run, client)
            trickle.seconds(WARM_FILES)
            before = trickle.seconds(given.files)
            started = time.perf_counter()
            run.add_view("late", LATE)
            meanwhile = trickle.seconds("late")
            took = time.perf_counter() - started
        rows = sw.open(pipeline.root.url, s3.storage_options).snapshot().view("late").to_arrow()["n"]
        total = sum(rows.to_pylist())
    print(f"the later view counts {total:,} rows")
    return Result((_arrivals(before, meanwhile), _backfill(given, took)))


def _arrivals(before: list[float], meanwhile: list[float]) -> Table:
    p50s, p95s = (
        [statistics.quantiles(each, n=100, method="inclusive")[cut] for each in (before, meanwhile)] for cut in (49, 94)
    )
    ratio, target = p95s[1] / p95s[0], Target(1.5, TIMES)
    alone = Row(f"before, {len(before)} files", (Number(p50s[0], "s"), Number(p95s[0], "s")))
    beside = Row(f"meanwhile, {len(meanwhile)} files", (Number(p50s[1], "s"), Number(p95s[1], "s")), ratio, target)
    return Table(("p50", "p95"), (alone, beside), "of the p95 before", "From the PUT to the commit")


def _backfill(given: argparse.Namespace, took: float) -> Table:
    name = f"{given.rows:,} rows from {'stored rows' if given.materialize else 'files'}"
    row = Row(name, (Number(took, "s"), Number(given.rows / took, "rows/s")))
    return Table(("seconds", "speed"), (row,), caption="The backfill")


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rows", type=int, default=4_000_000)
    arguments.add_argument("--files", type=int, default=60)
    arguments.add_argument("--materialize", action="store_true")
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()

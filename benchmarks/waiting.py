"""Seconds of `run.wait(until="caught_up")`, and epochs for files that are written together.

    python -m benchmarks.waiting [--waits 10] [--bursts 8]

Three sources of an S3 bucket, one for each format, with seven views over their union.  Sources are listed every 10 s
for the waits, and every 0.5 s for the bursts.  A view joins a static table, of files or of rows that came with the
pipeline.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

import slackwater as sw
from benchmarks.command import run_benchmark
from benchmarks.result import TIMES, Number, Result, Row, Table, Target
from slackwater.testing.servers.s3_server import S3Server

FORMATS = ("csv", "json", "parquet")
FILES = 6
ROWS = 900
_SCHEMA = "id bigint, place string, amount double"
_PLACES = [{"place": f"p{number}", "country": f"c{number % 5}"} for number in range(20)]
_UNION = " UNION ALL ".join(f"SELECT * FROM {name}s" for name in FORMATS)
_VIEWS = {
    "by_place": "SELECT place, count(*) AS n, sum(amount) AS amount FROM ({all}) GROUP BY place",
    "by_id": "SELECT id % 100 AS bucket, max(amount) AS largest FROM ({all}) GROUP BY id % 100",
    "all_rows": "SELECT count(*) AS n, sum(amount) AS amount FROM ({all})",
    "large": "SELECT id, amount FROM ({all}) WHERE amount > 0.99",
    "places": "SELECT DISTINCT place FROM ({all})",
    "smallest": "SELECT place, min(amount) AS amount FROM ({all}) GROUP BY place",
    "latest": "SELECT place, max(id) AS id FROM ({all}) GROUP BY place",
}
_COUNTRIES = "SELECT country, count(*) AS n FROM ({all}) JOIN areas USING (place) GROUP BY country"
_TABLES = {"": "no static table", "frame": "one that came with the pipeline", "files": "one of files"}
_PHASES = ("align_s", "spark_s", "collect_s")
_SETTLED_S = 2.5
"""A pause that is longer than everything a burst sets off takes here to begin."""


class Bucket:
    """The bucket of one pipeline, and the files that are written to it."""

    def __init__(self, s3: S3Server, name: str) -> None:
        self.storage_options, self._client, self._name = s3.storage_options, s3.client(), s3.create_bucket(name)
        self._files = 0

    @property
    def url(self) -> str:
        return f"s3://{self._name}"

    def write(self, files: int = FILES) -> None:
        """Writes this number of files, the formats in turn."""
        contents = [self._content(number) for number in range(files)]
        for key, content in contents:
            self._client.put_object(Bucket=self._name, Key=key, Body=content)

    def write_areas(self) -> None:
        rows = _as_csv(pa.Table.from_pylist(_PLACES))
        self._client.put_object(Bucket=self._name, Key="areas/1.csv", Body=rows)

    def _content(self, number: int) -> tuple[str, bytes]:
        self._files += 1
        ids = range(self._files * ROWS, (self._files + 1) * ROWS)
        rows = [{"id": each, "place": f"p{each % 20}", "amount": each * 7919 % 1000 / 1000} for each in ids]
        kind = FORMATS[number % len(FORMATS)]
        return f"{kind}/{self._files:06}.{kind}", _WRITERS[kind](pa.Table.from_pylist(rows))

    @contextmanager
    def run(self, interval_s: float, table: str = "") -> Iterator[tuple[sw.Run, sw.Pipeline]]:
        """A run that has caught up.

        Args:
            table: `frame` for a static table that came with the pipeline, `files` for one of files.
        """
        pipeline = sw.Pipeline("bench", f"{self.url}/root", storage_options=self.storage_options)
        # By the defaults, waits in a row would use up the requests of the hour.
        discovery = sw.Listing(interval_s=interval_s, max_requests_per_hour=1_000_000)
        for kind in FORMATS:
            pipeline.source(f"{kind}s", f"{self.url}/{kind}", format=kind, schema=_SCHEMA, discovery=discovery)
        for name, query in _VIEWS.items():
            pipeline.view(name, query.format(all=_UNION))
        if table == "frame":
            pipeline.table("areas", _PLACES)
        elif table == "files":
            self.write_areas()
            pipeline.table("areas", f"{self.url}/areas", format="csv", schema="place string, country string")
        if table:
            pipeline.view("countries", _COUNTRIES.format(all=_UNION))
        self.write()
        with pipeline.start() as run:
            run.wait(until="caught_up")
            yield run, pipeline


def _as_csv(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    arrow_csv.write_csv(table, sink)
    return sink.getvalue()


def _as_json(table: pa.Table) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in table.to_pylist()).encode()


def _as_parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


_WRITERS = {"csv": _as_csv, "json": _as_json, "parquet": _as_parquet}


def waits(bucket: Bucket, table: str, count: int) -> tuple[list[float], list[float], list[float]]:
    """Seconds of waits without news, of waits for one new file, and of the epochs with these files."""
    idle, busy = list[float](), list[float]()
    with bucket.run(10.0, table) as (run, pipeline):
        for seconds, files in (*((idle, 0),) * count, *((busy, 1),) * count):
            bucket.write(files)
            began = time.perf_counter()
            run.wait(until="caught_up")
            seconds.append(time.perf_counter() - began)
        store = sw.open(pipeline.root.url, pipeline.root.storage_options)
    epochs = sorted((each for each in store.epochs().to_pylist() if each["rows"]), key=lambda each: each["epoch"])
    return idle, busy, [sum(each[name] for name in _PHASES) for each in epochs[-count:]]


def bursts(bucket: Bucket, count: int) -> tuple[list[int], list[float]]:
    """Epochs of each burst, and seconds from the last PUT to the last commit."""
    epochs, seconds = list[int](), list[float]()
    with bucket.run(0.5) as (run, _):
        for number in range(count + 2):
            before, files = run.report().epochs, run.report().files
            bucket.write()
            began = time.perf_counter()
            while run.report().files < files + FILES:
                run.wait(timeout_s=0.002)
            seconds.append(time.perf_counter() - began)
            # At another phase of the listings each time.
            run.wait(timeout_s=_SETTLED_S + number * 0.07)
            epochs.append(run.report().epochs - before)
    return epochs[2:], seconds[2:]


def measure(options: argparse.Namespace) -> Result:
    rows = []
    with S3Server() as s3:
        for table, name in _TABLES.items():
            idle, busy, epochs = waits(Bucket(s3, f"waits{table}"), table, options.waits)
            usual = statistics.median(busy)
            rows.append(
                Row(
                    name,
                    (Number(statistics.median(idle), "s"), Number(usual, "s"), Number(max(*idle, *busy), "s")),
                    ratio=usual / statistics.median(epochs),
                    target=Target(3.0, TIMES),
                )
            )
        counts, seconds = bursts(Bucket(s3, "bursts"), options.bursts)
    waited = Table(
        ("nothing new", "one new file", "longest"), tuple(rows), "one new file, of its epoch",
        f"`run.wait`, p50 of {options.waits} waits; sources are listed every 10 s",
    )  # fmt: skip
    burst = Table(
        ("epochs", "most", "to the last commit"),
        (
            Row(
                f"{FILES} files in three formats, written together",
                (Number(statistics.mean(counts)), Number(max(counts)), Number(statistics.median(seconds), "s")),
                target=Target(1.25),
            ),
        ),
        caption=f"Mean and most of {options.bursts} bursts; sources are listed every 0.5 s",
    )
    return Result((waited, burst))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--waits", type=int, default=10)
    arguments.add_argument("--bursts", type=int, default=8)
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()

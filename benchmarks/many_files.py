"""100,000 files of 1 KB in S3, read to the end: the rate, and the memory of each actor.

    python -m benchmarks.many_files [--files 100000]

Beside it one process with obstore and pyarrow alone reads a tenth of the same files, 32 at a time: no ledger, no view.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import obstore
import pyarrow as pa
import pyarrow.csv as arrow_csv

import slackwater as sw
from actors.objects.object_store import ObjectStore
from benchmarks.command import run_benchmark
from benchmarks.memory_meter import MemoryMeter
from benchmarks.paused_run import paused_run, seconds_to_commit, upload
from benchmarks.result import LinePlot, Number, Result, Row, Table, Target
from slackwater.testing.servers.s3_server import S3Server
from state.objects.object_client import object_client

QUERY = "SELECT kind, count(*) AS n, sum(amount) AS total FROM events GROUP BY kind"
SCHEMA = "user bigint, amount double, kind string"
ROWS = 50
_LINES = "".join(f"{row * 7919 % 1000:04},{row / 8:08.4f},kind-{row % 10}\n" for row in range(ROWS))


def small_files(count: int) -> Iterator[bytes]:
    """CSV files of about 1 KB, no two equal."""
    for number in range(count):
        yield f"user,amount,kind\n{number},1.0,kind-0\n{_LINES}".encode()


def read_alone(s3: S3Server, bucket: str, name: str, count: int) -> float:
    """Seconds in which obstore and pyarrow read `count` of the files, in one process."""
    location = s3.location(bucket, f"in/{name}")
    client = object_client(location)
    paths = [path for page in ObjectStore(location).list_pages() for path in page.paths][:count]
    types = arrow_csv.ConvertOptions(column_types={"user": pa.int64(), "amount": pa.float64(), "kind": pa.string()})

    def read(path: str) -> int:
        content = obstore.get(client, path).bytes()
        return int(arrow_csv.read_csv(pa.BufferReader(memoryview(content)), convert_options=types).num_rows)

    with ThreadPoolExecutor(32) as threads:
        started = time.perf_counter()
        rows = sum(threads.map(read, paths))
        seconds = time.perf_counter() - started
    assert rows == count * (ROWS + 1), rows
    return seconds


def measure(options: argparse.Namespace) -> Result:
    with S3Server() as s3:
        bucket = s3.create_bucket("many")
        with paused_run(s3, bucket, QUERY, small_files(2_000), format="csv", schema=SCHEMA) as run:
            files = upload(s3, bucket, "cold", small_files(options.files))
            alone = read_alone(s3, bucket, "cold", files // 10)
            before = run.report()
            meter = MemoryMeter(1.0)
            seconds = seconds_to_commit(run, files)
            meter.close()
            report = run.stop()
        counted = sw.open(f"s3://{bucket}/root", s3.storage_options).snapshot().view("totals").to_arrow()["n"]
        assert sum(counted.to_pylist()) == report.rows == (files + 2_000) * (ROWS + 1)
    requests = report.requests - before.requests
    alone_per_s, per_s = files / 10 / alone, files / seconds
    speed = Table(
        ("files",),
        (
            Row(
                "Slackwater, to the commit of the last row",
                (Number(per_s, "files/s"),),
                per_s / alone_per_s,
                Target(800, "files/s", at_least=True),
            ),
            Row(
                "obstore and pyarrow in one process, a tenth of the files",
                (Number(alone_per_s, "files/s"),),
                note="no ledger, no view, no recovery",
            ),
        ),
        "of the speed of obstore and pyarrow alone",
        f"{files:,} CSV files of 1 KB",
    )
    # Each is read by one GET; the others are listings.
    cost = Row("requests", (Number(requests),), target=Target(int(files * 1.05)))
    epochs = Row("epochs", (Number(report.epochs - before.epochs),))
    lines = {kind: tuple(meter.lines[kind]) for kind in ("ListActor", "FetchActor", "Coordinator")}
    title = f"Memory of the actors over {files:,} files of 1 KB"
    plot = LinePlot("many_files", title, "seconds", "MiB, without what is shared", lines)
    return Result((speed, Table(("count",), (cost, epochs)), _memory(lines)), lines=(plot,))


def _memory(lines: Mapping[str, Sequence[tuple[float, float]]]) -> Table:
    rows = []
    for name, points in lines.items():
        fifth = max(1, len(points) // 5)
        first, last, ever = (max(held for _, held in part) for part in (points[:fifth], points[-fifth:], points))
        rows.append(Row(name, (Number(first, "MiB"), Number(last, "MiB"), Number(ever, "MiB"))))
    return Table(("first fifth of the run", "last fifth", "highest"), tuple(rows), caption="Memory of the actors")


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--files", type=int, default=100_000)
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()

"""A warm, paused run, and the seconds that it takes for the files of the pause."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice

import slackwater as sw
from slackwater.testing.servers.s3_server import S3Server

_BATCH = 5_000


@contextmanager
def paused_run(
    s3: S3Server,
    bucket: str,
    query: str,
    warm: Iterable[bytes],
    *,
    format: str = "parquet",
    schema: str | None = None,
    settings: sw.Settings = sw.Settings(),
    materialize: bool = False,
) -> Iterator[sw.Run]:
    """A run over `events`, the files under `in/`, that has already taken some of them and is paused."""
    pipeline = sw.Pipeline("bench", f"s3://{bucket}/root", storage_options=s3.storage_options, settings=settings)
    discovery = sw.Listing(interval_s=0.1, max_requests_per_hour=720_000)
    pipeline.source(
        "events", f"s3://{bucket}/in", format=format, schema=schema, discovery=discovery, materialize=materialize
    )
    pipeline.view("totals", query)
    upload(s3, bucket, "warm", warm)
    with pipeline.start() as run:
        run.wait(until="caught_up")
        run.pause()
        yield run


def upload(s3: S3Server, bucket: str, name: str, files: Iterable[bytes]) -> int:
    """Puts files into `in/<name>/`; returns how many."""
    count, contents = 0, iter(files)
    with ThreadPoolExecutor(8) as threads:
        while batch := list(islice(contents, _BATCH)):
            keys = [f"in/{name}/{number:07}" for number in range(count, count + len(batch))]
            list(threads.map(lambda key, content: s3.put(bucket, key, content), keys, batch))
            count += len(batch)
    return count


def seconds_to_commit(run: sw.Run, files: int) -> float:
    """From `resume` to the commit of the last of so many files."""
    expected = run.report().files + files
    started = time.perf_counter()
    run.resume()
    while run.report().files < expected:
        time.sleep(0.01)
    return time.perf_counter() - started

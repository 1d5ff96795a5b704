"""Cost of single parts: the commit of an epoch, GETs of small objects, a listing.

    python -m benchmarks.parts [--epochs 300]

Commits bring 500 rows of state each, to a local disk with both durabilities and to S3; the S3 server has the same
cores.  The time of the listing is the median of five, after a first one that loads libraries.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import obstore

from actors.objects.object_store import ObjectStore
from benchmarks.command import run_benchmark
from benchmarks.result import Number, Result, Row, Table, Target
from slackwater.testing.servers.s3_server import S3Server
from state.clock import SystemClock
from state.epoch import next_epoch
from state.lance.lance_root import LanceRoot
from state.location import Location
from state.objects.object_client import object_client
from state.tables.delta import Delta, DeltaBuilder
from state.tables.fingerprint import path_fingerprint
from state.tables.records import EpochCounts, EpochSeconds
from state.vnode import vnode_of

ROWS = 500
OBJECTS = 5_000
THREADS = 32
WARM_EPOCHS = 20
LISTINGS = 5


def epoch_delta(number: int) -> Delta:
    """So many files are seen for the first time."""
    builder = DeltaBuilder()
    for at in range(ROWS):
        path = f"part-{number:08}-{at}.parquet"
        builder.put("seen", path_fingerprint("events", path), vnode_of(path), source="events", version=b"8 bytes.")
    return builder.build()


def commit_ms(location: Location, epochs: int) -> list[float]:
    """Milliseconds of each commit after those for warming up."""
    clock = SystemClock()
    store = LanceRoot(location, clock).create_or_open()
    store.take_over()
    taken = []
    for number in range(WARM_EPOCHS + epochs):
        epoch, delta = next_epoch(clock, store.head.epoch), epoch_delta(number)
        started = time.perf_counter()
        store.commit(epoch=epoch, delta=delta, views={}, counts=EpochCounts(), seconds=EpochSeconds())
        taken.append(1e3 * (time.perf_counter() - started))
    assert store.scan("seen").num_rows == (WARM_EPOCHS + epochs) * ROWS
    return taken[WARM_EPOCHS:]


def measure_commits(s3: S3Server, epochs: int) -> Table:
    rows = []
    with tempfile.TemporaryDirectory() as synced, tempfile.TemporaryDirectory() as unsynced:
        for name, location, most_ms in (
            ('to a local disk, `durability="power_loss"`', Location(synced), 25.0),
            ('to a local disk, `durability="process"`', Location(unsynced, durability="process"), 15.0),
            ("to S3", s3.location(s3.create_bucket("commits"), "root"), 40.0),
        ):
            cuts = statistics.quantiles(commit_ms(location, epochs), n=100, method="inclusive")
            numbers = Number(cuts[49], "ms"), Number(cuts[94], "ms")
            rows.append(Row(name, numbers, target=Target(most_ms, "ms")))
    return Table(("p50", "p95"), tuple(rows), caption=f"Commit of an epoch with {ROWS} rows of state, {epochs} epochs")


def listing_s(location: Location) -> float:
    """Seconds of one listing by a new client."""
    started = time.perf_counter()
    listed = sum(len(page.paths) for page in ObjectStore(location).list_pages())
    seconds = time.perf_counter() - started
    assert listed == OBJECTS, listed
    return seconds


def measure_requests(s3: S3Server) -> Table:
    location = s3.location(s3.create_bucket("objects"))
    client = object_client(location)
    paths = [f"in/{number:06}" for number in range(OBJECTS)]
    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(lambda path: obstore.put(client, path, b"x" * 1_000), paths))
        started = time.perf_counter()
        sizes = sum(threads.map(lambda path: len(obstore.get(client, path).bytes()), paths))
        get_s = time.perf_counter() - started
    assert sizes == 1_000 * OBJECTS, sizes
    list_s = statistics.median([listing_s(location) for _ in range(LISTINGS + 1)][1:])
    rows = (
        Row(f"GETs of 1 KB by {THREADS} threads of one process", (Number(get_s, "s"), Number(OBJECTS / get_s, "/s"))),
        Row("names in listings", (Number(list_s, "s"), Number(OBJECTS / list_s, "/s"))),
    )
    return Table(("seconds", "speed"), rows, caption=f"{OBJECTS:,} objects in S3")


def measure(options: argparse.Namespace) -> Result:
    with S3Server() as s3:
        return Result((measure_commits(s3, options.epochs), measure_requests(s3)))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--epochs", type=int, default=300)
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()

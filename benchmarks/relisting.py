"""Millions of names that were seen before are listed again: names per second, bytes of memory per name, recovery.

    python -m benchmarks.relisting [--names 10000000]

Everything runs in one thread, from a page as the object store's client gives it to the list of new files: the way that
the list actor goes, without the requests themselves.  Listings are synthetic; their names come in the order of a
bucket, as do those that have arrived in between, which are spread at random over all of it.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from random import Random

import numpy as np
import numpy.typing as npt
import obstore
import pyarrow as pa

from actors.known_chunks import KnownChunks
from actors.list_executor import ListExecutor
from actors.listing_pace import ListingPace
from actors.listing_page import LISTED, ListingPage
from actors.messages import Barrier, BarrierKind
from actors.object_store import ObjectStore
from actors.page_reader import SIDE_BY_SIDE, PageReader
from actors.path_filter import PathFilter
from actors.request_budget import RequestBudget
from actors.seen_index import SeenIndex
from benchmarks.machine import describe_machine
from slackwater.testing.s3_server import S3Server
from state.clock import SystemClock
from state.delta import DeltaBuilder
from state.epoch import EpochPair
from state.fingerprint import path_fingerprints, version_fingerprints
from state.lance_root import LanceRoot
from state.location import Location
from state.object_client import object_client
from state.records import EpochCounts, EpochSeconds

PAGE = 1_000
AT_ONCE = 50_000
AT = datetime(2026, 1, 1, tzinfo=timezone.utc)
SOURCE = "events"
Numbers = npt.NDArray[np.int64]


def rows(numbers: Numbers) -> pa.Table:
    """A listing of these objects: names of 44 bytes, etags as of S3."""
    mixed = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    words = mixed.tolist()
    paths = [f"events/day={n // 100_000:05}/part-{n:012}.parquet" for n in numbers.tolist()]
    etags = [f'"{word:016x}{word ^ 0x5555555555555555:016x}"' for word in words]
    sizes = (mixed % np.uint64(1_000_000)).astype(np.int64)
    times = 1_767_225_600_000_000 + numbers * 1_000_000
    return pa.table([paths, etags, sizes, times], schema=LISTED)


def pages(numbers: Numbers) -> Iterator[ListingPage]:
    for start in range(0, len(numbers), AT_ONCE):
        table = rows(numbers[start : start + AT_ONCE])
        for at in range(0, len(table), PAGE):
            yield ListingPage(table.slice(at, PAGE).combine_chunks(), 1)


def index_of(numbers: Numbers) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """The columns of the table `seen`."""
    keys, versions = [], []
    for start in range(0, len(numbers), AT_ONCE):
        (batch,) = rows(numbers[start : start + AT_ONCE]).combine_chunks().to_batches()
        keys.append(pa.array(path_fingerprints(SOURCE, batch["path"]), pa.binary()))
        found = version_fingerprints(batch["etag"], batch["size"], batch["modified_us"])
        versions.append(pa.array(found, pa.binary(8)))
    return pa.chunked_array(keys), pa.chunked_array(versions)


class Lister:
    """A list step, and the seconds that it has taken."""

    def __init__(self, seen: SeenIndex) -> None:
        self.executor = ListExecutor(
            actor="list-events",
            source=SOURCE,
            path_filter=PathFilter("**/*.parquet"),
            pace=ListingPace(10.0, RequestBudget(None)),
            seen=seen,
            schema_known=True,
            must_settle=False,
        )
        self.seconds = self.now_s = 0.0
        self.epoch = 0
        self.barrier(BarrierKind.INITIAL)

    def barrier(self, kind: BarrierKind = BarrierKind.CHECKPOINT) -> None:
        self.epoch += 1
        pair = EpochPair(self.epoch - 1, self.epoch)
        self.executor.on_barrier(Barrier(pair, kind, list_budget={SOURCE: 1 << 40}), self.now_s)

    def list(self, numbers: Numbers) -> float:
        """One whole listing; returns its names per second of this thread's time."""
        self.now_s += 10.0
        before = self.seconds
        started = time.thread_time()
        self.executor.on_time(self.now_s)
        self.seconds += time.thread_time() - started
        for number, page in enumerate(pages(numbers)):
            started = time.thread_time()
            self.executor.on_page(page, self.now_s)
            self.seconds += time.thread_time() - started
            if number % 100 == 0:
                self.barrier()
        started = time.thread_time()
        self.executor.on_listing_end(self.now_s, AT)
        self.seconds += time.thread_time() - started
        self.barrier()
        return len(numbers) / (self.seconds - before)


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def measure_memory(keys: pa.ChunkedArray, versions: pa.ChunkedArray, numbers: Numbers) -> None:
    """Bytes per name of the index and the digests: lasting, and at the highest while names are added and listed."""
    tracemalloc.start()
    seen = SeenIndex.of_columns(keys, versions)
    lasting, _ = tracemalloc.get_traced_memory()
    print(f"  bytes of memory per name, after recovery:          {lasting / len(seen):.1f}")
    tracemalloc.reset_peak()
    for page in pages(numbers[::10] + 1):
        (batch,) = page.table.to_batches()
        found = version_fingerprints(batch["etag"], batch["size"], batch["modified_us"])
        for key, version in zip(path_fingerprints(SOURCE, batch["path"]), found, strict=True):
            seen.put(key, version)
    del page, batch, found
    now, peak = tracemalloc.get_traced_memory()
    count = len(seen)
    print(f"  with 10 % more, that were put in one by one:       {now / count:.1f}, peak {peak / count:.1f}")
    before, _ = tracemalloc.get_traced_memory()
    chunks = KnownChunks()
    for _ in range(2):
        chunks.begin_listing()
        for page in pages(numbers):
            (batch,) = page.table.to_batches()
            for chunk in chunks.unknown(batch):
                chunks.put(chunk, 1)
    del batch, page
    now, _ = tracemalloc.get_traced_memory()
    print(f"  digests of the last listing:                       {(now - before) / len(numbers):.1f}")
    tracemalloc.stop()


def measure_recovery(keys: pa.ChunkedArray, versions: pa.ChunkedArray) -> None:
    """Seconds from an open store on a local disk to the index."""
    with tempfile.TemporaryDirectory() as scratch:
        root = LanceRoot(Location(scratch), SystemClock())
        store = root.create_or_open()
        store.take_over("bench")
        epoch = store.head.epoch
        for key, version in zip(keys.chunks, versions.chunks, strict=True):
            builder = DeltaBuilder()
            columns = {"source": pa.repeat(SOURCE, len(key)), "version": version}
            builder.put_many("seen", key.to_pylist(), [0] * len(key), columns)
            epoch += 1
            store.commit(epoch=epoch, delta=builder.build(), views={}, counts=EpochCounts(), seconds=EpochSeconds())
        started = time.perf_counter()
        found = LanceRoot(Location(scratch), SystemClock()).open(read_only=True).scan("seen")
        scanned = time.perf_counter() - started
        seen = SeenIndex.of_columns(found["key"], found["version"])
        total = time.perf_counter() - started
        print(f"  recovery of {len(seen):,} rows: {total:.2f} s, of which reading {scanned:.2f} s")


def measure_side_by_side(names: int, latency_s: float) -> None:
    """Seconds of a listing as a whole and of one that is divided, on a real S3 server that answers late."""
    with S3Server() as s3:
        bucket = s3.create_bucket("relisting")
        client = object_client(s3.location(bucket))
        with ThreadPoolExecutor(32) as threads:
            list(threads.map(lambda n: obstore.put(client, f"in/day={n % 50:02}/{n:06}", b"x"), range(names)))
        proxy = s3.fault_proxy(Random(1))
        proxy.on("LIST").slow(latency_s)
        reader = PageReader(ObjectStore(Location(f"s3://{bucket}/in", proxy.storage_options)))
        print(f"  {names:,} names in S3, {1000 * latency_s:.0f} ms a request")
        for how in ("as a whole  ", "side by side"):
            requests = len(proxy.requests)
            started = time.perf_counter()
            reader.begin()
            listed = sum(page.table.num_rows for page in iter(lambda: reader.read(SIDE_BY_SIDE), None) if page)
            seconds = time.perf_counter() - started
            assert listed == names, listed
            requests = len(proxy.requests) - requests
            print(f"    {how}: {seconds:.2f} s, {requests} requests, {names / seconds:,.0f} names/s")


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--names", type=int, default=10_000_000)
    arguments.add_argument("--in-bucket", type=int, default=32_000)
    arguments.add_argument("--latency-ms", type=float, default=30.0)
    options = arguments.parse_args()
    print(describe_machine())
    measure_side_by_side(options.in_bucket, options.latency_ms / 1000)
    # Odd numbers are names that come later, in between.
    numbers = 2 * np.arange(options.names, dtype=np.int64)
    keys, versions = index_of(numbers)
    print(f"{options.names:,} names")
    measure_recovery(keys, versions)
    measure_memory(keys, versions, numbers)
    before = resident()
    lister = Lister(SeenIndex.of_columns(keys, versions))
    del keys, versions
    print(f"  first listing after a start, every name looked up: {lister.list(numbers):,.0f} names/s")
    print(f"  nothing has changed:                               {lister.list(numbers):,.0f} names/s")
    rng = np.random.default_rng(1)
    for share in (0.0001, 0.001, 0.01):
        arrived = 2 * rng.integers(0, options.names, int(options.names * share)) + 1
        numbers = np.union1d(numbers, arrived)
        print(f"  {share:.2%} more have arrived, anywhere:              {lister.list(numbers):,.0f} names/s")
    print(f"  resident memory beyond the beginning: {(resident() - before) / options.names:.1f} bytes per name")


if __name__ == "__main__":
    main()

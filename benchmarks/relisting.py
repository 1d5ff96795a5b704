"""Millions of names that were seen before are listed again: names per second, bytes of memory per name, recovery.

    python -m benchmarks.relisting [--names 10000000] [--in-bucket 32000]

Everything runs in one thread, from a page as the object store's client gives it to the list of new files: the way that
the list actor goes, without the requests themselves.  Listings are synthetic; their names come in the order of a
bucket, as do those that have arrived in between, which are spread at random over all of it.
"""

from __future__ import annotations

import argparse
import pickle
import resource
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from random import Random

import numpy as np
import numpy.typing as npt
import obstore
import pyarrow as pa
import pyarrow.compute as pc

from actors.listing.instructions import ListInstruction
from actors.listing.list_executor import ListExecutor
from actors.listing.listing_digests import ListingDigests
from actors.listing.listing_pace import ListingPace
from actors.listing.request_budget import RequestBudget
from actors.names.name_executor import NameExecutor
from actors.names.name_mapping import NameMapping
from actors.names.name_shards import Names, NameShards, SendToNames
from actors.names.seen_index import SeenIndex
from actors.names.seen_piece import SeenLoader, SeenPiece
from actors.objects.listing_page import LISTED, ListingPage
from actors.objects.object_store import ObjectStore
from actors.objects.page_reader import SIDE_BY_SIDE, PageReader
from actors.protocol.barrier import Barrier, BarrierKind
from actors.protocol.instructions import Send
from actors.sources.path_filter import PathFilter
from benchmarks.command import run_benchmark
from benchmarks.result import Number, Result, Row, Table, Target
from slackwater.testing.servers.s3_server import S3Server
from state.clock import SystemClock
from state.epoch import EpochPair
from state.lance.lance_root import LanceRoot
from state.location import Location
from state.objects.object_client import object_client
from state.tables.delta import DeltaBuilder
from state.tables.fingerprint import path_fingerprints, version_fingerprints
from state.tables.records import EpochCounts, EpochSeconds

PAGE = 1_000
AT_ONCE = 50_000
AT = datetime(2026, 1, 1, tzinfo=UTC)
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
    """A list step, and the seconds that it has taken.

    Args:
        seen: the names.
        name_steps: the name steps, if the names are in shards; messages to them and from them are pickled.
    """

    def __init__(self, seen: Names, name_steps: Mapping[str, NameExecutor] = {}) -> None:
        self.executor = ListExecutor(
            actor="list-events",
            source=SOURCE,
            url="s3://events",
            path_filter=PathFilter("**/*.parquet"),
            pace=ListingPace(10.0, RequestBudget(None)),
            seen=seen,
            schema_known=True,
            must_settle=False,
        )
        self.name_steps = name_steps
        # Seconds of the list step, and seconds that it has waited for the slowest name step.
        self.seconds = self.waited = self.now_s = 0.0
        self.epoch = 0
        self.barrier(BarrierKind.INITIAL)

    def barrier(self, kind: BarrierKind = BarrierKind.CHECKPOINT) -> None:
        self.epoch += 1
        pair = EpochPair(self.epoch - 1, self.epoch)
        barrier = Barrier(pair, kind, list_budget={SOURCE: 1 << 40})
        before = self.seconds, self.waited
        self._do(partial(self.executor.on_barrier, barrier, self.now_s))
        self.seconds, self.waited = before

    def list(self, numbers: Numbers) -> float:
        """One whole listing; returns its names per second of this thread's time."""
        self.now_s += 10.0
        before = self.seconds
        self._do(partial(self.executor.on_time, self.now_s))
        for number, page in enumerate(pages(numbers)):
            self._do(partial(self.executor.on_page, page, self.now_s))
            if number % 100 == 0:
                self.barrier()
        self._do(partial(self.executor.on_listing_end, self.now_s, AT))
        self.barrier()
        return len(numbers) / (self.seconds - before)

    def _do(self, call: Callable[[], Sequence[ListInstruction]]) -> None:
        """Takes an event, and lets the name steps answer until it is over."""
        calls = [call]
        while calls:
            started = time.thread_time()
            instructions = [each for call in calls for each in call()]
            messages = [(each.to, pickle.dumps(each.message)) for each in instructions if isinstance(each, SendToNames)]
            self.seconds += time.thread_time() - started
            answers, seconds = [], [0.0]
            for owner, message in messages:
                started = time.thread_time()
                for step in self.name_steps[owner].on_message(pickle.loads(message)):
                    if isinstance(step, Send):
                        answers.append((owner, pickle.dumps(step.message)))
                seconds.append(time.thread_time() - started)
            self.waited += max(seconds)
            calls = [partial(self._answer, owner, answer) for owner, answer in answers]

    def _answer(self, owner: str, answer: bytes) -> Sequence[ListInstruction]:
        return self.executor.on_names(owner, pickle.loads(answer))


def indexed(keys: pa.ChunkedArray, versions: pa.ChunkedArray) -> SeenIndex:
    """The index of some names."""
    order = pc.sort_indices(keys)
    loader = SeenLoader()
    loader.add(SeenPiece.of_columns(SOURCE, keys.take(order), versions.take(order)))
    return loader.index()


def measure_shards(keys: pa.ChunkedArray, versions: pa.ChunkedArray, numbers: Numbers, shards: int) -> Table:
    """Names per second with one index, and with name steps that answer as messages would have them."""
    owners = [f"names-{SOURCE}-{number}" for number in range(shards)]
    loaders = {owner: SeenLoader() for owner in owners}
    order = pc.sort_indices(keys)
    piece = SeenPiece.of_columns(SOURCE, keys.take(order), versions.take(order))
    for owner, part in NameMapping(owners).split(piece).items():
        loaders[owner].add(part)
    steps = {owner: NameExecutor(actor=owner, index=loader.index()) for owner, loader in loaders.items()}
    one, divided = Lister(indexed(keys, versions)), Lister(NameShards(owners), steps)
    del piece, order
    arrived = 2 * np.random.default_rng(2).integers(0, len(numbers), len(numbers) // 100) + 1
    rows: list[Row] = []
    for name, names in (
        ("the first listing after a start", numbers),
        ("nothing has changed", numbers),
        ("1 % more have arrived, spread over all names", np.union1d(numbers, arrived)),
    ):
        alone = one.list(names)
        before = divided.waited
        busy = divided.list(names)
        whole = len(names) / (len(names) / busy + divided.waited - before)
        figures = Number(alone, "names/s"), Number(whole, "names/s"), Number(busy, "names/s")
        rows.append(Row(name, figures, ratio=whole / alone))
    return Table(
        ("one index", f"{shards} shards", "of which the list step alone"),
        tuple(rows),
        "of one index",
        f"{len(numbers):,} names: CPU time of the list step and the slowest shard, with pickled messages, without Ray",
    )


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def measure_memory(keys: pa.ChunkedArray, versions: pa.ChunkedArray, numbers: Numbers) -> list[Row]:
    """Bytes per name of the index and the digests: lasting, and at the highest while names are added and listed."""
    tracemalloc.start()
    seen = indexed(keys, versions)
    lasting, _ = tracemalloc.get_traced_memory()
    after_recovery = lasting / len(seen)
    tracemalloc.reset_peak()
    for page in pages(numbers[::10] + 1):
        (batch,) = page.table.to_batches()
        found = version_fingerprints(batch["etag"], batch["size"], batch["modified_us"])
        for key, version in zip(path_fingerprints(SOURCE, batch["path"]), found, strict=True):
            seen.put(key, version)
    del page, batch, found
    now, peak = tracemalloc.get_traced_memory()
    count = len(seen)
    before, _ = tracemalloc.get_traced_memory()
    known = ListingDigests()
    for _ in range(2):
        known.begin_listing()
        for page in pages(numbers):
            (batch,) = page.table.to_batches()
            for digest in known.unknown(batch):
                known.put(digest, 1)
    del batch, page
    now, _ = tracemalloc.get_traced_memory()
    digests = (now - before) / len(numbers)
    tracemalloc.stop()
    bytes_of = {
        "the index, after a recovery": after_recovery,
        "the index, while 10 % more are put in one by one, highest": peak / count,
        "the digests of the last listing": digests,
        "index and digests": after_recovery + digests,
    }
    return [
        Row(name, (Number(each, "bytes"),), target=Target(32, "bytes") if name == "index and digests" else None)
        for name, each in bytes_of.items()
    ]


def measure_recovery(keys: pa.ChunkedArray, versions: pa.ChunkedArray) -> Row:
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
        loader = SeenLoader()
        for rows in LanceRoot(Location(scratch), SystemClock()).open(read_only=True).slices("seen", fields=["version"]):
            loader.add(SeenPiece.of_columns(SOURCE, rows["key"], rows["version"]))
        scanned = time.perf_counter() - started
        seen = loader.index()
        total = time.perf_counter() - started
        target = {1_000_000: Target(3.0, "s"), 10_000_000: Target(5.0, "s")}.get(len(seen))
        name = f"recovery of {len(seen):,} rows of `seen` from a local disk"
        return Row(name, (Number(total, "s"), Number(scanned, "s")), target=target)


def measure_side_by_side(names: int, latency_s: float) -> Table:
    """Seconds of a listing as a whole and of one that is divided, on a real S3 server that answers late."""
    with S3Server() as s3:
        bucket = s3.create_bucket("relisting")
        client = object_client(s3.location(bucket))
        with ThreadPoolExecutor(32) as threads:
            list(threads.map(lambda n: obstore.put(client, f"in/day={n % 50:02}/{n:06}", b"x"), range(names)))
        proxy = s3.fault_proxy(Random(1))
        proxy.on("LIST").slow(latency_s)
        reader = PageReader(ObjectStore(Location(f"s3://{bucket}/in", proxy.storage_options)))
        rows: list[Row] = []
        first_s = 0.0
        for how in ("one page after the other", "up to eight side by side"):
            requests = len(proxy.requests)
            started = time.perf_counter()
            reader.begin()
            listed = sum(page.table.num_rows for page in iter(lambda: reader.read(SIDE_BY_SIDE), None) if page)
            seconds = time.perf_counter() - started
            assert listed == names, listed
            requests = len(proxy.requests) - requests
            numbers = Number(seconds, "s"), Number(requests), Number(names / seconds, "names/s")
            rows.append(Row(how, numbers, ratio=first_s / seconds if rows else None))
            first_s = first_s or seconds
    caption = f"{names:,} names in a real S3 server that answers every LIST {1000 * latency_s:.0f} ms late"
    return Table(("seconds", "requests", "names"), tuple(rows), "of the first one's speed", caption)


def measure_listings(keys: pa.ChunkedArray, versions: pa.ChunkedArray, numbers: Numbers) -> list[Row]:
    """Names per second of one listing after the other."""
    names, target = len(numbers), Target(500_000.0, "names/s", at_least=True)
    before = resident()
    lister = Lister(indexed(keys, versions))
    found = {"the first listing after a start, every name is looked up": lister.list(numbers)}
    found["nothing has changed"] = lister.list(numbers)
    rng = np.random.default_rng(1)
    for share in (0.0001, 0.001, 0.01):
        arrived = 2 * rng.integers(0, names, int(names * share)) + 1
        numbers = np.union1d(numbers, arrived)
        found[f"{100 * share:g} % more have arrived, spread over all names"] = lister.list(numbers)
    print(f"resident memory beyond the beginning: {(resident() - before) / names:.1f} bytes per name")
    return [Row(name, (Number(each, "names/s"),), target=target) for name, each in found.items()]


def measure(options: argparse.Namespace) -> Result:
    tables = []
    # Odd numbers are names that come later, in between.
    numbers = 2 * np.arange(options.names, dtype=np.int64)
    keys, versions = index_of(numbers)
    recovery = measure_recovery(keys, versions)
    memory = measure_memory(keys, versions, numbers)
    listings = measure_listings(keys, versions, numbers)
    caption = f"{options.names:,} names of 44 bytes, in one thread, without requests"
    tables.append(Table(("names per second",), tuple(listings), caption=caption))
    tables.append(measure_shards(keys, versions, numbers, options.shards))
    tables.append(Table(("bytes per name",), tuple(memory)))
    tables.append(Table(("seconds", "of which reading"), (recovery,)))
    if options.in_bucket:
        tables.append(measure_side_by_side(options.in_bucket, options.latency_ms / 1000))
    return Result(tuple(tables))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--names", type=int, default=10_000_000)
    arguments.add_argument("--in-bucket", type=int, default=32_000, help="0 leaves out the S3 server")
    arguments.add_argument("--shards", type=int, default=2, help="name actors, beside one index")
    arguments.add_argument("--latency-ms", type=float, default=30.0)
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()

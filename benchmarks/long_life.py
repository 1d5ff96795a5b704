"""A long life in short: ten thousand epochs of one root, with and without folding and vacuum.

    python -m benchmarks.long_life [--epochs 10000] [--step-s 1] [--s3]

Each epoch brings five files: they are queued in one and done in the next, as a pipeline does it that gets one epoch a
second.  The clock of the store is moved by a second for each, so that an hour of retention is 3,600 epochs (by
`--step-s 4` it is 900, and a fourth of the epochs is as long a life); the epochs themselves are committed one right
after the other, with the upkeep in a thread beside.  A pause is the time from the wish to commit an epoch to the end of
its commit, with the commits of the upkeep that came first.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field

from actors.coordination.epoch_times import EpochTimes
from benchmarks.command import run_benchmark
from benchmarks.result import TIMES, LinePlot, Number, Result, Row, Table, Target
from slackwater.testing.servers.s3_server import S3Server
from state.clock import ManualClock
from state.epoch import next_epoch
from state.lance.lance_root import LanceRoot
from state.location import Location
from state.tables.delta import Delta, DeltaBuilder
from state.tables.epoch_trace import EpochTrace, Span
from state.tables.fingerprint import path_fingerprint
from state.tables.keys import encode_key
from state.tables.records import EpochCounts, EpochSeconds
from state.upkeep.housekeeping import Housekeeping, StagedUpkeep
from state.upkeep.retention import RetentionSettings
from state.vnode import vnode_of

FILES_PER_EPOCH = 5
VERSION = b"8 bytes."
TRACE = EpochTrace.of(
    EpochTimes(
        opened_s=-1.00123,
        aligned_s=0.01234,
        materialized_s=0.16543,
        collected_s={
            "list-events": 0.00456,
            "dispatcher": 0.00567,
            "fetch-0": 0.00789,
            "merger": 0.01,
        },
        complete_s=0.17654,
        work_s=0.14321,
        work=[Span("spark", name, 0.01234, 0.09876) for name in ("ingest into Spark", "by_carrier", "late")],
    ).spans(),
    commit_before=(116_000_000_000_000_001, 0.01234),
)
"""Of an ordinary epoch: one fetch actor and two views."""


@dataclass
class Life:
    """The measurements of one root."""

    name: str
    commit_s: list[float] = field(default_factory=list)
    pause_s: list[float] = field(default_factory=list)
    upkeep_s: list[float] = field(default_factory=list)
    stored: list[tuple[float, float]] = field(default_factory=list)
    vacuums: int = 0

    def p50_ms(self, window: int) -> list[tuple[float, float]]:
        """The median commit of each stretch of epochs."""
        starts = range(0, len(self.commit_s) - window + 1, window)
        return [(at + window, statistics.median(self.commit_s[at : at + window]) * 1e3) for at in starts]


def epoch_delta(number: int, epoch: int) -> Delta:
    """Five files are listed, and the five of the epoch before are done."""
    builder = DeltaBuilder()
    for at in range(FILES_PER_EPOCH):
        path = f"day={number // 86_400}/part-{number:08}-{at}.parquet"
        vnode = vnode_of(path)
        builder.put("seen", path_fingerprint("events", path), vnode, source="events", version=VERSION)
        builder.put(
            "queue",
            encode_key("events", path, VERSION),
            vnode,
            source="events",
            path=path,
            version=VERSION,
            etag='"0123456789abcdef"',
            size=8_192,
            row_offset=0,
            attempts=0,
            listed_epoch=epoch,
        )
        if number:
            before = f"day={(number - 1) // 86_400}/part-{number - 1:08}-{at}.parquet"
            key = encode_key("events", before, VERSION)
            builder.delete("queue", key, vnode_of(before))
            builder.put(
                "ledger",
                key,
                vnode_of(before),
                source="events",
                path=before,
                version=VERSION,
                etag='"0123456789abcdef"',
                size=8_192,
                status="done",
                rows_read=500,
                rows_bad=0,
                done_epoch=epoch,
                requests=1,
            )
    builder.put("list_state", encode_key("events"), 0, source="events", pages=number, requests=number)
    return builder.build()


def live(name: str, location: Location, epochs: int, step_s: float, *, with_upkeep: bool) -> Life:
    """Commits so many epochs, one after the other."""
    clock = ManualClock()
    root = LanceRoot(location, clock)
    store = root.create_or_open()
    store.take_over()
    upkeep = Housekeeping(root, clock, RetentionSettings())
    life = Life(name)
    staged: Future[StagedUpkeep | None] | None = None
    vacuum: Future[object] | None = None
    with ThreadPoolExecutor(1) as thread:
        for number in range(epochs):
            epoch = next_epoch(clock, store.head.epoch)
            delta = epoch_delta(number, epoch)
            wished = time.perf_counter()
            if staged is not None and staged.done():
                work, staged = staged.result(), None
                if work is not None:
                    upkeep.commit(store, work)
                    life.upkeep_s.append(time.perf_counter() - wished)
                    if work.expired:
                        vacuum = thread.submit(upkeep.vacuum)
                        life.vacuums += 1
            started = time.perf_counter()
            store.commit(
                epoch=epoch,
                delta=delta,
                views={},
                counts=EpochCounts(files=FILES_PER_EPOCH),
                seconds=EpochSeconds(),
                trace=TRACE.to_json(),
            )
            ended = time.perf_counter()
            life.commit_s.append(ended - started)
            life.pause_s.append(ended - wished)
            clock.advance(step_s)
            if with_upkeep and staged is None and (vacuum is None or vacuum.done()) and upkeep.due(store):
                staged = thread.submit(upkeep.stage, store)
            if location.is_local and (number + 1) % max(1, epochs // 40) == 0:
                life.stored.append((number + 1, sum(1 for each in location.path.rglob("*") if each.is_file())))
    if vacuum is not None:
        vacuum.result()
    waiting = store.scan("queue").num_rows
    assert waiting == FILES_PER_EPOCH, waiting
    assert store.scan("ledger").num_rows == FILES_PER_EPOCH * (epochs - 1)
    return life


def measure(given: argparse.Namespace) -> Result:
    lives = []
    with ExitStack() as stack:
        server = stack.enter_context(S3Server()) if given.s3 else None
        for name, with_upkeep in (("folded and vacuumed", True), ("left alone", False)):
            if server is not None:
                bucket = server.create_bucket("folded" if with_upkeep else "alone")
                location = Location(f"s3://{bucket}/root", server.storage_options)
            else:
                directory = tempfile.mkdtemp(prefix="long-life-")
                stack.callback(shutil.rmtree, directory)
                location = Location(directory)
            lives.append(live(name, location, given.epochs, given.step_s, with_upkeep=with_upkeep))
    window = max(100, given.epochs // 20)
    curves = {life.name: tuple(life.p50_ms(window)) for life in lives}
    plots = [LinePlot("long_life", "Commit of an epoch, median", "epochs", "ms", curves)]
    if not given.s3:
        title = f"Files on disk, an epoch in {given.step_s:g} s, an hour kept"
        stored = {life.name: tuple(life.stored) for life in lives}
        plots.append(LinePlot("long_life_files", title, "epochs", "files", stored))
    return Result(tuple(_tables(lives, given)), lines=tuple(plots))


def _tables(lives: list[Life], given: argparse.Namespace) -> Iterator[Table]:
    where = "S3" if given.s3 else "a local disk"
    most_ms = 40.0 if given.s3 else 15.0
    rows = []
    for life in lives:
        early, late = (statistics.median(part) * 1e3 for part in (life.commit_s[50:150], life.commit_s[-100:]))
        p99_ms = statistics.quantiles(life.pause_s, n=100)[98] * 1e3
        numbers = early, late, p99_ms, max(life.pause_s) * 1e3
        target = Target(1.5, TIMES) if life.upkeep_s else None
        rows.append(Row(life.name, tuple(Number(each, "ms") for each in numbers), late / early, target))
    columns = "commit, p50 around epoch 100", "p50 of the last 100", "wait for a commit, p99", "worst"
    caption = f"{given.epochs:,} epochs of one root on {where}, one each {given.step_s:g} s of its clock"
    yield Table(columns, tuple(rows), "of the first median", caption)
    upkeep = lives[0]
    if upkeep.upkeep_s:
        late_ms = statistics.median(upkeep.commit_s[-100:]) * 1e3
        upkeep_ms = statistics.median(upkeep.upkeep_s) * 1e3
        of_epochs = Row(
            "epochs, at the end", (Number(given.epochs), Number(late_ms, "ms")), target=Target(most_ms, "ms")
        )
        of_upkeep = Row("upkeep", (Number(len(upkeep.upkeep_s)), Number(upkeep_ms, "ms")))
        vacuums = Row("vacuums, in between", (Number(upkeep.vacuums), None))
        yield Table(("commits", "p50"), (of_epochs, of_upkeep, vacuums))
    if lives[0].stored:
        halves = [[life.stored[len(life.stored) * at // 10 - 1] for at in (4, 10)] for life in lives]
        moments = tuple(f"after {epochs:,.0f} epochs" for epochs, _ in halves[0])
        files = (
            Row(life.name, tuple(Number(int(n)) for _, n in each)) for life, each in zip(lives, halves, strict=True)
        )
        yield Table(moments, tuple(files), caption="Files on disk")


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--epochs", type=int, default=10_000)
    arguments.add_argument("--step-s", type=float, default=1.0)
    arguments.add_argument("--s3", action="store_true")
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()

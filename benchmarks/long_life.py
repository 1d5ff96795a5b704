"""A long life in short: ten thousand epochs of one root, with and without folding and vacuum.

    python -m benchmarks.long_life [--epochs 10000] [--s3] [--plot docs/images]

Each epoch brings five files: they are queued in one and done in the next, as a pipeline does it that gets one epoch a
second.  The clock of the store is moved by a second for each, so that an hour of retention is 3,600 epochs; the epochs
themselves are committed one right after the other, with the upkeep in a thread beside.  A pause is the time from the
wish to commit an epoch to the end of its commit, with the commits of the upkeep that came first.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.line_chart import line_chart
from benchmarks.machine import describe_machine
from slackwater.testing.s3_server import S3Server
from state.clock import ManualClock
from state.delta import Delta, DeltaBuilder
from state.epoch import next_epoch
from state.fingerprint import path_fingerprint
from state.housekeeping import Housekeeping, StagedUpkeep
from state.keys import encode_key
from state.lance_root import LanceRoot
from state.location import Location
from state.records import EpochCounts, EpochSeconds
from state.retention import RetentionSettings
from state.vnode import vnode_of

FILES_PER_EPOCH = 5
VERSION = b"8 bytes."


@dataclass
class Life:
    """What was measured of one root."""

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


def live(name: str, location: Location, epochs: int, *, with_upkeep: bool) -> Life:
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
            )
            ended = time.perf_counter()
            life.commit_s.append(ended - started)
            life.pause_s.append(ended - wished)
            clock.advance(1)
            if with_upkeep and staged is None and (vacuum is None or vacuum.done()) and upkeep.due(store):
                staged = thread.submit(upkeep.stage, store)
            if location.is_local and (number + 1) % 250 == 0:
                life.stored.append((number + 1, sum(1 for each in location.path.rglob("*") if each.is_file())))
    if vacuum is not None:
        vacuum.result()
    waiting = store.scan("queue").num_rows
    assert waiting == FILES_PER_EPOCH, waiting
    assert store.scan("ledger").num_rows == FILES_PER_EPOCH * (epochs - 1)
    return life


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--epochs", type=int, default=10_000)
    arguments.add_argument("--s3", action="store_true")
    arguments.add_argument("--plot", type=Path)
    given = arguments.parse_args()
    window = max(100, given.epochs // 20)
    lives = []
    with ExitStack() as stack:
        server = stack.enter_context(S3Server()) if given.s3 else None
        for name, with_upkeep in (("folded and vacuumed", True), ("left alone", False)):
            if server is not None:
                bucket = server.create_bucket("folded" if with_upkeep else "alone")
                lives.append(
                    live(
                        name,
                        Location(f"s3://{bucket}/root", server.storage_options),
                        given.epochs,
                        with_upkeep=with_upkeep,
                    )
                )
                continue
            directory = tempfile.mkdtemp(prefix="long-life-")
            stack.callback(shutil.rmtree, directory)
            lives.append(live(name, Location(directory), given.epochs, with_upkeep=with_upkeep))
    print(describe_machine())
    for life in lives:
        medians = life.p50_ms(window)
        early = statistics.median(life.commit_s[50:150]) * 1e3
        late = statistics.median(life.commit_s[-100:]) * 1e3
        print(
            f"{life.name}: commit p50 {early:.1f} ms around epoch 100, {late:.1f} ms at the end: {late / early:.2f} x"
        )
        print(f"  p50 of each {window} epochs, ms: {', '.join(f'{ms:.1f}' for _, ms in medians)}")
        p99_ms = statistics.quantiles(life.pause_s, n=100)[98] * 1e3
        print(f"  pauses: p99 {p99_ms:.1f} ms, worst {max(life.pause_s) * 1e3:.1f} ms")
        if life.upkeep_s:
            print(
                f"  upkeep: {len(life.upkeep_s)} commits, p50 {statistics.median(life.upkeep_s) * 1e3:.1f} ms, worst "
                f"{max(life.upkeep_s) * 1e3:.1f} ms; {life.vacuums} vacuums"
            )
        if life.stored:
            print(f"  files: {', '.join(f'{files:,.0f}' for _, files in life.stored[3::4])}")
    if given.plot is not None:
        given.plot.mkdir(parents=True, exist_ok=True)
        curves = {life.name: life.p50_ms(window) for life in lives}
        chart = line_chart("Commit of an epoch, median", "epochs", "ms", curves)
        (given.plot / "long_life.svg").write_text(chart, encoding="utf-8")
        curves = {life.name: life.stored for life in lives}
        chart = line_chart("Files on disk, one epoch a second, an hour kept", "epochs", "files", curves)
        (given.plot / "long_life_files.svg").write_text(chart, encoding="utf-8")


if __name__ == "__main__":
    main()

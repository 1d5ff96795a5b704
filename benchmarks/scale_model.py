"""Model of a run with many fetch actors and many files, from constants that are measured here.

    python -m benchmarks.scale_model [--names 4000000]

Decisions are measured on the plain classes that make them, with as many fetch actors as they take (256; those that know
no vnodes, 1,000), messages and memory on Ray, commits on Lance and a local disk.  The second table is arithmetic over
these constants; what lies beyond what was measured is marked with a `~`.  It is the page docs/guide/sizing.md.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa

from actors.coordination.coordinate_executor import CoordinateExecutor
from actors.coordination.epoch_collector import EpochCollector
from actors.exchange.dispatch_executor import DispatchExecutor
from actors.exchange.merge_executor import MergeExecutor
from actors.files import FileVersion
from actors.formats.options import Parquet
from actors.hosting.ray_runtime import REPORT_EVERY_S
from actors.names.seen_index import SeenIndex
from actors.names.seen_piece import SeenLoader, SeenPiece
from actors.protocol.barrier import Barrier
from actors.protocol.blocks import Block
from actors.protocol.counters import SourceProgress
from actors.protocol.messages import NewFiles
from actors.protocol.reports import CollectReport, FetchProgress
from actors.protocol.vnode_mapping import VnodeMapping, fetcher_names
from actors.recovery.attempt_plan import AttemptPlan
from actors.recovery.recovery import recover
from actors.settings import BarrierSettings, FetchSettings
from actors.shells.actor_shell import times_slower
from actors.sources.pipeline_definition import PipelineDefinition
from actors.sources.source import SourceDefinition
from benchmarks.long_life import VERSION
from benchmarks.machine import describe_machine
from state.clock import SystemClock
from state.epoch import EpochPair
from state.lance.lance_root import LanceRoot
from state.location import Location
from state.tables.delta import Delta, DeltaBuilder
from state.tables.keys import encode_key
from state.tables.records import EpochCounts, EpochSeconds
from state.vnode import VNODES, vnode_of

MANY = 1_000
SCHEMA = pa.schema([("x", pa.int64())])


@dataclass(frozen=True)
class Constants:
    """Seconds and bytes, each of one thing."""

    send_s: float
    receive_s: float
    report_s: float
    collect_s: float
    align_s: float
    dispatch_s: float
    ledger_row_s: float
    commit_s: float
    name_bytes: float
    name_recovery_s: float
    actor_bytes: float


def timed(work: Callable[[], object], times: int = 5) -> float:
    """CPU seconds, the median of some runs: what a core is busy with, whatever else the machine does."""
    taken = []
    for _ in range(times):
        started = time.process_time()
        work()
        taken.append(time.process_time() - started)
    return statistics.median(taken)


def new_file(number: int) -> FileVersion:
    path = f"day={number // 1000:05}/part-{number:012}.parquet"
    return FileVersion("events", path, VERSION, '"0123456789abcdef"', 8_192, SystemClock().now())


def dispatch_s(fetchers: int) -> float:
    """Of one file on its way through the dispatcher."""
    mapping = VnodeMapping.even(fetcher_names(0, fetchers))
    executor = DispatchExecutor(actor="dispatcher", edges=["list-events"], mapping=mapping)
    message = NewFiles(tuple(new_file(number) for number in range(10_000)))
    return timed(lambda: executor.on_message("list-events", message)) / 10_000


def align_s(fetchers: int) -> float:
    """Of one fetch actor's block and barrier at the merger."""
    names = fetcher_names(0, fetchers)
    executor = MergeExecutor(actor="merger", edges=names)
    epochs = iter(range(1, 100))

    def epoch() -> None:
        barrier = Barrier(EpochPair(number := next(epochs), number + 1))
        for name in names:
            executor.on_message(name, Block(name, "events", None, 1_000, 1 << 20))
            executor.on_message(name, barrier)
        executor.on_release(number)

    return timed(epoch) / fetchers


class Coordination:
    """A coordinator, and the fetch actors that report to it."""

    def __init__(self, root: Path, fetchers: int) -> None:
        definition = PipelineDefinition(
            name="scale",
            root=Location(str(root)),
            sources=(SourceDefinition(name="events", location=Location("/raw"), format=Parquet(), schema=SCHEMA),),
            views={"v": frozenset({"events"})},
            ansi=False,
            barrier=BarrierSettings(),
            fetch=FetchSettings(num_fetchers=fetchers),
        )
        plan = AttemptPlan("run")
        recovered = recover(definition, plan, LanceRoot(definition.root, SystemClock()))
        self.executor = CoordinateExecutor(
            definition=definition, plan=plan, recovered=recovered, next_epoch=lambda last: last + 1, now_s=0.0
        )
        self.fetchers = fetcher_names(0, fetchers)
        self.done = 0
        self.executor.start(0.0)

    def reports(self) -> list[FetchProgress]:
        """One of each fetch actor, a file further than the last."""
        self.done += 1
        source = SourceProgress(waiting=5, reading=2, done=self.done, rows=self.done * 1_000)
        return [
            FetchProgress(name, self.done, received=self.done + 7, unsealed_bytes=1 << 20, sources={"events": source})
            for name in self.fetchers
        ]

    def on_reports(self, reports: list[FetchProgress]) -> None:
        for report in reports:
            self.executor.on_progress(report, self.done, 0.0)


def finished(first: int, count: int, epoch: int) -> Delta:
    """The rows of files that were waited for, and are done."""
    builder = DeltaBuilder()
    for number in range(first, first + count):
        file = new_file(number)
        key, vnode = encode_key("events", file.path, VERSION), vnode_of(file.path)
        builder.delete("queue", key, vnode)
        builder.put(
            "ledger", key, vnode, source="events", path=file.path, version=VERSION, etag=file.etag, size=8_192,
            status="done", rows_read=1_000, rows_bad=0, done_epoch=epoch, requests=1,
        )  # fmt: skip
    return builder.build()


def coordinate_s(fetchers: int) -> tuple[float, float]:
    """Of one report of progress at the coordinator, and of one collected epoch with its changes, per fetch actor."""
    with tempfile.TemporaryDirectory() as scratch:
        flow = Coordination(Path(scratch), fetchers)
        per_report = timed(lambda: flow.on_reports(flow.reports())) / fetchers
    collector_taken = []
    names = fetcher_names(0, fetchers)
    others = ("list-events", "dispatcher", "merger", "materializer")
    collector = EpochCollector(actors=(*names, *others), merger="merger", materializer="materializer", now_s=0.0)
    for number in range(1, 6):
        collector.on_barrier(Barrier(EpochPair(number, number + 1)), 0.0)
        reports = [CollectReport(name, number, finished(at * 4, 4, number)) for at, name in enumerate(names)]
        reports += [CollectReport(name, number) for name in others]
        started = time.process_time()
        for report in reports:
            collector.on_collect(report, 0.0)
        assert collector.take_complete(0.0) is not None
        collector_taken.append(time.process_time() - started)
    return per_report, statistics.median(collector_taken) / fetchers


def commit_s(files: int) -> float:
    """Of an epoch in which so many files are done."""
    with tempfile.TemporaryDirectory() as scratch:
        store = LanceRoot(Location(scratch), SystemClock()).create_or_open()
        store.take_over()
        epochs = iter(range(store.head.epoch + 1, store.head.epoch + 100))

        def commit() -> None:
            epoch = next(epochs)
            delta = finished(epoch % 1_000_000 * files, files, epoch)
            started = time.perf_counter()
            store.commit(epoch=epoch, delta=delta, views={}, counts=EpochCounts(), seconds=EpochSeconds())
            taken.append(time.perf_counter() - started)

        taken: list[float] = []
        for _ in range(7):
            commit()
        return statistics.median(taken)


def names(count: int) -> tuple[float, float]:
    """Bytes of memory of a seen name, and seconds of its recovery from a local disk."""
    chance = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as scratch:
        root = LanceRoot(Location(scratch), SystemClock())
        store = root.create_or_open()
        store.take_over()
        epoch = store.head.epoch
        for start in range(0, count, 500_000):
            many = min(500_000, count - start)
            keys = [row.tobytes() for row in chance.integers(0, 256, (many, 16), dtype=np.uint8)]
            builder = DeltaBuilder()
            columns = {
                "source": pa.repeat("events", many),
                "version": pa.repeat(pa.scalar(VERSION, pa.binary(8)), many),
            }
            builder.put_many("seen", keys, [0] * many, columns)
            epoch += 1
            store.commit(epoch=epoch, delta=builder.build(), views={}, counts=EpochCounts(), seconds=EpochSeconds())
            del keys, builder, columns
        started = time.perf_counter()
        seen = loaded(root)
        recovery_s = (time.perf_counter() - started) / count
        assert len(seen) == count
        del seen
        tracemalloc.start()
        seen = loaded(root)
        lasting, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return lasting / len(seen), recovery_s


def loaded(root: LanceRoot) -> SeenIndex:
    """The index of all names in a store, as a recovery makes it."""
    loader = SeenLoader()
    for rows in root.open(read_only=True).slices("seen", fields=["version"]):
        loader.add(SeenPiece.of_columns("events", rows["key"], rows["version"]))
    return loader.index()


class Receiver:
    """An asynchronous actor as those of a run."""

    def __init__(self) -> None:
        self._received = 0

    async def receive(self, _message: object) -> None:
        self._received += 1

    async def received(self) -> int:
        return self._received

    async def memory(self) -> int:
        return int(psutil.Process().memory_full_info().uss)


def messages(count: int = 5_000) -> tuple[float, float, float]:
    """Seconds of the sender and of the receiver of a message on Ray, and bytes of an actor that has the flow's code."""
    import ray

    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        actor = ray.remote(Receiver).options(num_cpus=0, max_concurrency=1000).remote()
        ray.get(actor.received.remote())
        message = NewFiles((new_file(1),))
        started = time.perf_counter()
        for _ in range(count):
            actor.receive.remote(message)
        sent = time.perf_counter() - started
        while ray.get(actor.received.remote()) < count:
            pass
        return sent / count, (time.perf_counter() - started) / count, float(ray.get(actor.memory.remote()))
    finally:
        ray.shutdown()


def measured(num_names: int) -> Constants:
    send_s, receive_s, actor_bytes = messages()
    report_s, collect_s = coordinate_s(VNODES)
    small, large = commit_s(10), commit_s(10_000)
    name_bytes, name_recovery_s = names(num_names)
    return Constants(
        send_s=send_s,
        receive_s=receive_s,
        report_s=report_s,
        collect_s=collect_s,
        align_s=align_s(MANY),
        dispatch_s=dispatch_s(VNODES),
        ledger_row_s=(large - small) / 9_990,
        commit_s=small,
        name_bytes=name_bytes,
        name_recovery_s=name_recovery_s,
        actor_bytes=actor_bytes,
    )


def constants_table(found: Constants, num_names: int) -> list[tuple[str, ...]]:
    us, mib = 1e6, 2**20
    return [
        ("constant", "measured", "with"),
        ("a message between actors, at its sender", f"{found.send_s * us:,.0f} µs", "Ray, one sender"),
        ("and at its receiver", f"{found.receive_s * us:,.0f} µs", "Ray, one receiver that does nothing with it"),
        ("a report of progress, at the coordinator", f"{found.report_s * us:,.0f} µs", f"{VNODES} fetch actors"),
        ("an epoch collected, per fetch actor", f"{found.collect_s * us:,.0f} µs", f"{VNODES} × 4 files"),
        ("an epoch aligned, per fetch actor", f"{found.align_s * us:,.0f} µs", f"{MANY:,} fetch actors"),
        ("a file dispatched", f"{found.dispatch_s * us:,.1f} µs", f"{VNODES} fetch actors"),
        ("a commit", f"{found.commit_s * 1e3:,.1f} ms", "10 files, local disk"),
        ("and for each file that is done", f"{found.ledger_row_s * us:,.1f} µs", "10,000 files, local disk"),
        ("memory of a seen name", f"{found.name_bytes:,.1f} B", f"{num_names:,} names"),
        ("recovery of a seen name", f"{found.name_recovery_s * us:,.2f} µs", f"{num_names:,} names, local disk"),
        ("memory of an actor without work", f"{found.actor_bytes / mib:,.0f} MiB", "Ray, one actor"),
    ]


def barrier_s(found: Constants, fetchers: int) -> float:
    """From a barrier's injection until all have collected: the dispatcher tells all, the merger hears from all."""
    return fetchers * (found.send_s + found.receive_s + max(found.align_s, found.collect_s))


def fetchers_table(found: Constants) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        ("fetch actors", "barrier", "coordinator busy with reports", "memory of the actors", "shortest useful interval")
    ]
    for fetchers in (1, 4, 16, 64, VNODES, MANY):
        reports_per_s = fetchers / (REPORT_EVERY_S * times_slower(fetchers))
        mark = "~" if fetchers > VNODES else ""
        barrier = barrier_s(found, fetchers)
        rows.append(
            (
                f"{fetchers:,}",
                f"{mark}{barrier * 1e3:,.0f} ms",
                f"{mark}{reports_per_s * (found.report_s * fetchers / VNODES + found.receive_s):.0%}",
                f"{mark}{fetchers * found.actor_bytes / 2**30:,.1f} GiB",
                f"{mark}{max(0.1, 3 * barrier):,.1f} s",
            )
        )
    return rows


def files_table(found: Constants, num_names: int) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        (
            "files",
            "LIST requests of one listing",
            "memory of the list actor",
            "names read at a start",
            "dispatched and kept",
        )
    ]
    for files in (10**5, 10**6, 10**7, 10**8, 10**9):
        mark = "~" if files > num_names else ""
        rows.append(
            (
                f"{files:,}",
                f"{files // 1_000:,}",
                f"{mark}{files * found.name_bytes / 2**30:,.2f} GiB",
                f"{mark}{files * found.name_recovery_s:,.1f} s",
                f"{mark}{files * (found.dispatch_s + found.ledger_row_s):,.0f} s",
            )
        )
    return rows


def markdown(rows: list[tuple[str, ...]]) -> str:
    head, *body = rows
    lines = [head, tuple("---" if at == 0 else "---:" for at in range(len(head))), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--names", type=int, default=4_000_000)
    given = arguments.parse_args()
    found = measured(given.names)
    print(describe_machine())
    for table in (constants_table(found, given.names), fetchers_table(found), files_table(found, given.names)):
        print(f"\n{markdown(table)}")


if __name__ == "__main__":
    main()

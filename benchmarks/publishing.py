"""A view that is published beside the epochs that change it: rows a second, the lag behind the commit, and the epochs.

    python -m benchmarks.publishing [--groups 1000000] [--epochs 12]

The root has a grouped view in the form that the materializer gives it; epochs change 1,000 groups each, one a second.
Root and tables are on a local disk.
"""

from __future__ import annotations

import argparse
import multiprocessing
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random

import numpy as np
import psutil
import pyarrow as pa

import slackwater as sw
from actors.protocol.run_state import CommittedEpoch, RunState
from benchmarks.branch import DEFINITION, Writer
from benchmarks.command import run_benchmark
from benchmarks.point_lookup import CHANGED, batches, rows_of
from benchmarks.result import Number, Result, Row, Table
from slackwater.plugins.publish.declaration import DeclaredPublication
from slackwater.plugins.publish.publications import Publications
from slackwater.plugins.publish.targets import Target
from spark_bridge.datasets.view_table import ViewTable
from state.clock import SystemClock
from state.lance.lance_root import LanceRoot
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.tables.catalog import CatalogPipeline, put_pipeline, put_source
from state.tables.records import CatalogSource, EpochCounts, EpochSeconds
from state.upkeep.housekeeping import Housekeeping
from state.upkeep.retention import RetentionSettings

VIEW = "by_user"
EVERY_S = 1.0
CALLS = 20
AT_MOST = 3_000
MIB = 1 << 20
ECHO = "import socket, sys; s = socket.socket(fileno=int(sys.argv[1]))\nwhile m := s.recv(64): s.sendall(m)"


class ChangingView:
    """A root with one grouped view, whose epochs change some groups."""

    def __init__(self, root: Location, groups: int) -> None:
        self.root = root
        self._writer = Writer(root, LanceStateStore.create(root, SystemClock()))
        self._groups, self._random = groups, Random(7)
        self._upkeep = Housekeeping(LanceRoot(root, SystemClock()), SystemClock(), RetentionSettings())
        put_pipeline(self._writer.delta, CatalogPipeline("events", ansi=False))
        put_source(self._writer.delta, CatalogSource("events", DEFINITION, None))
        self._writer.add(VIEW, pa.Table.from_batches(batches(groups)))
        self._writer.commit()
        self.epochs = [self._writer.store.head.epoch]
        view = self._writer.views[VIEW]
        self._table = ViewTable.open(self.root.child(view.path), view.version)

    def change(self) -> int:
        """An epoch that changes groups, and the upkeep after it, as a run does it."""
        view = self._writer.views[VIEW]
        numbers = np.array(self._random.sample(range(self._groups), CHANGED), np.int64)
        self._table.upsert(rows_of(numbers, self._random.randrange(1, 1_000)))
        self._writer.views[VIEW] = view.at({view.path: self._table.version})
        self._writer.commit()
        self._table.tidy()
        staged = self._upkeep.stage(self._writer.store)
        if staged is not None:
            self._upkeep.commit(self._writer.store, staged)
        self.epochs.append(self._writer.store.head.epoch)
        return self.epochs[-1]

    def state(self) -> RunState:
        """As a run tells it."""
        now = SystemClock().now()
        recent = tuple(CommittedEpoch(each, now, EpochCounts(), EpochSeconds()) for each in self.epochs[-32:])
        return RunState(1, "running", 1, self.epochs[-1], recent=recent)


def targets(place: Path) -> dict[str, Target]:
    return {
        "Delta": sw.Delta(str(place / "delta" / VIEW)),
        "Iceberg": sw.Iceberg(str(place / "iceberg" / VIEW), interval_s=0),
        "Parquet files": sw.ParquetFiles(str(place / "parquet" / VIEW), interval_s=0),
    }


def followed(name: str, target: Target, view: ChangingView, groups: int, epochs: int) -> Row:
    """The first publication by itself, and then each epoch, beside."""
    started = time.perf_counter()
    sw.publish(sw.open(view.root.url), VIEW, target)
    first_s = time.perf_counter() - started
    publications = Publications(view.root, [DeclaredPublication(VIEW, target)], SystemClock())

    def published_s(epoch: int) -> float:
        """Seconds until the table has an epoch that is committed now."""
        committed = time.perf_counter()
        publications.notify(view.state())
        wait_for(lambda: publications.statuses[0].epoch == epoch)
        return time.perf_counter() - committed

    published_s(view.epochs[-1])
    [process] = [each for each in psutil.Process().children() if "slackwater" in " ".join(each.cmdline())]
    before_s, lags = cpu_s(process), list[float]()
    for _ in range(epochs):
        lags.append(published_s(view.change()))
        time.sleep(max(0.0, EVERY_S - lags[-1]))
    spent_s, memory = cpu_s(process) - before_s, process.memory_info().rss
    publications.begin_end()
    publications.join()
    lags.sort()
    numbers = (
        Number(groups / first_s, "rows/s"),
        Number(lags[len(lags) // 2], "s"),
        Number(lags[-1], "s"),
        Number(spent_s / epochs, "s"),
        Number(memory / MIB, "MiB"),
    )
    return Row(name, numbers)


def beside(target: Target, view: ChangingView, epochs: int) -> list[Row]:
    """The calls of another process while nothing is published, a process publishes, and a thread does."""
    rows = []
    with echo() as connection:
        until = time.perf_counter() + 3
        rows.append(calls("nothing", connection, lambda: time.perf_counter() > until))
        for name in ("a process", "a thread"):
            work = [view.change() for _ in range(epochs)]
            if name == "a process":
                process = multiprocessing.get_context("spawn").Process(
                    target=publish_each, args=(view.root.url, target, work)
                )
                process.start()
                rows.append(calls(name, connection, lambda: not process.is_alive()))  # noqa: B023
            else:
                thread = threading.Thread(target=publish_each, args=(view.root.url, target, work))
                thread.start()
                rows.append(calls(name, connection, lambda: not thread.is_alive()))  # noqa: B023
    return rows


def publish_each(root: str, target: Target, epochs: Sequence[int]) -> None:
    for epoch in epochs:
        sw.publish(sw.open(root), VIEW, target, epoch=epoch)


@contextmanager
def echo() -> Iterator[socket.socket]:
    """A connection to a process that sends every message back, as the JVM answers calls of Python."""
    here, there = socket.socketpair()
    child = subprocess.Popen([sys.executable, "-c", ECHO, str(there.fileno())], pass_fds=[there.fileno()])
    there.close()
    with here:
        yield here
    child.wait()


def calls(name: str, connection: socket.socket, is_over: Callable[[], bool]) -> Row:
    taken = list[float]()
    while not is_over() and len(taken) < AT_MOST:
        started = time.perf_counter()
        for _ in range(CALLS):
            connection.sendall(b"call")
            connection.recv(64)
        taken.append(1_000 * (time.perf_counter() - started))
        time.sleep(0.002)
    taken.sort()
    return Row(name, tuple(Number(each, "ms") for each in (taken[len(taken) // 2], taken[len(taken) * 95 // 100])))


def cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def wait_for(condition: Callable[[], bool], limit_s: float = 60.0) -> None:
    until = time.perf_counter() + limit_s
    while not condition():
        if time.perf_counter() > until:
            raise TimeoutError("the publication does not come")
        time.sleep(0.005)


def measure(options: argparse.Namespace) -> Result:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        view = ChangingView(Location(str(place / "root")), options.groups)
        tables = targets(place)
        rows = [followed(name, target, view, options.groups, options.epochs) for name, target in tables.items()]
        told = beside(tables["Iceberg"], view, options.epochs)
    columns = ("first publication", "lag p50", "worst lag", "CPU of an epoch", "memory of the process")
    caption = f"A view of {options.groups:,} groups, and an epoch a second that changes {CHANGED:,} of them"
    waits = f"{CALLS} calls of another process, while this one publishes the view to Iceberg"
    return Result((Table(columns, tuple(rows), caption=caption), Table(("p50", "p95"), tuple(told), caption=waits)))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--groups", type=int, default=1_000_000)
    arguments.add_argument("--epochs", type=int, default=12)
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()

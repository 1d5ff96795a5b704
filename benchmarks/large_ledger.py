"""A root with millions of files behind it: its start, its commits, look-ups and status, in seconds and MiB.

    python -m benchmarks.large_ledger [--files 1000000,10000000,30000000]

The ledger is written as a run leaves it after its last fold, without the run: sorted runs of `seen` and `ledger`.  Then
epochs of 100 files follow through the store's own commits and folds.  Each number is of a fresh process.
"""

from __future__ import annotations

import argparse
import io
import multiprocessing
import os
import tempfile
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from actors.coordination.instructions import Commit
from actors.coordination.ledger_corrections import corrected_delta
from actors.formats.options import Parquet
from actors.listing.missing_files import find_deleted
from actors.protocol.reports import CorrectedFile
from actors.recovery.committed_files import CommittedFiles
from actors.settings import BarrierSettings, FetchSettings
from actors.sources.pipeline_definition import PipelineDefinition
from actors.sources.source import SourceDefinition
from benchmarks.command import run_benchmark
from benchmarks.ledger_history import SOURCE, ledger_columns, path_of, version_of, write_history
from benchmarks.result import Number, Result, Row, Table, Target
from slackwater.cli.display.status import print_status
from slackwater.cli.terminal.output import Output
from slackwater.reading.store import Store
from state.clock import SystemClock
from state.epoch import next_epoch
from state.lance.lance_root import LanceRoot
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.tables.catalog import CatalogPipeline, put_pipeline, put_source
from state.tables.delta import Delta, DeltaBuilder
from state.tables.fingerprint import path_fingerprint
from state.tables.keys import encode_key
from state.tables.records import CatalogSource, EpochCounts, EpochSeconds
from state.vnode import vnode_of

PROMISED = 10_000_000
"""The largest number of files with targets."""

NEW = 100
EPOCHS = 40
DEFINITION = '{"url": "s3://raw/events", "format": {"name": "parquet"}, "pattern": "**/*.parquet"}'


def commit(store: LanceStateStore, numbers: range, clock: SystemClock) -> None:
    """An epoch that hands files on and finishes them."""
    epoch = next_epoch(clock, store.head.epoch)
    delta = DeltaBuilder()
    columns = ledger_columns(numbers, epoch)
    for at, number in enumerate(numbers):
        path, version = path_of(number), version_of(number)
        row = {name: value[at] if isinstance(value, list) else value for name, value in columns.items()}
        delta.put("ledger", encode_key(SOURCE, path, version), vnode_of(path), **row)
        key = path_fingerprint(SOURCE, path)
        delta.put("seen", key, vnode_of(path), source=SOURCE, path=path, version=version)
    store.commit(epoch=epoch, delta=delta.build(), views={}, counts=EpochCounts(), seconds=EpochSeconds())


def build(root: LanceRoot, files: int) -> None:
    """Writes the ledger, and then epochs as a run does."""
    clock = SystemClock()
    store = root.create_or_open()
    store.take_over("benchmark")
    epoch = next_epoch(clock, 0)
    delta = DeltaBuilder()
    put_pipeline(delta, CatalogPipeline("p", ansi=False))
    put_source(delta, CatalogSource(SOURCE, DEFINITION, None))
    store.commit(epoch=epoch, delta=delta.build(), views={}, counts=EpochCounts(), seconds=EpochSeconds())
    write_history(root.location, store, files)
    for number in range(EPOCHS):
        commit(store, range(files + NEW * number, files + NEW * (number + 1)), clock)
        while (fold := store.stage_fold()) is not None:
            store.commit_fold(fold)


@dataclass(frozen=True)
class Cost:
    """Seconds by the clock and of all cores, and MiB: at the highest, above those before."""

    seconds: float
    cpu_s: float
    mib: float


@dataclass(frozen=True)
class Probe:
    """Measures one step in the process that unpickles it."""

    root: str
    files: int
    step: str

    def __call__(self) -> Cost:
        root = LanceRoot(Location(self.root), SystemClock())
        store = root.open(read_only=self.step != "commit")
        if self.step.startswith(("correct", "remove")):
            self._prepared(root, store, self.files + 1)()  # a run has looked up files before
        run = self._prepared(root, store, self.files)
        before, wall, cpu = _peak_mib(), time.perf_counter(), time.process_time()
        run()
        return Cost(time.perf_counter() - wall, time.process_time() - cpu, _peak_mib() - before)

    def _prepared(self, root: LanceRoot, store: LanceStateStore, seed: int) -> Callable[[], object]:
        files, random = self.files, Random(seed)
        step, _, number = self.step.partition(" ")
        some = random.sample(range(files), int(number or 1))
        if step == "recovery":
            return lambda: CommittedFiles.read(root.open(read_only=True), _definition(root)).seen.indexes()
        if step == "coordinator":
            return lambda: deque(CommittedFiles.read(root.open(read_only=True), _definition(root)).seen.pieces(), 0)
        reader = Store(root.location, SystemClock())
        readings: dict[str, Callable[[], object]] = {
            "status": reader.ledger.count_files,
            "command": lambda: print_status(reader, Output(json=True)),
            "why": lambda: reader.ledger.why(f"s3://raw/events/{path_of(some[0])}"),
            "files": lambda: reader.ledger.files(limit=100),
            "page": lambda: reader.ledger.find_files(limit=100),
            "snapshot": reader.snapshot,
            "epochs": lambda: reader.epochs(limit=20),
        }
        if step in readings:
            return partial(_unprinted, readings[step])
        if step == "commit":
            return lambda: commit(store, range(2 * files, 2 * files + NEW), SystemClock())
        if step == "correct":
            corrected = tuple(CorrectedFile(SOURCE, path_of(each), None, "forgotten") for each in some)
            return lambda: corrected_delta(
                store, Commit(1, Delta(), {}, EpochCounts(), EpochSeconds(), corrected=corrected)
            )
        absent = {path_fingerprint(SOURCE, path_of(each)): version_of(each) for each in some}
        return lambda: find_deleted(store, SOURCE, absent)


STEPS = {
    "recovery": "recovery",
    "coordinator": "its part at the coordinator, without the index of names",
    "status": "counts of all files, as `status` shows them",
    "command": "`slackwater status`, in this process",
    "why": "`why` of one file",
    "files": "`files(limit=100)`",
    "page": "`find_files(limit=100)`, as the web page",
    "snapshot": "`snapshot()`",
    "epochs": "`epochs(limit=20)`",
    "correct 1": "correction of one file",
    "correct 1000": "correction of 1,000 files",
    "remove 1": "removal of one file",
    "remove 1000": "removal of 1,000 files",
    "remove 100000": "removal of 100,000 files",
    "commit": f"commit of {NEW} new files",
}
TARGETS = {
    "recovery": Target(5.0, "s"),
    "status": Target(1.0, "s"),
    "command": Target(1.0, "s"),
    "correct 1": Target(0.02, "s"),
    "correct 1000": Target(0.2, "s"),
}


def measured(probe: Probe) -> Cost:
    """The cost in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(probe).result()


def measure(options: argparse.Namespace) -> Result:
    tables = []
    for files in map(int, options.files.split(",")):
        with tempfile.TemporaryDirectory() as directory:
            started = time.perf_counter()
            build(LanceRoot(Location(directory), SystemClock()), files)
            size = sum(os.path.getsize(each) for each in Path(directory).rglob("*") if each.is_file())
            print(f"{files:,} files: built in {time.perf_counter() - started:.0f} s", flush=True)
            rows = []
            for step, name in STEPS.items():
                cost = measured(Probe(directory, files, step))
                numbers = Number(cost.seconds, "s"), Number(cost.cpu_s, "CPU s"), Number(cost.mib, "MiB")
                target = TARGETS.get(step) if files <= PROMISED else None
                rows.append(Row(f"{files:,} files: {name}", numbers, target=target))
            rows.append(Row(f"{files:,} files: the store on disk", (None, None, Number(size / 2**20, "MiB"))))
        caption = f"{files:,} files, on a local disk; memory is above that before the step"
        tables.append(Table(("seconds", "CPU", "memory"), tuple(rows), caption=caption))
    return Result(tuple(tables))


def _definition(root: LanceRoot) -> PipelineDefinition:
    source = SourceDefinition(name=SOURCE, location=Location("s3://raw/events"), format=Parquet())
    return PipelineDefinition(
        name="p",
        root=root.location,
        sources=(source,),
        views={},
        ansi=False,
        barrier=BarrierSettings(),
        fetch=FetchSettings(),
    )


def _unprinted(read: Callable[[], object]) -> None:
    with redirect_stdout(io.StringIO()):
        read()


def _peak_mib() -> float:
    # `getrusage` tells the peak of the parent process too.
    [line] = [each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith("VmHWM:")]
    return int(line.split()[1]) / 1_024


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--files", default="1000000", help="numbers of files, with commas between them")
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()

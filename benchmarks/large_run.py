"""A run of a root with millions of files behind it: its start, new files, status, a correction and its end.

    python -m benchmarks.large_run [--files 10000000]

A first run makes the root.  Then a history is written into it (`ledger_history`), of files that are not in the
source: removals pause, and no listing has to show them.  A second run is measured: a start with Ray and Spark, 100 new
files, `slackwater status` as a command, the correction of one file, and the stop.  One second lies between two
listings.  The memory of each process is the most that it held at any time, without what it shares with others.
"""

from __future__ import annotations

import argparse
import csv
import io
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import slackwater as sw
from benchmarks.command import run_benchmark
from benchmarks.ledger_history import SOURCE, write_history
from benchmarks.memory_meter import JAVA, MemoryMeter
from benchmarks.result import Number, Result, Row, Table, Target
from state.clock import SystemClock
from state.lance.lance_root import LanceRoot
from state.location import Location

NEW = 100
_ROWS = 500
_SAMPLE_S = 0.05
_STEP = Target(5.0, "s")
_MEMORY = Target(1_024.0, "MiB")


def _pipeline(place: Path) -> sw.Pipeline:
    pipeline = sw.Pipeline("large", place / "root")
    pipeline.source(
        SOURCE,
        place / "in",
        format="csv",
        schema="k bigint, v bigint",
        materialize=True,
        on_change="replace",
        discovery=sw.Listing(interval_s=1.0),
    )
    pipeline.view("totals", f"SELECT k, count(*) AS n, sum(v) AS total FROM {SOURCE} GROUP BY k")
    return pipeline


def _put(place: Path, name: str, files: int) -> None:
    (place / "in" / name).mkdir(parents=True)
    for number in range(files):
        text = io.StringIO()
        csv.writer(text).writerows([("k", "v"), *((row % 7, row) for row in range(_ROWS))])
        (place / "in" / name / f"{number:04}.csv").write_text(text.getvalue())


def _timed(step: Callable[[], object]) -> float:
    started = time.perf_counter()
    step()
    return time.perf_counter() - started


def _prepare(place: Path, files: int) -> None:
    _put(place, "first", 1)
    with _pipeline(place).start() as run:
        run.wait(until="caught_up")
    root = LanceRoot(Location(str(place / "root")), SystemClock())
    store = root.create_or_open()
    store.take_over("benchmark")
    write_history(root.location, store, files)


def _measure_run(place: Path) -> list[Row]:
    rows: list[Row] = []

    def step(name: str, seconds: float, target: Target | None = _STEP) -> None:
        rows.append(Row(name, (Number(seconds, "s"),), target=target))

    started = time.perf_counter()
    with _pipeline(place).start() as run:
        while run.status().phase == "starting" or run.status().spark == "starting":
            time.sleep(_SAMPLE_S)
        step("start, with Ray and Spark", time.perf_counter() - started, None)
        for each in run.status().startup:
            step(f"of these: {each.name}", each.seconds, None)
        step("first listing after the start", _timed(lambda: run.wait(until="caught_up")))
        _put(place, "new", NEW)
        step(f"{NEW} new files, listed, read and committed", _timed(lambda: run.wait(until="caught_up")))
        status = [sys.executable, "-m", "slackwater", "status", str(place / "root")]
        step("`slackwater status`", _timed(lambda: subprocess.run(status, check=True, stdout=subprocess.DEVNULL)))
        step("correction of one file (`forget`)", _timed(lambda: run.forget(str(place / "in" / "new" / "0007.csv"))))
        step("stop", _timed(run.stop))
    counted = sum(sw.open(place / "root").snapshot().view("totals").to_arrow()["n"].to_pylist())
    assert counted == _ROWS * NEW, counted  # the first file and the new ones, less the forgotten one
    return rows


def measure(options: argparse.Namespace) -> Result:
    tables = []
    for files in map(int, options.files.split(",")):
        with tempfile.TemporaryDirectory() as directory:
            place = Path(directory)
            with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
                process.submit(_prepare, place, files).result()
            print(f"{files:,} files: built", flush=True)
            meter = MemoryMeter(_SAMPLE_S)
            rows = _measure_run(place)
            meter.close()
        caption = f"{files:,} files behind the run"
        tables.append(Table(("took",), tuple(rows), caption=caption))
        memory = [
            Row(kind, (Number(mib, "MiB"),), target=None if kind == JAVA else _MEMORY)
            for kind, mib in meter.most.items()
        ]
        tables.append(Table(("memory",), tuple(memory), caption=f"{caption}: the largest process of each kind"))
    return Result(tuple(tables))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--files", default="10000000", help="numbers of files, with commas between them")
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()

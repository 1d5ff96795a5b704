"""Pipelines as users write them, in whole runs, compared with batches of Spark and DuckDB over the same files.

    python -m benchmarks.realistic [--pipeline demo] [--rows 500 5000] [--epochs 100] [--most-rows 5000000] [--alone]

Each pipeline is started for each size of an epoch, and fed with six files at a time: the next six appear when all rows
of the last six are committed.  The time of an epoch is from the appearance of its files to their last commit.
Spark and DuckDB are warm and compute all views from the files of one epoch; they keep nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.command import run_benchmark
from benchmarks.contenders.batch_queries import DuckdbBatch, stored_answers
from benchmarks.realistic_pipelines import PIPELINES, RealisticPipeline
from benchmarks.realistic_restart import BEFORE, prepare
from benchmarks.result import TIMES, Number, Result, Row, Table, Target

SIZES = (500, 5_000, 50_000, 500_000)
LEAST_EPOCHS, WARM_UP, BATCHES = 4, 5, 3
_LIMIT_S = 1_200.0
_KINDS = ("driver JVM", "the driver", "executor JVM", "actors", "Ray")
_OF_SPARK = {5_000: Target(0.45, TIMES), 500_000: Target(1.67, TIMES)}
_COLD, _RESTARTED, _CORRECTED = Target(3, TIMES), Target(25, "s"), Target(1.5, "s")
_WARM = {"demo, 5,000 rows": Target(0.35, "s"), "demo, 50,000 rows": Target(1.3, "s")}
_JVM = {"demo, 5,000 rows": Target(0.2, "s")}


@dataclass(frozen=True)
class Measurement:
    """A pipeline with epochs of one size.

    Args:
        ours: the output of `realistic_run`.
        spark: the output of `batch_queries`, and `duckdb` also; None if left out.
    """

    pipeline: str
    rows: int
    epochs: int
    ours: dict[str, Any]
    spark: dict[str, Any] | None = None
    duckdb: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        return f"{self.pipeline}, {self.rows:,} rows"

    def seconds(self, phase: str) -> float:
        """The median of its epochs."""
        return float(median(self.ours[phase]["seconds"]))

    @property
    def warm_epochs(self) -> int:
        return len(self.ours["warm"]["seconds"])


def measured(name: str, rows: int, epochs: int, place: Path, *, alone: bool) -> Measurement:
    """One pipeline with epochs of one size, and its contenders unless it is alone."""
    pipeline = PIPELINES[name]()
    pipeline.write_tables(place)
    for number in range(epochs):
        pipeline.write_epoch(place, number, rows)
    ours = _output("benchmarks.realistic_run", name, str(place))
    if alone:
        return Measurement(name, rows, epochs, ours)
    require_same_views(pipeline, place)
    batches = range(max(0, epochs - WARM_UP - BATCHES), epochs)
    words = (name, str(place), str(len(batches) - BATCHES), *map(str, batches))
    spark = _output("benchmarks.contenders.batch_queries", "spark", *words)
    duckdb = _output("benchmarks.contenders.batch_queries", "duckdb", *words)
    require_same(stored_answers(place, "spark"), stored_answers(place, "duckdb"))
    return Measurement(name, rows, epochs, ours, spark, duckdb)


def _output(module: str, *words: str) -> dict[str, Any]:
    """The last line that a module prints, which is JSON."""
    command = [sys.executable, "-m", module, *words]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=_LIMIT_S)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def require_same_views(pipeline: RealisticPipeline, place: Path) -> None:
    """Compares the committed views with DuckDB's, over all files that the pipeline has read.  Errors as there."""
    batch = DuckdbBatch(pipeline)
    batch.read_tables(place / "tables")
    snapshot = sw.open(place / "root").snapshot()
    require_same({view: snapshot.view(view).to_arrow() for view in pipeline.views}, batch.answers(place / "in"))


def require_same(found: dict[str, pa.Table], expected: dict[str, pa.Table]) -> None:
    """Compares the rows of all views, in any order; floats may differ in their last digits.

    Raises:
        AssertionError: a view has other rows.
    """
    assert found.keys() == expected.keys(), (found.keys(), expected.keys())
    for view, rows in found.items():
        ours = _sorted(rows)
        theirs = _sorted(expected[view].cast(rows.schema))
        assert ours.num_rows == theirs.num_rows, f"{view}: {ours.num_rows} rows, and {theirs.num_rows} expected"
        for name in ours.column_names:
            one, other = ours[name], theirs[name]
            if pa.types.is_floating(one.type):
                found_values, values = (each.fill_null(math.nan).to_numpy() for each in (one, other))
                assert np.allclose(found_values, values, rtol=1e-9, equal_nan=True), f"{view}.{name} differs"
            else:
                assert one.equals(other), f"{view}.{name} differs"


def _sorted(rows: pa.Table) -> pa.Table:
    names = [column.name for column in rows.schema if not pa.types.is_floating(column.type)]
    return rows.sort_by([(name, "ascending") for name in names]).combine_chunks()


def epochs_table(measurements: Sequence[Measurement]) -> Table:
    """Seconds of an epoch, cold and warm."""
    rows = []
    for each in measurements:
        contenders = [None if found is None else median(found["seconds"]) for found in (each.spark, each.duckdb)]
        numbers = [each.seconds("warm"), each.seconds("cold"), each.ours["start_s"], *contenders]
        spark = contenders[0]
        ratio = None if spark is None else each.seconds("warm") / spark
        target = None if ratio is None else _OF_SPARK.get(each.rows)
        rows.append(Row(each.name, tuple(map(_seconds, numbers)), ratio, target, f"{each.epochs} epochs"))
    columns = ("warm", "cold", "the start, with the first epoch", "Spark's batch", "DuckDB")
    return Table(columns, tuple(rows), "of Spark's batch", "An epoch, from six new files to their commit, p50")


def cold_table(measurements: Sequence[Measurement]) -> Table:
    """The first epochs after the start, as a ratio to the warm epochs."""
    rows = []
    for each in measurements:
        cold, warm = each.seconds("cold"), each.seconds("warm")
        first = each.ours["cold"]["seconds"]
        numbers = (_seconds(cold), _seconds(max(first)))
        rows.append(Row(f"{each.name}: after the start", numbers, cold / warm, _COLD, f"{len(first)} epochs"))
    columns = ("p50", "the slowest")
    return Table(columns, tuple(rows), "of a warm epoch", "The first epochs after the start")


def warm_table(measurements: Sequence[Measurement]) -> Table:
    """Warm epochs: median, and the longest."""
    rows = []
    for each in measurements:
        numbers = (_seconds(each.seconds("warm")), _seconds(max(each.ours["warm"]["seconds"])))
        rows.append(Row(f"{each.name}: warm", numbers, target=_WARM.get(each.name), note=f"{each.warm_epochs} epochs"))
    return Table(("p50", "the slowest"), tuple(rows), caption="Warm epochs")


def costs_table(measurements: Sequence[Measurement]) -> Table:
    """CPU-seconds and counts of a warm epoch."""
    rows = []
    for each in measurements:
        warm, count = each.ours["warm"], each.warm_epochs
        cpu_s = [_seconds(warm["cpu_s"].get(kind, 0.0) / count) for kind in _KINDS]
        counts = [Number(warm[name] / count) for name in ("commits", "planned", "calls")]
        spark = None if each.spark is None else _seconds(each.spark["cpu_s"] / len(each.spark["seconds"]))
        rows.append(Row(f"{each.name}: CPU", (*cpu_s, *counts, spark), target=_JVM.get(each.name)))
    columns = (
        "driver JVM",
        "driver Python",
        *_KINDS[2:],
        "commits",
        "planned queries",
        "calls of the JVM",
        "CPU of Spark's batch",
    )
    return Table(columns, tuple(rows), caption="CPU-seconds and counts of six files, warm")


def restart_table(place: Path, files: int) -> Table:
    """The demo's pipeline after a pause of as many days as files, and a corrected file."""
    pipeline = PIPELINES["demo"]()
    pipeline.write_tables(place)
    rows = prepare(place, files)
    shutil.copytree(place / "epochs" / "0000", place / "epochs" / "0002", copy_function=os.link)
    shutil.copytree(place / "epochs" / "0001", place / "epochs" / "0002", copy_function=os.link, dirs_exist_ok=True)
    _output("benchmarks.realistic_restart", str(place))
    ours = _output("benchmarks.realistic_restart", str(place))
    require_same_views(pipeline, place)
    spark = _output("benchmarks.contenders.batch_queries", "spark", "demo", str(place), "0", "1", "2", "2")
    restart_s, correction_s = spark["start_s"] + spark["seconds"][0], spark["seconds"][-1]
    table_rows = (
        Row(
            f"{files} files, {rows:,} rows after a restart, start included",
            (_seconds(ours["start_s"]), _seconds(restart_s)),
            ours["start_s"] / restart_s,
            _RESTARTED,
        ),
        Row(
            "a correction of one file",
            (_seconds(ours["correction_s"]), _seconds(correction_s)),
            ours["correction_s"] / correction_s,
            _CORRECTED,
        ),
    )
    caption = f"The demo's pipeline with {BEFORE} committed files; Spark reads the new files, or for the correction all"
    return Table(("Slackwater", "Spark's batch"), table_rows, "of Spark's batch", caption)


def _seconds(value: float | None) -> Number | None:
    return None if value is None else Number(value, "s")


@contextmanager
def _scratch() -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix="slackwater-realistic-"))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def measure(options: argparse.Namespace) -> Result:
    measurements, tables = [], []
    for name in options.pipeline:
        for rows in options.rows:
            epochs = max(LEAST_EPOCHS, min(options.epochs, options.most_rows // rows))
            with _scratch() as place:
                measurements.append(measured(name, rows, epochs, place, alone=options.alone))
            print(json.dumps(measurements[-1].ours), flush=True)
    if options.restart:
        with _scratch() as place:
            tables.append(restart_table(place, options.restart))
    made = (epochs_table, warm_table, cold_table, costs_table)
    return Result((*(make(measurements) for make in made), *tables))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--pipeline", nargs="+", choices=PIPELINES, default=list(PIPELINES))
    arguments.add_argument("--rows", nargs="+", type=int, default=list(SIZES), help="of an epoch, of six files")
    arguments.add_argument("--epochs", type=int, default=100, help="at most, after each start; the last 40 % are warm")
    arguments.add_argument("--most-rows", type=int, default=5_000_000, help=f"of a run beyond {LEAST_EPOCHS} epochs")
    arguments.add_argument("--alone", action="store_true", help="without contenders")
    arguments.add_argument("--restart", type=int, default=0, help="files after a restart; 0 leaves the restart out")
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()

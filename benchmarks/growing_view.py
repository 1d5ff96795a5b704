"""A view that grows, from 500 files of line items: this project, Spark's file stream in two ways, nightly recomputes.

    python -m benchmarks.growing_view [--files 500] [--rows 10000]

Five files make an epoch, or a batch.  Nothing that is written is deleted again, so that what lies there in the end is
what was written.  The stream in `complete` mode writes the whole result at each batch; in `update` mode it merges what
has changed into a Lance table, which is not the same epoch for the table and the stream after a crash.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import slackwater as sw
from benchmarks.command import run_benchmark
from benchmarks.directory_size import directory_size
from benchmarks.line_items import QUERY, SCHEMA, write_line_items
from benchmarks.result import LinePlot, Number, Result, Row, Table

FILES_PER_EPOCH = 5
_COLD = 5
"""So many epochs and batches at the beginning are left out of the comparison of seconds: code is being compiled."""


def ours(scratch: Path) -> tuple[list[float], int, int]:
    """Seconds between the commits of epochs, bytes of the root, and rows of the view."""
    settings = sw.Settings(
        fetch=sw.settings.FetchSettings(num_fetchers=1, max_files_per_epoch=FILES_PER_EPOCH),
        retention=sw.settings.RetentionSettings(keep_epochs=1_000_000),
    )
    root = scratch / "root"
    pipeline = sw.Pipeline("growing", str(root), settings=settings)
    pipeline.source("lineitem", str(scratch / "in"), format="parquet", schema=SCHEMA)
    pipeline.view("orders", QUERY)
    pipeline.run(until="caught_up")
    store = sw.open(str(root))
    epochs = [epoch for epoch in store.epochs().to_pylist() if epoch["rows"]]
    commits = [epoch["committed_at"].timestamp() for epoch in epochs]
    seconds = [after - before for before, after in itertools.pairwise(commits)]
    return seconds, directory_size(root), store.snapshot().view("orders").to_arrow(columns=["lines"]).num_rows


def theirs(way: str, scratch: Path) -> tuple[list[float], int]:
    """Seconds of each batch, and the bytes of all, of one of Spark's ways."""
    command = [sys.executable, "-m", "benchmarks.contenders.spark_table", way, str(scratch), str(FILES_PER_EPOCH)]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    batches = json.loads(answer.splitlines()[-1])
    return [seconds for seconds, _ in batches], sum(written for _, written in batches)


def measure(options: argparse.Namespace) -> Result:
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        write_line_items(scratch / "in", options.files, options.rows)
        own, own_bytes, groups = ours(scratch)
        measured = {
            "Slackwater": (own, own_bytes),
            "Spark file stream, `complete`, over a Parquet table": theirs("complete", scratch),
            "Spark file stream, `update`, merged into a Lance table": theirs("update", scratch),
        }
        nights, nightly_bytes = theirs("nightly", scratch)
    own_s = sum(own[_COLD:])
    rows = tuple(_row(name, seconds, written, own_s) for name, (seconds, written) in measured.items())
    size = f"{options.files} files × {options.rows:,} rows, {FILES_PER_EPOCH} files an epoch"
    columns = "in all", "an epoch, first tenth", "last tenth", "written"
    table = Table(columns, rows, "of Slackwater's time", f"{size}, {groups:,} groups in the end")
    each = tuple(Row(f"night {number}", (Number(seconds, "s"), None)) for number, seconds in enumerate(nights, 1))
    total = Row("all", (Number(sum(nights), "s"), Number(nightly_bytes / 1e6, "MB")))
    nightly = Table(
        ("seconds", "written"), (*each, total), caption="Recomputed each night, over a fifth more of the files"
    )
    return Result((table, nightly), lines=(_plot(measured, groups),))


def _row(name: str, seconds: list[float], written: int, own_s: float) -> Row:
    warm = seconds[_COLD:]
    tenth = max(1, len(warm) // 10)
    first, last = (sum(part) / len(part) for part in (warm[:tenth], warm[-tenth:]))
    numbers = Number(sum(warm), "s"), Number(first, "s"), Number(last, "s"), Number(written / 1e6, "MB")
    return Row(name, numbers, ratio=None if name == "Slackwater" else sum(warm) / own_s)


def _plot(measured: Mapping[str, tuple[list[float], int]], groups: int) -> LinePlot:
    short = ("Slackwater", "stream, complete", "stream, update")
    lines = {
        name: tuple((number * FILES_PER_EPOCH, s) for number, s in enumerate(seconds) if number >= _COLD)
        for name, (seconds, _) in zip(short, measured.values(), strict=True)
    }
    return LinePlot(
        "growing_view", f"Time of an epoch while a view grows to {groups:,} groups", "files", "seconds", lines
    )


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--files", type=int, default=500)
    arguments.add_argument("--rows", type=int, default=10_000)
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()

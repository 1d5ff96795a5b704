"""A view that grows, from 500 files of line items: this project, Spark's file stream in two ways, nightly recomputes.

    python -m benchmarks.growing_view [--files 500] [--rows 10000] [--plot docs/images]

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
from pathlib import Path

import slackwater as sw
from benchmarks.directory_size import directory_size
from benchmarks.line_chart import line_chart
from benchmarks.line_items import QUERY, SCHEMA, write_line_items
from benchmarks.machine import describe_machine

FILES_PER_EPOCH = 5
_COLD = 5
"""So many epochs and batches at the beginning are left out of the comparison of seconds: code is being compiled."""


def ours(scratch: Path) -> tuple[list[float], int, int]:
    """Seconds between the commits of epochs, bytes of the root, and rows of the view."""
    settings = sw.Settings(
        fetch=sw.FetchSettings(num_fetchers=1, max_files_per_epoch=FILES_PER_EPOCH),
        retention=sw.RetentionSettings(keep_epochs=1_000_000),
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
    command = [sys.executable, "-m", "benchmarks.spark_table", way, str(scratch), str(FILES_PER_EPOCH)]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    batches = json.loads(answer.splitlines()[-1])
    return [seconds for seconds, _ in batches], sum(written for _, written in batches)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--files", type=int, default=500)
    arguments.add_argument("--rows", type=int, default=10_000)
    arguments.add_argument("--plot", type=Path, help="where the plot goes")
    options = arguments.parse_args()
    print(describe_machine())
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        write_line_items(scratch / "in", options.files, options.rows)
        own, own_bytes, groups = ours(scratch)
        measured = {
            "slackwater": (own, own_bytes),
            "stream, complete": theirs("complete", scratch),
            "stream, update": theirs("update", scratch),
        }
        nights, nightly_bytes = theirs("nightly", scratch)
    print(
        f"{options.files} files x {options.rows:,} rows, {groups:,} groups in the end, {FILES_PER_EPOCH} files an epoch"
    )
    for name, (seconds, written) in measured.items():
        warm = seconds[_COLD:]
        tenth = max(1, len(warm) // 10)
        first, last = (sum(part) / len(part) for part in (warm[:tenth], warm[-tenth:]))
        print(
            f"  {name:17} {sum(warm):7.1f} s in all, {sum(warm) / sum(own[_COLD:]):4.1f} x   an epoch: first tenth "
            f"{first:.2f} s, last {last:.2f} s   {written / 1e6:,.0f} MB written, {written / own_bytes:.1f} x"
        )
    each = ", ".join(f"{seconds:.1f}" for seconds in nights)
    print(f"  nightly, five times: {each} s, {nightly_bytes / 1e6:,.0f} MB written")
    if options.plot:
        lines = {
            name: [(number * FILES_PER_EPOCH, seconds) for number, seconds in enumerate(each) if number >= _COLD]
            for name, (each, _) in measured.items()
        }
        title = f"Time of an epoch while a view grows to {groups:,} groups"
        (options.plot / "growing_view.svg").write_text(line_chart(title, "files", "seconds", lines))


if __name__ == "__main__":
    main()

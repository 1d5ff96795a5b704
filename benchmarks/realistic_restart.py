"""Restart of the demo's pipeline with files that arrived meanwhile, and the correction of a file; prints JSON.

    python -m benchmarks.realistic_restart DIRECTORY

`prepare` writes one file a day: those before the restart are epoch 0, and those after it are epoch 1.  The program
commits epoch 0 if the root is new; otherwise it commits epoch 1, and then replaces one Parquet file of it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from itertools import islice
from pathlib import Path

import slackwater as sw
from benchmarks.realistic_pipelines import PIPELINES
from benchmarks.realistic_run import Feed, wait_for_files
from slackwater.plugins.demo.flights import day_files, without_cancelled

BEFORE = 40
_POLL_S = 0.01


def prepare(directory: Path, count: int) -> int:
    """Writes the files, with this number in epoch 1, and the replacement of one; returns the rows of epoch 1."""
    files = list(islice(day_files(), BEFORE + count))
    for number, file in enumerate(files):
        place = directory / "epochs" / ("0000" if number < BEFORE else "0001") / f"flights_{file.format}"
        place.mkdir(parents=True, exist_ok=True)
        (place / Path(file.key).name).write_bytes(file.body)
    replaced = next(file for file in reversed(files) if file.format == "parquet")
    (directory / Path(replaced.key).name).write_bytes(without_cancelled(replaced).body)
    return sum(file.rows for file in files[BEFORE:])


def replace_file(directory: Path) -> None:
    """Replaces the Parquet file of which there is a replacement."""
    [new] = directory.glob("*.parquet")
    os.replace(new, directory / "in" / "flights_parquet" / new.name)


def _flights(root: Path) -> int:
    rows = sw.open(root).snapshot().view("by_month").to_arrow()
    return sum(rows["flights"].to_pylist())


def measure(directory: Path) -> dict[str, float]:
    """Seconds from the start of the run to the commit, and from the replacement of a file to its commit."""
    pipeline, feed = PIPELINES["demo"](), Feed(directory)
    is_restart = (directory / "in").exists()
    declared = pipeline.declare(directory)
    files = feed.put(int(is_restart))
    if not is_restart:
        files += len(pipeline.tables) + len(pipeline.file_tables)
    began = time.perf_counter()
    with declared.start() as run:
        wait_for_files(run, files)
        found = {"start_s": time.perf_counter() - began}
        if is_restart:
            before = _flights(directory / "root")
            began = time.perf_counter()
            replace_file(directory)
            while _flights(directory / "root") == before and not run.wait(timeout_s=_POLL_S):
                pass
            found["correction_s"] = time.perf_counter() - began
        run.stop()
    return found


def main() -> None:
    print(json.dumps(measure(Path(sys.argv[1]))), flush=True)


if __name__ == "__main__":
    main()

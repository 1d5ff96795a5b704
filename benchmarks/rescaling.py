"""One fetch actor becomes four while 100,000 files wait: the gap in emission, and the bytes read twice.

    python -m benchmarks.rescaling [--files 100000] [--from 1] [--to 4]

Local files of 1 KB.  All of them are listed and wait at the fetch actor before it reads at full speed.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path

import slackwater as sw
from benchmarks.command import run_benchmark
from benchmarks.many_files import QUERY, ROWS, SCHEMA, small_files
from benchmarks.result import Number, Result, Row, Table, Target

_SAMPLE_S = 0.005
_BEFORE_S, _AFTER_S = 10.0, 10.0


class Gaps:
    """Samples how many rows are emitted and which epoch is the last, until it is closed."""

    def __init__(self, run: sw.Run) -> None:
        self._run = run
        self.rows: list[tuple[float, int]] = []
        self.epochs: list[tuple[float, int]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join()

    def longest_s(self, changes: list[tuple[float, int]], begin: float, end: float) -> float:
        """The longest time without a change between two moments."""
        moments = [begin, *(at for at, _ in changes if begin < at < end), end]
        return max(after - before for before, after in pairwise(moments))

    def _sample(self) -> None:
        while not self._over.wait(_SAMPLE_S):
            status, now = self._run.status(), time.perf_counter()
            for changes, value in ((self.rows, status.sources["events"].rows), (self.epochs, status.epochs)):
                if not changes or changes[-1][1] != value:
                    changes.append((now, value))


def measure(options: argparse.Namespace) -> Result:
    place = Path(tempfile.mkdtemp(prefix="slackwater-rescaling-"))
    try:
        return rescale(place, options.files, options.before, options.after)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def rescale(place: Path, files: int, before: int, after: int) -> Result:
    (place / "in").mkdir()
    for number, content in enumerate(small_files(files)):
        (place / "in" / f"{number:07}.csv").write_bytes(content)
    settings = sw.Settings(fetch=sw.settings.FetchSettings(num_fetchers=before, max_files_waiting=2 * files))
    pipeline = sw.Pipeline("rescaling", place / "root", settings=settings)
    pipeline.source("events", place / "in", format="csv", schema=SCHEMA, discovery=sw.Listing(interval_s=30.0))
    pipeline.view("totals", QUERY)
    with pipeline.start() as run:
        run.throttle(files_per_second=2)
        while run.report().files < 1 or run.status().sources["events"].waiting < files - 1_000:
            time.sleep(0.1)
        waiting = run.status().sources["events"].waiting
        run.throttle()
        gaps = Gaps(run)
        time.sleep(_BEFORE_S)
        asked, moved_at = time.perf_counter(), run.status().sources["events"].waiting
        run.rescale(fetchers=after)
        done = time.perf_counter()
        assert run.status().fetchers == after
        time.sleep(_AFTER_S)
        measured = time.perf_counter()
        run.wait(until="caught_up")
        gaps.close()
        report = run.stop()
    epochs = sw.open(place / "root").epochs()
    requests = sum(epochs["requests"].to_pylist())
    assert report.rows == files * (ROWS + 1), report
    rows = []
    for what, changes, target in (
        ("in which no row was emitted", gaps.rows, Target(2.0, "s")),
        ("without a committed epoch", gaps.epochs, None),
    ):
        usual = gaps.longest_s(changes, asked - _BEFORE_S / 2, asked)
        longest = gaps.longest_s(changes, asked, min(measured, changes[-1][0]))
        rows.append(Row(f"longest time {what}", (Number(longest, "s"), Number(usual, "s")), target=target))
    rows.append(Row("from the request to the end of the epoch of the barrier", (Number(done - asked, "s"), None)))
    # Listings are few beside so many files; a file that is read twice would be seen.
    rows.append(Row(f"requests for {files:,} files", (Number(requests), None), target=Target(int(files * 1.001))))
    caption = (
        f"From {before} to {after} fetch actors; {waiting:,} files waited at first, {moved_at:,} when it was asked for"
    )
    return Result((Table(("measured", "in the seconds before"), tuple(rows), caption=caption),))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--files", type=int, default=100_000)
    arguments.add_argument("--from", dest="before", type=int, default=1)
    arguments.add_argument("--to", dest="after", type=int, default=4)
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()

"""Pathway over a directory or a bucket; it reads no Parquet files, and gets the same rows as CSV.

    python -m benchmarks.contenders.pathway_stream all|bucket|arrivals DIRECTORY [ROWS_OF_A_FILE]

`all` and `arrivals` are streams, which see a file soon after it is there; nothing is persisted.  `bucket` reads all
objects once: a stream polls a bucket too seldom to be compared.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_BEGUN = time.perf_counter()

import pathway as pw  # noqa: E402  (its import is part of its start)

from benchmarks.contenders.answer import Answer  # noqa: E402
from benchmarks.contenders.arrivals import arrivals  # noqa: E402

_COMMIT_MS = 20


class Events(pw.Schema):  # type: ignore[misc]
    user: int
    amount: float
    kind: str


class Totals:
    """The groups as Pathway tells of them."""

    def __init__(self, events: pw.Table) -> None:
        self.groups: dict[int, tuple[int, float]] = {}
        self._rows = self._committed = 0
        grouped = events.groupby(events.user).reduce(
            events.user, n=pw.reducers.count(), total=pw.reducers.sum(events.amount)
        )
        pw.io.subscribe(grouped, on_change=self._on_change, on_time_end=self._on_time_end)

    def rows(self) -> int:
        """The number of rows that the result counts, as of the last complete moment."""
        return self._committed

    def answer(self, ready: float, seconds: tuple[float, ...]) -> Answer:
        groups = [(user, count, total) for user, (count, total) in self.groups.items()]
        return Answer(ready - _BEGUN, seconds, groups)

    def _on_change(self, key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        # A group that changes comes twice, once to be taken away; in which order is not promised.
        self._rows += row["n"] if is_addition else -row["n"]
        if is_addition:
            self.groups[row["user"]] = (row["n"], row["total"])

    def _on_time_end(self, time: int) -> None:
        self._committed = self._rows


def take_all(directory: Path) -> None:
    """`cold` is moved beside `warm` at one moment, when that is in the result."""
    watched = directory / "watched"
    totals = Totals(_watch(watched))
    warm, cold = (int((directory / f"{name}.rows").read_text()) for name in ("warm", "cold"))

    def drive() -> Answer:
        _wait(lambda: totals.rows() >= warm)
        before = dict(totals.groups)
        (directory / "cold").rename(watched / "cold")
        ready = time.perf_counter()
        _wait(lambda: totals.rows() >= warm + cold)
        seconds = time.perf_counter() - ready
        for user, (count, total) in before.items():
            now = totals.groups[user]
            totals.groups[user] = (now[0] - count, now[1] - total)
        return totals.answer(ready, (seconds,))

    _stream(drive)


def take_bucket() -> None:
    """All objects of a prefix, once."""
    place = json.loads(os.environ["CONTENDER_BUCKET"])
    settings = pw.io.s3.AwsS3Settings(with_path_style=True, **place["settings"])
    events = pw.io.s3.read(place["prefix"], "csv", aws_s3_settings=settings, schema=Events, mode="static")
    totals = Totals(events)
    ready = time.perf_counter()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE, default_logging=False)
    totals.answer(ready, (time.perf_counter() - ready,)).print()


def take_arrivals(directory: Path, rows_of_file: int) -> None:
    """One file at a time."""
    totals = Totals(_watch(directory / "in"))

    def drive() -> Answer:
        ready = time.perf_counter()
        return totals.answer(ready, arrivals(directory, rows_of_file, totals.rows))

    _stream(drive)


def _watch(directory: Path) -> pw.Table:
    return pw.io.csv.read(str(directory), schema=Events, mode="streaming", autocommit_duration_ms=_COMMIT_MS)


def _stream(drive: Callable[[], Answer]) -> None:
    """Runs what was declared until the driver has its answer; a stream has no other end."""

    def until_answered() -> None:
        code = 1
        try:
            drive().print()
            code = 0
        finally:
            os._exit(code)

    threading.Thread(target=until_answered, daemon=True).start()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE, default_logging=False)


def _wait(is_done: Callable[[], bool]) -> None:
    while not is_done():
        time.sleep(0.002)


def main() -> None:
    how, directory = sys.argv[1], Path(sys.argv[2])
    if how == "all":
        take_all(directory)
    elif how == "bucket":
        take_bucket()
    else:
        take_arrivals(directory, int(sys.argv[3]))


if __name__ == "__main__":
    main()

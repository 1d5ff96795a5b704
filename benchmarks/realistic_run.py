"""One run of a realistic pipeline, fed epoch by epoch; prints its measurements as JSON.

    python -m benchmarks.realistic_run PIPELINE DIRECTORY

The files of epoch 0 are there at the start.  The files of each further epoch appear together when the previous epoch is
committed.  The time of an epoch is from the appearance of its files to their last commit.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from py4j.clientserver import ClientServerConnection
from py4j.java_gateway import GatewayConnection
from pyspark.sql import SparkSession

import slackwater as sw
from benchmarks.cpu_meter import CpuMeter
from benchmarks.realistic_pipelines import PIPELINES
from spark_bridge.engine.catalyst.query_count import QueryCount
from spark_bridge.engine.catalyst.scala import Scala

COLD = 10
"""The number of epochs after the start that count as cold, at most."""
WARM_FROM = 0.6
"""Epochs after this part of all are warm, and cold ones lie in the rest before it."""
_POLL_S = 0.02
# A mark of a command line -> the kind of its process; the first one counts.
_KINDS = (
    ("SparkSubmit", "driver JVM"),
    ("app-master", "master JVM"),
    ("DefaultWorker", "executor JVM"),
    ("Agent", "Ray"),
    ("ray::", "actors"),
)


@dataclass(frozen=True)
class Phase:
    """Some epochs in a row.

    Args:
        seconds: of each epoch, from the appearance of its files to their last commit.
        cpu_s: CPU-seconds by kind of process.
        commits: epochs that the run committed for them.
        planned: queries that Spark has analysed or planned.
        calls: calls from Python to the driver's JVM.
    """

    seconds: tuple[float, ...]
    cpu_s: dict[str, float]
    commits: int
    planned: int
    calls: int


def phases(epochs: int) -> tuple[range, range]:
    """The cold and the warm epochs of a feed; epoch 0 is part of the start."""
    return range(1, 1 + min(COLD, int((1 - WARM_FROM) * epochs))), range(int(WARM_FROM * epochs), epochs)


def _kind_of(command: list[str]) -> str:
    text = " ".join(command)
    return next((kind for mark, kind in _KINDS if mark in text), "Ray")


class _Calls:
    """Counts the calls from Python to the JVM while it is open."""

    def __init__(self) -> None:
        self.count = 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Replaces the senders of py4j."""
        classes = (ClientServerConnection, GatewayConnection)
        senders = [each.send_command for each in classes]
        for each, sender in zip(classes, senders, strict=True):
            each.send_command = self._counting(sender)
        yield
        for each, sender in zip(classes, senders, strict=True):
            each.send_command = sender

    def _counting(self, sender: Any) -> Any:
        def send(*words: Any, **options: Any) -> Any:
            self.count += 1
            return sender(*words, **options)

        return send


class Feed:
    """The epochs of a directory, fed to a run.

    Args:
        directory: with `epochs/NUMBER/SOURCE/FILE`; the pipeline reads `in/SOURCE`.
    """

    def __init__(self, directory: Path) -> None:
        self._epochs = sorted((directory / "epochs").iterdir())
        self._sources = directory / "in"

    def __len__(self) -> int:
        return len(self._epochs)

    def put(self, number: int) -> int:
        """Makes the files of an epoch appear; returns how many."""
        files = sorted(self._epochs[number].glob("*/*"))
        for file in files:
            place = self._sources / file.parent.name
            place.mkdir(parents=True, exist_ok=True)
            os.link(file, place / file.name)
        return len(files)


def wait_for_files(run: sw.Run, files: int) -> None:
    """Waits until a run has committed this number of files since its start."""
    while run.report().files < files:
        run.wait(timeout_s=_POLL_S)


class Measured:
    """A run that is measured.

    Args:
        files: committed before the first feed.
    """

    def __init__(self, run: sw.Run, feed: Feed, files: int, calls: _Calls) -> None:
        self._run, self._feed, self._files, self._calls = run, feed, files, calls
        self._planned = QueryCount(Scala(SparkSession._instantiatedSession))

    def phase(self, numbers: range) -> Phase:
        """Feeds these epochs, one after the other."""
        meter, before = CpuMeter(_kind_of), self._counts()
        times = [time.perf_counter()]
        for number in numbers:
            self._files += self._feed.put(number)
            wait_for_files(self._run, self._files)
            times.append(time.perf_counter())
        counts = [end - start for start, end in zip(before, self._counts(), strict=True)]
        return Phase(tuple(end - start for start, end in pairwise(times)), meter.seconds(), *counts)

    def _counts(self) -> tuple[int, int, int]:
        """Commits, planned queries and calls of the JVM since the start."""
        return self._run.report().epochs, self._planned.total, self._calls.count


def measure(name: str, directory: Path) -> dict[str, Any]:
    """Starts the pipeline, feeds all epochs and stops it."""
    realistic, feed, calls = PIPELINES[name](), Feed(directory), _Calls()
    pipeline = realistic.declare(directory)
    files = feed.put(0) + len(realistic.tables) + len(realistic.file_tables)
    began = time.perf_counter()
    with pipeline.start() as run, calls.counted():
        wait_for_files(run, files)
        start_s = time.perf_counter() - began
        measured = Measured(run, feed, files, calls)
        cold, warm = phases(len(feed))
        found = {"cold": measured.phase(cold)}
        measured.phase(range(cold.stop, warm.start))
        found["warm"] = measured.phase(warm)
        run.stop()
    return {"start_s": start_s, **{phase: asdict(each) for phase, each in found.items()}}


def main() -> None:
    name, directory = sys.argv[1], Path(sys.argv[2])
    print(json.dumps(measure(name, directory)), flush=True)


if __name__ == "__main__":
    main()

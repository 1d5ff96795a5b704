"""Results and records as benchmarks would give them."""

from __future__ import annotations

from benchmarks.record import Record, Run
from benchmarks.result import TIMES, BarPlot, LinePlot, Number, Result, Row, Table, Target

CONTEST = Table(
    ("seconds", "to be ready before"),
    (
        Row("Slackwater", (Number(3.571, "s"), Number(12.0, "s")), target=Target(4.0, "s")),
        Row("Spark | stream", (Number(8.7, "s"), None), 8.7 / 3.571, Target(10.0, TIMES, at_least=True), "in memory"),
    ),
    "of Slackwater's time",
    "2,000 files",
)


def contest() -> Result:
    """Two contenders, one target met and one missed, with a plot of each kind."""
    lines = LinePlot("lines", "Lines", "files", "seconds", {"one": ((0.0, 1.0), (10.0, 2.5))})
    bars = BarPlot("bars", "Bars", "s", {"Slackwater": 3.571, "Spark": 8.7})
    return Result((CONTEST,), (lines,), (bars,), ("Pathway took no part.",))


def count(requests: int) -> Result:
    """One exact number."""
    return Result((Table(("requests",), (Row("a file", (Number(requests),)),)),))


def record(name: str, result: Result, day: str = "2026-11-22") -> Record:
    return Record(name, run(name, day), result)


def failure(name: str, reason: str, day: str = "2026-11-23") -> Record:
    return Record(name, failed=run(name, day), reason=reason)


def run(name: str, day: str) -> Run:
    return Run(f"python -m benchmarks.{name}", day, "2 cores", 41.5)

"""Cost of an epoch in which windows close: a view with `emit="on_close"` over a million open groups.

    python -m benchmarks.closing_windows [--windows 100] [--keys 10000] [--epochs 20]

In one local session: a row for each key of each window, then epochs of 1,000 rows, in turns with a watermark that
closes one window, with all of its groups, and with one that closes none.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from statistics import median

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from actors.protocol.blocks import Block
from benchmarks.command import run_benchmark
from benchmarks.result import Number, Result, Row, Table, Target
from spark_bridge.engine.session.local_session import start_local_session
from spark_bridge.engine.session.settings import SparkSettings
from spark_bridge.engine.session.warm_up import warm_up
from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from state.location import Location

SCHEMA = pa.schema(
    [
        ("at", pa.timestamp("us", tz="UTC")),
        ("k", pa.int64()),
        ("x", pa.int64()),
        ("_path", pa.string()),
        ("_row", pa.int64()),
    ]
)
QUERY = (
    "SELECT window.end AS until, k, count(*) AS n, sum(x) AS s, max(x) AS hi FROM t GROUP BY window(at, '1 minute'), k"
)
NEW_ROWS, WARM_EPOCHS = 1_000, 3
_MINUTE_US = 60_000_000


def rows_of(windows: npt.NDArray[np.int64], keys: int, random: np.random.Generator) -> pa.Table:
    """A row for each key of each window, in random order."""
    count = len(windows) * keys
    order = random.permutation(count)
    times = np.repeat(windows, keys) * _MINUTE_US + random.integers(0, _MINUTE_US, count)
    columns = [
        pa.array(times[order]).cast(pa.timestamp("us")).cast(SCHEMA.field("at").type),
        pa.array(np.tile(np.arange(keys), len(windows))[order]),
        pa.array(random.integers(0, 1_000, count)),
        pa.repeat("s3://bucket/events/1.parquet", count),
        pa.array(np.arange(count)),
    ]
    return pa.table(columns, schema=SCHEMA)


class ClosingRun:
    """The epochs of one view.

    Args:
        materializer: with the view.
        windows: the number of windows at first.
        keys: the number of groups of each.
    """

    def __init__(self, materializer: Materializer, windows: int, keys: int) -> None:
        self._materializer, self._random = materializer, np.random.default_rng(1)
        self._windows, self._epoch, self._closed = windows, 1, 0
        started = time.perf_counter()
        self._run(rows_of(np.arange(windows), keys, self._random))
        self.first_s = time.perf_counter() - started

    def turn(self, *, closes: bool) -> float:
        """Seconds of an epoch of new rows in a further window."""
        self._epoch += 1
        self._closed += closes
        rows = rows_of(np.array([self._windows + self._epoch]), NEW_ROWS, self._random)
        started = time.perf_counter()
        self._run(rows)
        ended = time.perf_counter()
        self._materializer.tidy()
        return ended - started

    def _run(self, rows: pa.Table) -> None:
        block = Block("benchmark", "t", rows, rows.num_rows, rows.nbytes, tuple(rows.column_names))
        self._materializer.run_epoch(self._epoch, {"t": [block]}, (), {"t": self._closed * _MINUTE_US})


def measure(options: argparse.Namespace) -> Result:
    spark = start_local_session(SparkSettings(executor_cores=2, driver_memory="6g"), "closing-windows")
    warm_up(spark)
    taken: dict[bool, list[float]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as root:
        materializer = Materializer(spark, Location(root), event_times={"t": "at"})
        materializer.declare([ViewDefinition("v", QUERY, emit="on_close")], {"t": SCHEMA}, {})
        run = ClosingRun(materializer, options.windows, options.keys)
        for _ in range(WARM_EPOCHS + options.epochs):
            for closes, seconds in taken.items():
                seconds.append(run.turn(closes=closes))
        (view,) = materializer.shown()
        assert view.rows == options.keys * (WARM_EPOCHS + options.epochs), "each window has closed once"
        materializer.close()
    spark.stop()
    names = {False: "no window closes", True: f"a window closes, with {options.keys:,} groups"}
    rows = []
    for closes, seconds in taken.items():
        measured = sorted(seconds[WARM_EPOCHS:])
        times = median(measured), measured[int(0.95 * len(measured))]
        target = Target(0.5, "s") if closes else None
        rows.append(Row(names[closes], tuple(Number(each, "s") for each in times), target=target))
    groups = options.windows * options.keys
    caption = f"An epoch of {NEW_ROWS:,} rows, with {groups:,} open groups at first (written in {run.first_s:.1f} s)"
    return Result((Table(("p50", "p95"), tuple(rows), caption=caption),))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--windows", type=int, default=100)
    arguments.add_argument("--keys", type=int, default=10_000)
    arguments.add_argument("--epochs", type=int, default=20)
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()

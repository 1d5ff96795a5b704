"""Cost of views over a view: epochs of a thousand rows, with and without them.

    python -m benchmarks.views_over_views [--groups 100000] [--epochs 30] [--life 1000]

In one local session; the graphs in turns.  Each graph has a grouped view over one source; the views over it follow its
changes.  For comparison, Spark recomputes the views over it.  Then the largest graph lives on.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from statistics import median

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from actors.protocol.blocks import Block
from benchmarks.command import run_benchmark
from benchmarks.result import Number, Result, Row, Table, Target
from benchmarks.view_life import measure_life
from spark_bridge.engine.catalyst.arrow_frames import arrow_schema, table_of_frame
from spark_bridge.engine.session.local_session import start_local_session
from spark_bridge.engine.session.settings import SparkSettings
from spark_bridge.engine.session.warm_up import warm_up
from spark_bridge.ingest.dataset_frame import frame_of_dataset
from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from state.lance.lance_access import open_dataset
from state.location import Location
from state.tables.records import ViewVersion

SCHEMA = pa.schema([("user", pa.int64()), ("kind", pa.int64()), ("amount", pa.int64())])
BY_USER = ViewDefinition("by_user", "SELECT user, count(*) AS n, sum(amount) AS total FROM events GROUP BY user")
LARGE = ViewDefinition("large", "SELECT user, total FROM by_user WHERE total > 1000")
BY_N = ViewDefinition("by_n", "SELECT n, count(*) AS users, sum(total) AS total FROM by_user GROUP BY n")
BUSY = ViewDefinition("busy", "SELECT n * 10 AS tens, users FROM by_n WHERE users > 1")
LARGEST = "and both, and a third over one of them"
GRAPHS: Mapping[str, Sequence[ViewDefinition]] = {
    "a grouped view alone": (BY_USER,),
    "and one projection over it": (BY_USER, LARGE),
    "and one aggregation over it": (BY_USER, BY_N),
    LARGEST: (BY_USER, LARGE, BY_N, BUSY),
}
NEW_ROWS, WARM_EPOCHS, LOADED_ROWS = 1_000, 5, 200_000
TARGET = Target(100, "ms")


class Followed:
    """One graph over one source, with its first rows."""

    def __init__(self, spark: SparkSession, root: Location, views: Sequence[ViewDefinition], groups: int) -> None:
        self._random, self._groups, self._epoch = np.random.default_rng(1), groups, 0
        self.views, self.root, self.seconds, self.tidied_s = views, root, list[float](), list[float]()
        self.versions: Mapping[str, ViewVersion] = {}
        self.materializer = Materializer(spark, root)
        self.materializer.declare(views, {"events": SCHEMA}, {})
        for start in range(0, groups, LOADED_ROWS):
            self._run(np.arange(start, min(start + LOADED_ROWS, groups)))

    def turn(self) -> None:
        """An epoch of new rows."""
        self.seconds.append(self._run(self._random.integers(0, self._groups, NEW_ROWS)))

    def _run(self, users: np.ndarray[tuple[int], np.dtype[np.int64]]) -> float:
        kinds, amounts = self._random.integers(0, 100, len(users)), self._random.integers(0, 1_000, len(users))
        rows = pa.table([users, kinds, amounts], schema=SCHEMA)
        block = Block("benchmark", "events", rows, rows.num_rows, rows.nbytes, tuple(SCHEMA.names))
        self._epoch += 1
        started = time.perf_counter()
        self.versions = self.materializer.run_epoch(self._epoch, {"events": [block]}).views
        ended = time.perf_counter()
        self.materializer.tidy()
        self.tidied_s.append(time.perf_counter() - ended)
        return ended - started


def recomputed_s(spark: SparkSession, graph: Followed) -> float:
    """Seconds in which Spark computes the views over the first one from its rows."""
    version = graph.versions[BY_USER.name]
    location = graph.root.child(version.path)
    dataset = open_dataset(location, version.version)
    started = time.perf_counter()
    names = [BY_USER.name]
    frame_of_dataset(spark, location, dataset, ["user", "n", "total"]).createOrReplaceTempView(BY_USER.name)
    for view in graph.views[1:]:
        frame = spark.sql(view.query or "")
        table_of_frame(frame, arrow_schema(frame.schema))
        frame.createOrReplaceTempView(view.name)
        names.append(view.name)
    taken = time.perf_counter() - started
    for name in names:
        spark.catalog.dropTempView(name)
    return taken


def measure(options: argparse.Namespace) -> Result:
    spark = start_local_session(SparkSettings(executor_cores=2, driver_memory="2g"), "views-over-views")
    warm_up(spark)
    with ExitStack() as stack:
        graphs = {}
        for name, views in GRAPHS.items():
            root = Location(stack.enter_context(tempfile.TemporaryDirectory()))
            graphs[name] = Followed(spark, root, views, options.groups)
            stack.callback(graphs[name].materializer.close)
        for _ in range(WARM_EPOCHS + options.epochs):
            for graph in graphs.values():
                graph.turn()
        rows = []
        alone = median(graphs["a grouped view alone"].seconds[WARM_EPOCHS:])
        for name, graph in graphs.items():
            seconds, more = sorted(graph.seconds[WARM_EPOCHS:]), len(graph.views) - 1
            p50, p95 = median(seconds), seconds[int(0.95 * len(seconds))]
            each = (p50 - alone) / more if more else None
            recomputed = median(recomputed_s(spark, graph) for _ in range(3)) if more else None
            numbers = (
                Number(p50, "s"),
                Number(p95, "s"),
                None if each is None else Number(1_000 * each, "ms"),
                None if recomputed is None else Number(recomputed, "s"),
            )
            rows.append(Row(name, numbers, target=TARGET if more else None))
        life = measure_life(graphs[LARGEST], options.life, f"with {len(GRAPHS[LARGEST])} views")
    spark.stop()
    caption = f"An epoch of {NEW_ROWS:,} rows, {options.groups:,} groups in the first view"
    return Result(
        (Table(("p50", "p95", "a view over it", "they recomputed by Spark"), tuple(rows), caption=caption), life)
    )


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--groups", type=int, default=100_000)
    arguments.add_argument("--epochs", type=int, default=30)
    arguments.add_argument("--life", type=int, default=1_000)
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()

"""A grouped view whose HAVING has changed, or to which a measure is added, beside the same view built from all rows.

    python -m benchmarks.redefined_view [--rows 5000000] [--groups 1000 1000000]

Both are timed from the declaration to the epoch that shows the view; nothing else runs meanwhile.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

import lance
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.backfill import AT_ONCE, SCHEMA, batches
from benchmarks.command import run_benchmark
from benchmarks.result import TIMES, Number, Result, Row, Table, Target
from slackwater.backfill.stored_history import StoredHistory
from spark_bridge.engine.session.local_session import start_local_session
from spark_bridge.engine.session.settings import SparkSettings
from spark_bridge.engine.session.warm_up import warm_up
from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from state.lance.lance_access import create_dataset
from state.location import Location
from state.tables.records import CatalogView, ViewVersion

BEFORE = "SELECT user, count(*) AS n, sum(kind) AS total, avg(amount) AS mean FROM events GROUP BY user"
AFTER = f"{BEFORE} HAVING sum(kind) > 20"
MEASURES = {
    "a sum and an average": "sum(kind) AS total, avg(amount) AS mean",
    "a percentile and distinct values": "sum(kind) AS total, percentile(amount, 0.5) AS middle, count(DISTINCT kind)",
}
LEAST, COUNT = "min(amount)", "count(*)"
COSTLY_SHARE = 5


class Rows:
    """A root with stored rows, and epochs without rows.

    Args:
        spark: the session.
        root: an empty directory.
        rows: number of rows.
        groups: number of different users.
    """

    def __init__(self, spark: SparkSession, root: Location, rows: int, groups: int) -> None:
        self._spark, self.root, self._epoch = spark, root, 1
        table = pa.Table.from_batches(batches(rows, groups))
        create_dataset(root.child("rows.lance"), table.slice(0, 0))
        path = root.child("rows.lance").lance_uri
        for start in range(0, rows, AT_ONCE):
            lance.write_dataset(table.slice(start, AT_ONCE), path, mode="append")
        self._stored = ViewVersion("events", "rows.lance", lance.dataset(path).version)
        self._versions: dict[str, ViewVersion] = {}
        self._known: dict[str, CatalogView] = {}

    def seconds(self, definition: ViewDefinition) -> float:
        """From the declaration to the epoch that shows the view."""
        materializer = Materializer(self._spark, self.root, materialized={"events"}, open_history=self._history)
        materializer.open(self._versions, self._epoch, {"events"})
        started = time.perf_counter()
        materializer.declare([definition], {"events": SCHEMA}, self._known)
        while materializer.has_news() or materializer.backfilling:
            if materializer.has_news():
                self._epoch += 1
                done = materializer.run_epoch(self._epoch, {})
                self._versions, self._known = dict(done.views), done.catalog(self._known)
            elif not materializer.backfill():
                time.sleep(0.005)
        seconds = time.perf_counter() - started
        materializer.close()
        return seconds

    def table(self, name: str) -> pa.Table:
        """The rows of a view, in the order of their keys."""
        version = self._versions[name]
        dataset = lance.dataset(self.root.child(version.path).lance_uri, version=version.version)
        return dataset.to_table(columns=["user", "n", "total"]).sort_by("user")

    def _history(self, plan: ViewPlan, since: int, epoch: int, progress: str | None) -> StoredHistory:
        stored: Mapping[str, ViewVersion] = {"events": replace(self._stored)}
        return StoredHistory(self.root, stored, {"events": SCHEMA}, plan.columns, progress)


def measure_rows(spark: SparkSession, rows: int, groups: int) -> Iterator[Row]:
    """A view over so many rows."""
    with tempfile.TemporaryDirectory() as directory:
        root = Rows(spark, Location(directory), rows, groups)
        root.seconds(ViewDefinition("v", BEFORE))
        recomputed = root.seconds(ViewDefinition("recomputed", AFTER))
        taken = root.seconds(ViewDefinition("v", AFTER, replace=True))
        assert root.table("v") == root.table("recomputed"), "both are the same view"
        name = f"{groups:,} groups, {root.table('v').num_rows:,} rows in the view"
        yield Row(
            name, (Number(recomputed, "s"), Number(taken, "s")), recomputed / taken, Target(2, TIMES, at_least=True)
        )


def measure_added(spark: SparkSession, rows: int, groups: int, stored: str, added: str) -> Row:
    """A measure is added to a view with others."""
    before = f"SELECT user, {MEASURES[stored]} FROM events GROUP BY user"
    after = f"SELECT user, {added} AS n, {MEASURES[stored]} FROM events GROUP BY user"
    with tempfile.TemporaryDirectory() as directory:
        root = Rows(spark, Location(directory), rows, groups)
        root.seconds(ViewDefinition("v", before))
        recomputed = root.seconds(ViewDefinition("recomputed", after))
        extended = root.seconds(ViewDefinition("v", after, replace=True))
        assert root.table("v") == root.table("recomputed"), "both are the same view"
    name = f"{rows:,} rows, {groups:,} groups, {stored}: {added} added"
    return Row(name, (Number(recomputed, "s"), Number(extended, "s")), recomputed / extended)


def measure(options: argparse.Namespace) -> Result:
    spark = start_local_session(SparkSettings(executor_cores=2, driver_memory="4g"), "redefined-view")
    warm_up(spark)
    rows = [row for groups in options.groups for row in measure_rows(spark, options.rows, groups)]
    cheap, costly = MEASURES
    added = [
        *(measure_added(spark, options.rows, groups, cheap, LEAST) for groups in options.groups),
        measure_added(spark, options.rows, options.groups[-1], cheap, COUNT),
        measure_added(spark, options.rows // COSTLY_SHARE, options.groups[0], costly, LEAST),
    ]
    spark.stop()
    columns, caption = ("rebuilt", "groups taken over"), f"{options.rows:,} stored rows"
    return Result(
        (
            Table(columns, tuple(rows), "times as fast", f"{caption}, HAVING added, one turn"),
            Table(columns, tuple(added), "times as fast", "A measure added, one turn"),
        )
    )


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rows", type=int, default=5_000_000)
    arguments.add_argument("--groups", type=int, nargs="*", default=[1_000, 1_000_000])
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()

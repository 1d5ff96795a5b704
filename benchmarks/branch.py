"""A branch of a root: made, compared, merged and dropped; beside a copy of the files of the root.

    python -m benchmarks.branch [--rows 10000000] [--times 7]

The root has a grouped view in the form that the materializer gives it, with an index, 10,000 files in its ledger, and
100 epochs.  It is on a local disk, and on an S3 server on this machine.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import obstore
import pyarrow as pa

import slackwater as sw
from benchmarks.command import run_benchmark
from benchmarks.point_lookup import KEY, batches, rows_of
from benchmarks.result import Number, Result, Row, Table, Target
from slackwater.testing.servers.s3_server import S3Server
from spark_bridge.datasets.view_table import ViewTable
from state.clock import SystemClock
from state.epoch import next_epoch
from state.lance.lance_access import create_dataset, open_dataset
from state.lance.lance_store import LanceStateStore
from state.lance.view_dataset import restore
from state.location import Location
from state.objects.object_client import object_client
from state.tables.catalog import CatalogPipeline, put_pipeline, put_source, put_view
from state.tables.delta import DeltaBuilder
from state.tables.fingerprint import version_fingerprint
from state.tables.group_key import KEY_COLUMN
from state.tables.keys import encode_key
from state.tables.records import CatalogSource, CatalogView, EpochCounts, EpochSeconds, ViewVersion

FILES, EPOCHS, CHANGED = 10_000, 100, 1_000
MIB = 1 << 20
DEFINITION = '{"format": {"name": "parquet"}, "pattern": "**", "url": "file:///events"}'


class Writer:
    """The owner of a root, which commits epochs by hand."""

    def __init__(self, root: Location, store: LanceStateStore) -> None:
        self.root, self.store, self.delta = root, store, DeltaBuilder()
        head = store.take_over()
        self.views = {name: restore(root, view, head.term) for name, view in head.views.items()}

    @property
    def epoch(self) -> int:
        return next_epoch(SystemClock(), self.store.head.epoch)

    def commit(self) -> None:
        delta, self.delta = self.delta.build(), DeltaBuilder()
        self.store.commit(epoch=self.epoch, delta=delta, views=self.views, counts=EpochCounts(), seconds=EpochSeconds())

    def add(self, name: str, rows: pa.Table) -> None:
        path = f"views/{name}-{self.epoch}.lance"
        create_dataset(self.root.child(path), rows)
        dataset = open_dataset(self.root.child(path))
        dataset.create_scalar_index(KEY_COLUMN, "BTREE")
        self.views[name] = ViewVersion(name, path, int(dataset.version))
        view = CatalogView(name, "aggregate", "SELECT ...", f"plan of {name}", ("events",), KEY, self.epoch)
        put_view(self.delta, view)


def made_root(root: Location, rows: int) -> None:
    """A root with a view of so many rows."""
    writer = Writer(root, LanceStateStore.create(root, SystemClock()))
    put_pipeline(writer.delta, CatalogPipeline("events", ansi=False))
    put_source(writer.delta, CatalogSource("events", DEFINITION, None))
    writer.add("by_user", pa.Table.from_batches(batches(rows)))
    for number in range(FILES):
        path = f"{number:06}.parquet"
        version = version_fingerprint('"e"', number, None)
        file = {"source": "events", "path": path, "version": version, "size": number, "status": "done"}
        writer.delta.put("ledger", encode_key("events", path, version), number % 256, **file, rows_read=1_000)
    for _ in range(EPOCHS):
        writer.commit()


def changed(branch: Location, rows: int) -> None:
    """The branch changes some groups of its view, and gets a view of a tenth of the rows."""
    writer = Writer(branch, LanceStateStore.open(branch, SystemClock()))
    view = writer.views["by_user"]
    table = ViewTable.open(branch.child(view.path), view.version)
    table.upsert(rows_of(np.linspace(0, rows - 1, CHANGED).astype(np.int64), 7))
    writer.views["by_user"] = view.at({view.path: table.version})
    writer.add("new", pa.Table.from_batches(batches(rows // 10)))
    writer.commit()


def seconds(call: Callable[[], object], times: int = 1, after: Callable[[], object] = lambda: None) -> list[float]:
    """The seconds of each call, ascending; `after` is done after each but the last."""
    taken = []
    for turn in range(times):
        started = time.perf_counter()
        call()
        taken.append(time.perf_counter() - started)
        if turn < times - 1:
            after()
    return sorted(taken)


def stored(place: Location) -> int:
    """The size of all objects below a place, in bytes."""
    return sum(int(each["size"]) for batch in obstore.list(object_client(place)) for each in batch)


def measured(root: Location, where: str, rows: int, times: int) -> list[Row]:
    made_root(root, rows)
    size, options = stored(root), root.storage_options

    def drop() -> None:
        sw.drop_branch(root.url, "trial", storage_options=options)

    taken = seconds(lambda: sw.branch(root.url, "trial", storage_options=options), times, drop)
    branch = root.child("branches/trial")
    written = stored(branch)
    found = [row("`branch`", taken, written, where, Target(2.0, "s"))]
    changed(branch, rows)
    here, there = (sw.open(each.url, options) for each in (root, branch))
    differences = []
    taken = seconds(lambda: differences.append(here.diff("by_user", there)), times)
    assert [each.only_there for each in differences] == [CHANGED] * times
    found.append(row(f"`diff` of {rows:,} rows, {CHANGED:,} of them changed", taken, None, where))
    taken = seconds(lambda: sw.merge(root.url, "trial", views=["new"], storage_options=options))
    found.append(row(f"`merge` of a view of {rows // 10:,} rows", taken, None, where))
    found.append(row("`drop-branch`", seconds(drop), None, where))
    if root.is_local:
        copy = root.path.with_name("copy")
        taken = seconds(lambda: shutil.copytree(root.path, copy))
        found.append(row("a copy of the files of the root", taken, size, where))
    return found


def row(name: str, taken: list[float], nbytes: int | None, where: str, target: Target | None = None) -> Row:
    size = None if nbytes is None else Number(nbytes / MIB, "MiB")
    return Row(f"{name}, {where}", (Number(taken[len(taken) // 2], "s"), Number(taken[-1], "s"), size), target=target)


@contextmanager
def places() -> Iterator[list[tuple[Location, str]]]:
    with tempfile.TemporaryDirectory() as directory, S3Server() as server:
        server.create_bucket("branches")
        yield [(Location(str(Path(directory) / "root")), "local disk"), (server.location("branches", "root"), "S3")]


def measure(options: argparse.Namespace) -> Result:
    os.environ.setdefault("LANCE_MEM_POOL_SIZE", str(2 << 30))  # an index of ten million texts is made at once
    rows: list[Row] = []
    with places() as each:
        for root, where in each:
            rows += measured(root, where, options.rows, options.times)
    caption = f"A root with a view of {options.rows:,} rows, {FILES:,} files and {EPOCHS} epochs"
    return Result((Table(("p50", "worst", "written"), tuple(rows), caption=caption),))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rows", type=int, default=10_000_000)
    arguments.add_argument("--times", type=int, default=7)
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()

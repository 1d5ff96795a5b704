"""One group of a view by its key, all groups of a prefix, and the changes of an epoch, in milliseconds.

    python -m benchmarks.point_lookup [--groups 10000000] [--epochs 100]

The view is a local dataset in the form that the materializer gives it: a row per group, a partial beside the result, an
index on `__sw_key`; then epochs change 1,000 groups each, and it is tidied as a run does.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.command import run_benchmark
from benchmarks.result import Number, Result, Row, Table, Target
from slackwater.reading.changes.view_difference import difference
from slackwater.reading.view import View
from slackwater.reading.view_reader import ViewReader
from spark_bridge.datasets.view_table import ViewTable
from state.lance.lance_access import create_dataset, open_dataset
from state.location import Location
from state.tables.group_key import KEY_COLUMN, group_keys
from state.tables.records import ViewVersion

AT_ONCE = 100_000
PER_USER = 100
CHANGED = 1_000
TIMES = 200
KEY = ("user", "day")


def rows_of(numbers: npt.NDArray[np.int64], value: int) -> pa.Table:
    """Groups of a user and a day, with a count and a mean."""
    users = pa.array([f"user-{number // PER_USER:08}" for number in numbers.tolist()])
    days = pa.array(numbers % PER_USER)
    counts = pa.array(numbers % 1_000 + value)
    columns = {"user": users, "day": days, "n": counts, "mean": pa.array(numbers / 7 + value)}
    return pa.table({**columns, "__sw_partial_0": counts, KEY_COLUMN: group_keys([users, days])})


def batches(groups: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, groups, AT_ONCE):
        yield from rows_of(np.arange(start, min(start + AT_ONCE, groups)), 0).combine_chunks().to_batches()


def calls(name: str, call: Callable[[], Any], times: int = TIMES, target: Target | None = None) -> Row:
    """The median and the 95th percentile of the calls after the first, and the first."""
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        call()
        taken.append(1_000 * (time.perf_counter() - started))
    later = sorted(taken[1:])
    found = later[len(later) // 2], later[int(len(later) * 0.95)], taken[0]
    return Row(name, tuple(Number(each, "ms") for each in found), target=target)


def measure_reading(root: Location, version: int, groups: int, random: Random, when: str) -> list[Row]:
    view = View(root, ViewVersion("v", "v.lance", version), KEY)
    users = groups // PER_USER

    def get() -> None:
        number = random.randrange(groups)
        found = view.get(user=f"user-{number // PER_USER:08}", day=number % PER_USER)
        assert found is not None

    def scan() -> None:
        assert view.scan(user=f"user-{random.randrange(users):08}").num_rows == PER_USER

    def select() -> None:
        assert view.to_arrow(filter=f"user = 'user-{random.randrange(users):08}'").num_rows == PER_USER

    return [
        calls(f"`get`, {when}", get, target=Target(3.0, "ms")),
        calls(f"`get` of a key that there is not, {when}", lambda: view.get(user="nobody", day=0)),
        calls(f"`scan` of {PER_USER} rows, {when}", scan),
        calls(f"the same rows by a filter on their column, {when}", select, 10),
    ]


def measure_changes(root: Location, versions: list[int], groups: int) -> Table:
    """The time to read the changes of one epoch, with and without upkeep before it."""
    readers = [ViewReader(root, ViewVersion("v", "v.lance", version)) for version in versions]
    taken: dict[bool, list[float]] = {False: [], True: []}
    for before, after in itertools.pairwise(readers):
        _ = before.dataset, after.dataset
        started = time.perf_counter()
        changed, removed = difference(before, after, KEY)
        was_tidied = after.version.version - before.version.version > 1
        taken[was_tidied].append(1_000 * (time.perf_counter() - started))
        assert (changed.num_rows, removed.num_rows) == (CHANGED, 0)
    rows = []
    for was_tidied, each in taken.items():
        how = "with a compaction in between" if was_tidied else "the change"
        if each:
            rows.append(Row(how, (Number(sorted(each)[len(each) // 2], "ms"), Number(max(each), "ms"))))
    started = time.perf_counter()
    View(root, readers[-1].version, KEY).to_arrow()
    rows.append(Row(f"all {groups:,} rows of the view", (Number(1_000 * (time.perf_counter() - started), "ms"), None)))
    caption = (
        f"Cost of an epoch of {CHANGED:,} changed groups for a follower (`Store.watch`), and of reading the whole view"
    )
    return Table(("p50", "worst"), tuple(rows), caption=caption)


def measure(options: argparse.Namespace) -> Result:
    groups, random = options.groups, Random(1)
    with tempfile.TemporaryDirectory() as directory:
        root = Location(directory)
        place = root.child("v.lance")
        create_dataset(place, pa.Table.from_batches(batches(groups)))
        view = View(root, ViewVersion("v", "v.lance", 1), KEY)
        rows = [calls("`get` before there is an index", lambda: view.get(user="user-00000001", day=1), 10)]
        started = time.perf_counter()
        dataset = open_dataset(place)
        dataset.create_scalar_index(KEY_COLUMN, "BTREE")
        print(f"the index took {time.perf_counter() - started:.1f} s to make")
        rows += measure_reading(root, dataset.version, groups, random, "all rows indexed")
        table = ViewTable.open(place, dataset.version)
        versions = [table.version]
        for epoch in range(options.epochs):
            table.upsert(rows_of(np.array(sorted(random.sample(range(groups), CHANGED))), epoch + 1))
            versions.append(table.version)
            table.tidy()
        rows += measure_reading(root, versions[-1], groups, random, "after the epochs")
        changes = measure_changes(root, versions, groups)
    caption = f"{groups:,} groups on a local disk, {options.epochs} epochs of {CHANGED:,} changed groups"
    return Result((Table(("p50", "p95", "first"), tuple(rows), caption=caption), changes))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--groups", type=int, default=1_000_000)
    arguments.add_argument("--epochs", type=int, default=100)
    run_benchmark(measure, arguments)


if __name__ == "__main__":
    main()

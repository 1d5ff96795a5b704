"""Rows by their keys, in fragments that the index covers, in later ones, and in both."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from slackwater.reading import rows_by_key
from slackwater.reading.view import View
from spark_bridge.datasets.view_table import ViewTable
from state.lance.lance_access import create_dataset, open_dataset
from state.location import Location
from state.tables.group_key import KEY_COLUMN, group_keys
from state.tables.records import ViewVersion

KEY = ("user", "day")
USERS, DAYS = 300, 10


def rows_of(groups: list[tuple[int, int]], value: int) -> pa.Table:
    users = pa.array([f"u{user:03}" for user, _ in groups], pa.string())
    days = pa.array([day for _, day in groups], pa.int64())
    n = pa.array([value] * len(groups), pa.int64())
    return pa.table({"user": users, "day": days, "n": n, KEY_COLUMN: group_keys([users, days])})


def view_at(root: Location, version: int) -> View:
    return View(root, ViewVersion("v", "v.lance", version), KEY)


def assert_finds_every_row(view: View, random: Random) -> None:
    expected = {(row["user"], row["day"]): row for row in view.to_arrow().to_pylist()}
    for user in random.sample(range(USERS), 5):
        name = f"u{user:03}"
        of_user = {day: expected[name, day] for day in range(DAYS + 1) if (name, day) in expected}
        assert {row["day"]: row for row in view.scan(user=name).to_pylist()} == of_user
        assert view.scan(user=name).num_rows == len(of_user)
        for day in range(DAYS + 1):
            assert view.get(user=name, day=day) == of_user.get(day)
            assert view.scan(user=name, day=day).to_pylist() == ([of_user[day]] if day in of_user else [])


@pytest.mark.more
@pytest.mark.parametrize("kept_bytes", [rows_by_key._MOST_KEY_BYTES, 64], ids=["kept", "too many to keep"])
def test_every_version_finds_exactly_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_bytes: int) -> None:
    monkeypatch.setattr(rows_by_key, "_MOST_KEY_BYTES", kept_bytes)
    random, root = Random(5), Location(str(tmp_path))
    place = root.child("v.lance")
    everything = [(user, day) for user in range(USERS) for day in range(DAYS)]
    table = ViewTable.open(place, create_dataset(place, rows_of(everything[::2], 0), fragment_rows=500).version)
    versions = [table.version]
    for epoch in range(1, 11):
        table.upsert(rows_of(sorted(random.sample(everything, 60)), epoch))
        if epoch % 3 == 0:
            gone = rows_of(random.sample(everything, 40), 0)
            table.delete(gone[KEY_COLUMN].combine_chunks())
        versions.append(table.version)
        dataset = open_dataset(place)
        if epoch == 3:
            dataset.create_scalar_index(KEY_COLUMN, "BTREE")
        if epoch == 6:
            dataset.optimize.compact_files()
        if epoch == 9:
            dataset.optimize.optimize_indices(num_indices_to_merge=0)
        table = ViewTable.open(place, open_dataset(place).version)
        versions.append(table.version)
    for version in versions:
        assert_finds_every_row(view_at(root, version), random)


def test_an_empty_view_has_no_row(tmp_path: Path) -> None:
    root = Location(str(tmp_path))
    view = view_at(root, create_dataset(root.child("v.lance"), rows_of([], 0)).version)
    assert view.get(user="u001", day=1) is None
    assert view.scan(user="u001").schema == view.schema


def test_the_second_look_up_reads_no_rows_that_are_not_wanted(tmp_path: Path) -> None:
    root = Location(str(tmp_path))
    place = root.child("v.lance")
    groups = [(user, day) for user in range(USERS) for day in range(DAYS)]
    create_dataset(place, rows_of(groups, 0)).create_scalar_index(KEY_COLUMN, "BTREE")
    table = ViewTable.open(place, open_dataset(place).version)
    for epoch in range(1, 6):
        table.upsert(rows_of(groups[epoch::7], epoch))
    view = view_at(root, table.version)
    read_bytes = []
    for _ in range(2):
        for day in range(100, 110):
            assert view.get(user="u299", day=day) is None
            assert view.scan(user=f"u299{day}").num_rows == 0
        read_bytes.append(view.lance().io_stats_incremental().read_bytes)
    assert read_bytes[0] > 0
    assert read_bytes[1] == 0

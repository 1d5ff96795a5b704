"""Staged fragments: for a missing dataset, for one that gets columns, and without a commit."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import LanceOperation, Transaction

from slackwater.testing.servers.s3_server import S3Server
from state.clock import ManualClock
from state.errors import CommitRefusedError
from state.lance.fragment_stager import FragmentStager, staged_fragments
from state.lance.lance_access import create_of_fragments
from state.lance.lance_root import LanceRoot
from state.location import Location
from state.tables.delta import Delta, DeltaBuilder
from state.tables.records import EpochCounts, EpochSeconds
from state.tables.stored_rows import LINEAGE
from tests.cases import few

AT = datetime(2026, 1, 31, 12, 30, 1, 5, tzinfo=UTC)
BEFORE: dict[pa.Field, Any] = {
    pa.field("i", pa.int64()): 1,
    pa.field("s", pa.struct([("x", pa.int32()), ("y", pa.list_(pa.struct([("z", pa.decimal128(20, 3))])))])): {
        "x": None,
        "y": [{"z": Decimal("1.500")}, None],
    },
    pa.field("t", pa.timestamp("us", "UTC")): AT,
    pa.field("local", pa.timestamp("us")): AT.replace(tzinfo=None),
    pa.field("m", pa.decimal128(38, 10)): Decimal("12345678901234567890.0123456789"),
    pa.field("day", pa.date32()): date(2026, 1, 31),
    pa.field("b", pa.binary()): b"\x00x",
    pa.field("map", pa.map_(pa.string(), pa.int64())): [("a", 1), ("b", None)],
    pa.field("yes", pa.bool_()): True,
    pa.field("d", pa.float64()): 0.25,
}
NEW: dict[pa.Field, Any] = {
    pa.field("n", pa.struct([("p", pa.string()), ("q", pa.list_(pa.int64()))])): {"p": "π", "q": [1, None]},
}
NEWER: dict[pa.Field, Any] = {
    pa.field("again", pa.timestamp("us")): AT.replace(tzinfo=None),
    pa.field("nested", pa.list_(pa.list_(pa.float64()))): [[1.0], [], None],
}
AGES = (BEFORE, BEFORE | NEW, BEFORE | NEW | NEWER)
SCHEMAS = [pa.schema([*LINEAGE, *columns]) for columns in AGES]


def rows(age: int) -> pa.Table:
    """A full row, one of nulls, and a full one."""
    columns = {field.name: [value, None, value] for field, value in AGES[age].items()}
    lineage = {"__sw_path": ["f"] * 3, "__sw_version": [age] * 3, "__sw_row": [0, 1, 2]}
    return pa.table({**lineage, **columns}, schema=SCHEMAS[age])


def expected(ages: Sequence[int], newest: int) -> list[dict[str, Any]]:
    lacking = {name: [None] * 3 for name in SCHEMAS[newest].names}
    tables = (pa.table({**lacking, **rows(age).to_pydict()}, schema=SCHEMAS[newest]) for age in ages)
    return [row for table in tables for row in table.to_pylist()]


@pytest.fixture(params=few(["local", "s3"], "local"))
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    if request.param == "local":
        return Location(str(tmp_path / "a root% with" / "r.lance"))
    server: S3Server = request.getfixturevalue("s3")
    return Location(f"s3://{request.getfixturevalue('bucket')}/r.lance", server.storage_options)


def committed(location: Location, epochs: Sequence[Sequence[int]], *, staged_late: bool) -> pa.Table:
    """The rows of a dataset after epochs with blocks of these ages; all staged before the first, or each in time."""
    stagers = [FragmentStager(location), FragmentStager(location)]

    def stage(age: int) -> tuple[str, ...]:
        stagers.reverse()
        return stagers[0].stage(rows(age))

    early = [] if staged_late else [[stage(age) for age in ages] for ages in epochs]
    dataset: lance.LanceDataset | None = None
    for number, ages in enumerate(epochs):
        blocks = early[number] if early else [stage(age) for age in ages]
        fragments = staged_fragments(tuple(each for block in blocks for each in block))
        if dataset is None:
            dataset = create_of_fragments(location, SCHEMAS[max(ages)], fragments)
            continue
        lacking = [field for field in SCHEMAS[max(ages)] if field.name not in dataset.schema.names]
        if lacking:
            dataset.add_columns(pa.schema(lacking))
        dataset = lance.LanceDataset.commit(dataset, Transaction(dataset.version, LanceOperation.Append(fragments)))
        dataset.optimize.compact_files()
    assert dataset is not None
    return dataset.to_table()


@pytest.mark.parametrize("staged_late", few([True, False], False), ids=["each in its epoch", "before the dataset"])
@pytest.mark.parametrize(
    "epochs",
    few([[[0], [1], [0], [2, 0], [2]], [[2], [0], [1]], [[0, 2, 1], [0, 1]], [[0], [1, 2], [2]]], [[0, 2, 1], [0, 1]]),
    ids=str,
)
def test_blocks_of_before_and_after_new_columns_are_what_they_were(
    location: Location, epochs: list[list[int]], staged_late: bool
) -> None:
    found = committed(location, epochs, staged_late=staged_late)
    ages = [age for epoch in epochs for age in epoch]
    assert found.schema == SCHEMAS[max(ages)]
    order = [(name, "ascending") for name in ("__sw_version", "__sw_row")]
    assert (
        found.sort_by(order).to_pylist()
        == pa.Table.from_pylist(expected(ages, max(ages)), SCHEMAS[max(ages)]).sort_by(order).to_pylist()
    )


def test_fragments_without_a_commit_are_deleted_after_seven_days(tmp_path: Path) -> None:
    location = Location(str(tmp_path / "r.lance"))
    stager = FragmentStager(location)
    dataset = create_of_fragments(location, SCHEMAS[0], staged_fragments(stager.stage(rows(0))))
    names = [staged_fragments(stager.stage(rows(0)))[0].files[0].path for _ in range(2)]
    young, old = (tmp_path / "r.lance" / "data" / name for name in names)
    week_ago = time.time() - 7 * 86_400 - 60
    os.utime(old, (week_ago, week_ago))
    dataset.delete("__sw_row = 0")
    dataset.cleanup_old_versions(versions=[1])
    assert young.exists() and not old.exists()
    assert lance.dataset(location.lance_uri).count_rows() == 2


def test_rows_that_were_staged_a_week_ago_are_refused_before_a_clean_up_could_delete_them(tmp_path: Path) -> None:
    location, clock = Location(str(tmp_path / "r.lance")), ManualClock(AT)
    stager = FragmentStager(location, clock)
    dataset = create_of_fragments(location, SCHEMAS[0], staged_fragments(stager.stage(rows(0)), clock))
    young, old = stager.stage(rows(0)), stager.stage(rows(0))
    clock.advance(5.9 * 86_400)
    dataset = lance.LanceDataset.commit(
        dataset, Transaction(dataset.version, LanceOperation.Append(staged_fragments(young, clock)))
    )
    clock.advance(0.2 * 86_400)
    with pytest.raises(CommitRefusedError, match=r"staged at 2026-01-31 12:30 UTC, 6\.1 days ago: .* after 7 days"):
        staged_fragments(old, clock)
    assert dataset.to_table().to_pylist() == expected([0, 0], 0)
    clock.advance(-8 * 86_400)
    assert len(staged_fragments(old, clock)) == 1, "the clock of another machine may be behind"


def test_a_delta_that_was_staged_a_week_ago_is_refused_and_the_run_goes_on(tmp_path: Path) -> None:
    clock = ManualClock(AT)
    # Without syncing, as in a bucket: to sync a file that is deleted is an error by itself.
    root = LanceRoot(Location(str(tmp_path), durability="process"), clock)
    store = root.create_or_open()
    store.take_over()

    def commit(epoch: int, delta: Delta) -> None:
        store.commit(epoch=epoch, delta=delta, views={}, counts=EpochCounts(), seconds=EpochSeconds())

    commit(1, root.stage(seen(1), 1))
    staged = root.stage(seen(2), 2)
    clock.advance(8 * 86_400)  # the machine is frozen, and its vacuum comes first when it resumes
    for path in (tmp_path / "state.lance" / "data").iterdir():
        os.utime(path, (time.time() - 8 * 86_400,) * 2)
    store.amend()
    root.delete_versions("state.lance", {1})
    with pytest.raises(CommitRefusedError, match=r"8\.0 days ago"):
        commit(2, staged)
    store = root.create_or_open()
    store.take_over()
    commit(2, root.stage(seen(2), 2))
    assert store.scan("seen")["key"].to_pylist() == [b"1", b"2"]


def seen(epoch: int) -> Delta:
    builder = DeltaBuilder()
    builder.put("seen", str(epoch).encode(), 1, version=b"12345678")
    return builder.build()


def test_a_stager_goes_on_when_the_version_that_it_knows_is_gone(tmp_path: Path) -> None:
    location = Location(str(tmp_path / "r.lance"))
    stager = FragmentStager(location)
    dataset = create_of_fragments(location, SCHEMAS[0], staged_fragments(stager.stage(rows(0))))
    for _ in range(2):
        fragments = staged_fragments(stager.stage(rows(0)))
        dataset = lance.LanceDataset.commit(dataset, Transaction(dataset.version, LanceOperation.Append(fragments)))
        dataset.cleanup_old_versions(versions=list(range(1, dataset.version)))
    assert dataset.to_table().to_pylist() == expected([0, 0, 0], 0)

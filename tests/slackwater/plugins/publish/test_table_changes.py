"""Tables that must change with their view, or that another engine has maintained: written exactly, or refused."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.types import LongType

import slackwater as sw
from slackwater.plugins.publish.publication import PublishedEpoch
from slackwater.plugins.publish.published_table import InexactChangeError
from slackwater.plugins.publish.publisher import opened_table
from slackwater.plugins.publish.targets import Target
from slackwater.reading.changes.view_changes import ViewChange
from state.clock import SystemClock
from state.location import Location
from state.tables.group_key import KEY_COLUMN, group_keys
from tests.slackwater.plugins.publish.growing_view import GrowingView, events, groups
from tests.slackwater.plugins.publish.published import (
    contents,
    iceberg_table,
    require_equal,
    rows_of_another,
    target_in,
    written_by_another,
)
from tests.slackwater.plugins.publish.second_reader import second_contents
from tests.slackwater.plugins.publish.two_readers import FORMATS, require_equal_twice

PARTITIONED = pytest.mark.parametrize("format", ["parquet", "delta"])
KEPT = pa.schema([("k", pa.string()), ("n", pa.int64())])
PRINTABLE = [chr(code) for code in range(1, 128)]
TEXTS = [
    *PRINTABLE,
    *(f"{each}{each}" for each in "./\\%+ ~"),
    "\x00",
    "a\x00b",
    "NULL",
    "null",
    "NaN",
    "a/b=c%d",
    "%2F",
    "é",
    "e\u0301",
    "\U0001f600",
    "\uffff\U00010000",
    "01",
    "1",
    "1.0",
    "2026-01-01",
    "true",
    "x" * 200,
    None,
]


def partitioned(directory: Path, format: str, schema: pa.Schema = KEPT) -> Target:
    """A table with partitions by `k`; another program has made the Delta table."""
    if format == "parquet":
        return target_in(directory, format, partition_by="k")
    DeltaTable.create(str(directory / "v"), schema, partition_by=["k"])
    return target_in(directory, format)


def counted(**groups: int | None) -> pa.Table:
    keys = pa.array([*groups], pa.string())
    field = pa.field("n", pa.int64(), nullable=None in groups.values())
    rows = pa.table(
        {"k": keys, "n": pa.array([*groups.values()], pa.int64())}, schema=pa.schema([("k", pa.string()), field])
    )
    return rows.append_column(KEY_COLUMN, group_keys([keys]))


@pytest.mark.more_after(1)
@FORMATS
def test_a_column_that_may_be_null_now_is_so_in_the_table(tmp_path: Path, format: str) -> None:
    view, target = GrowingView(Location(str(tmp_path / "root")), "k"), target_in(tmp_path, format)
    view.create(counted(a=1, b=2))
    sw.publish(view.store, "v", target)
    view.create(counted(a=7, b=None))
    schema = view.store.snapshot().reader("v").schema
    opened_table(target, SystemClock()).require_fit(schema)
    assert sw.publish(view.store, "v", target).is_whole
    require_equal_twice(view, tmp_path, format, schema)
    view.table.upsert(counted(a=None))
    view.commit()
    assert not sw.publish(view.store, "v", target).is_whole
    require_equal_twice(view, tmp_path, format, schema)


@pytest.mark.more_after(1)
@FORMATS
def test_a_part_of_a_column_that_may_be_null_now_is_so_in_the_table(tmp_path: Path, format: str) -> None:
    def rows(size: int | None) -> pa.Table:
        inner = pa.field("x", pa.int64(), nullable=size is None)
        kind = pa.list_(pa.field("element", pa.struct([inner]), nullable=size is None))
        tags = pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=size is None))
        values = {"i": [1], "places": [[{"x": size}]], "tags": [[("a", size)]]}
        return pa.table(values, schema=pa.schema([("i", pa.int64()), ("places", kind), ("tags", tags)]))

    view, target = GrowingView(Location(str(tmp_path / "root"))), target_in(tmp_path, format)
    for size in (1, None, 2):
        view.create(rows(size))
        sw.publish(view.store, "v", target)
        epoch, found = second_contents(tmp_path, format)
        assert epoch == view.writer.records[-1].epoch
        assert found.to_pylist() == [{"i": 1, "places": [{"x": size}], "tags": [("a", size)]}]


@pytest.mark.more_after(1)
@pytest.mark.parametrize(
    "changed",
    [
        pa.table({"k": ["a"]}),
        pa.table({"k": ["a"], "n": [1], "m": [1]}),
        pa.table({"k": ["a"], "renamed": [1]}),
        pa.table({"k": ["a"], "n": [1.5]}),
    ],
    ids=["removed", "added", "renamed", "of another type"],
)
@FORMATS
def test_a_view_with_other_columns_is_refused_at_the_start_and_by_each_publication(
    tmp_path: Path, format: str, changed: pa.Table
) -> None:
    view, target = GrowingView(Location(str(tmp_path / "root"))), target_in(tmp_path, format)
    first = view.create(pa.table({"k": ["a"], "n": [1]}, schema=KEPT))
    sw.publish(view.store, "v", target)
    view.create(changed)
    with pytest.raises(sw.errors.SchemaError, match="other columns than the view"):
        opened_table(target, SystemClock()).require_fit(view.store.snapshot().reader("v").schema)
    with pytest.raises(sw.errors.SchemaError, match="other columns than the view"):
        sw.publish(view.store, "v", target)
    assert require_equal_twice(view, tmp_path, format, KEPT) == first


@pytest.mark.more_after(1)
@PARTITIONED
def test_every_text_of_a_partition_comes_back_from_both_readers(tmp_path: Path, format: str) -> None:
    view, target = GrowingView(Location(str(tmp_path / "root"))), partitioned(tmp_path, format)
    view.create(pa.table({"k": TEXTS, "n": range(len(TEXTS))}, schema=KEPT))
    sw.publish(view.store, "v", target)
    require_equal_twice(view, tmp_path, format, KEPT)
    view.correct("n % 2 = 0", pa.table({"k": TEXTS[:3], "n": [1_000, 1_001, 1_002]}, schema=KEPT))
    assert not sw.publish(view.store, "v", target).is_whole
    require_equal_twice(view, tmp_path, format, KEPT)


@pytest.mark.more_after(1)
@pytest.mark.parametrize("text", ["", "__HIVE_DEFAULT_PARTITION__", "é" * 130], ids=["empty", "Hive's null", "long"])
@PARTITIONED
def test_a_text_that_does_not_come_back_is_refused_before_it_is_seen(tmp_path: Path, format: str, text: str) -> None:
    view, target = GrowingView(Location(str(tmp_path / "root"))), partitioned(tmp_path, format)
    view.create(pa.table({"k": ["a", text], "n": [1, 2]}, schema=KEPT))
    with pytest.raises(sw.errors.SchemaError, match=r"column 'k' of the partitions has .* nothing was published"):
        sw.publish(view.store, "v", target)
    assert not list(tmp_path.glob("v/**/*.parquet"))
    view.correct("n = 2", pa.table({"k": ["b"], "n": [2]}, schema=KEPT))
    last = sw.publish(view.store, "v", target).epoch
    view.table.append(pa.table({"k": [text], "n": [3]}, schema=KEPT))
    view.commit()
    with pytest.raises(sw.errors.SchemaError, match=r"column 'k' of the partitions has .* nothing was published"):
        sw.publish(view.store, "v", target)
    assert require_equal_twice(view, tmp_path, format, KEPT) == last


@pytest.mark.more
def test_dates_whole_numbers_and_booleans_are_partitions_and_far_years_are_refused(tmp_path: Path) -> None:
    for name, kind, values in (
        ("days", pa.date32(), [0, -719_162, 2_932_896, None]),
        ("numbers", pa.int64(), [0, -(2**63), 2**63 - 1, None]),
        ("flags", pa.bool_(), [True, False, None, True]),
    ):
        for format in ("parquet", "delta"):
            schema = pa.schema([("k", kind), ("n", pa.int64())])
            directory = tmp_path / name / format
            directory.mkdir(parents=True)
            view, target = GrowingView(Location(str(directory / "root"))), partitioned(directory, format, schema)
            view.create(pa.table({"k": pa.array(values, kind), "n": range(len(values))}, schema=schema))
            sw.publish(view.store, "v", target)
            require_equal_twice(view, directory, format, schema)
            if kind == pa.date32():
                view.table.append(pa.table({"k": pa.array([2_932_897], kind), "n": [9]}, schema=schema))
                view.commit()
                with pytest.raises(sw.errors.SchemaError, match="not between the years 1 and 9999"):
                    sw.publish(view.store, "v", target)


def test_partitions_of_a_type_that_has_no_text_are_refused_at_the_start(tmp_path: Path) -> None:
    schema = pa.schema([("k", pa.float64()), ("n", pa.int64())])
    target = partitioned(tmp_path, "delta", schema)
    with pytest.raises(
        sw.errors.SchemaError, match="is partitioned by 'k': the column is double; partitions are of text"
    ):
        opened_table(target, SystemClock()).require_fit(schema)
    named = sw.ParquetFiles(str(tmp_path / "other"), partition_by="_k")
    with pytest.raises(sw.errors.SchemaError, match="skip directories whose names begin with '_'; rename the column"):
        opened_table(named, SystemClock()).require_fit(pa.schema([("_k", pa.string()), ("n", pa.int64())]))


@pytest.mark.more
def test_an_iceberg_table_with_partitions_has_every_value_in_its_files(tmp_path: Path) -> None:
    schema = pa.schema([("k", pa.string()), ("x", pa.float64()), ("n", pa.int64())])
    view, target = GrowingView(Location(str(tmp_path / "root"))), target_in(tmp_path, "iceberg")
    table = opened_table(target, SystemClock())._created(schema)  # type: ignore[attr-defined]
    with table.update_spec() as spec:
        spec.add_identity("k")
    texts = ["", "a", None, "a/b=c%d", "__HIVE_DEFAULT_PARTITION__", "\x00"]
    rows = {"k": texts, "x": [math.nan, 0.0, -0.0, None, 1.0, 2.0], "n": range(6)}
    view.create(pa.table(rows, schema=schema))
    sw.publish(view.store, "v", target)
    require_equal_twice(view, tmp_path, "iceberg", schema)
    view.correct("n = 0", pa.table({"k": [""], "x": [-0.0], "n": [7]}, schema=schema))
    sw.publish(view.store, "v", target)
    last = require_equal_twice(view, tmp_path, "iceberg", schema)
    with iceberg_table(tmp_path).update_spec() as spec:
        spec.add_identity("x")
    view.table.append(pa.table({"k": ["b"], "x": [math.nan], "n": [8]}, schema=schema))
    view.commit()
    with pytest.raises(sw.errors.SchemaError, match="such as NaN, has no partition"):
        sw.publish(view.store, "v", target)
    assert require_equal_twice(view, tmp_path, "iceberg", schema) == last


def expire_delta_log(table: Path) -> None:
    """The log as it is after a month of maintenance alone: without the commit that names the epoch."""
    log = table / "_delta_log"
    for number in range(DeltaTable(str(table)).version() + 1, 26):
        info = {"timestamp": 1, "operation": "VACUUM END", "operationParameters": {"status": "COMPLETED"}}
        (log / f"{number:020}.json").write_text(json.dumps({"commitInfo": info}))
    DeltaTable(str(table)).create_checkpoint()
    for file in log.iterdir():
        os.utime(file, (1, 1))
    DeltaTable(str(table)).cleanup_metadata()
    assert len(list(log.glob("*.json"))) == 1


def expire_iceberg_snapshots(directory: Path) -> None:
    """The table after `rewrite_data_files` and `expire_snapshots` of another engine: PyIceberg has no such commit."""
    place = Path(iceberg_table(directory).metadata_location.removeprefix("file://"))
    metadata = json.loads(place.read_text())
    [snapshot] = metadata["snapshots"]
    snapshot["summary"] = {"operation": "replace"}
    place.write_text(json.dumps(metadata))


@pytest.mark.more_after(1)
@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_a_table_whose_log_has_lost_the_epoch_is_written_as_a_whole(tmp_path: Path, format: str) -> None:
    view, target = GrowingView(Location(str(tmp_path / "root"))), target_in(tmp_path, format)
    view.create(events(1, 2))
    sw.publish(view.store, "v", target)
    if format == "delta":
        expire_delta_log(tmp_path / "v")
    else:
        expire_iceberg_snapshots(tmp_path)
    view.table.append(events(3))
    last = view.commit()
    published = sw.publish(view.store, "v", target)
    assert (published.epoch, published.is_whole, published.rows) == (last, True, 3)
    epoch, rows = contents(tmp_path, format)
    assert epoch == last and sorted(rows["n"].to_pylist()) == [1, 2, 3]


@pytest.mark.more_after(1)
@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_a_table_whose_log_has_lost_the_epoch_of_another_view_is_left_alone(tmp_path: Path, format: str) -> None:
    target = target_in(tmp_path, format)
    for name in ("one", "other"):
        view = GrowingView(Location(str(tmp_path / name)))
        view.create(events(1))
        if name == "one":
            sw.publish(view.store, "v", target)
    if format == "delta":
        expire_delta_log(tmp_path / "v")
    else:
        expire_iceberg_snapshots(tmp_path)
    with pytest.raises(sw.errors.CommitRefusedError, match="was written by another program"):
        sw.publish(view.store, "v", target)


def test_a_table_that_has_lost_rows_unseen_is_written_as_a_whole(tmp_path: Path) -> None:
    view, target = GrowingView(Location(str(tmp_path / "root")), "k"), target_in(tmp_path, "delta")
    view.create(counted(a=1, b=2))
    sw.publish(view.store, "v", target)
    log = tmp_path / "v" / "_delta_log"
    [add] = [
        action["add"] for action in map(json.loads, (log / f"{0:020}.json").read_text().splitlines()) if "add" in action
    ]
    actions: list[dict[str, Any]] = [
        {"commitInfo": {"timestamp": 1, "operation": "OPTIMIZE", "operationParameters": {}}},
        {"remove": {"path": add["path"], "deletionTimestamp": 1, "dataChange": False}},
    ]
    (log / f"{1:020}.json").write_text("\n".join(map(json.dumps, actions)))
    view.table.delete(counted(a=1)[KEY_COLUMN].combine_chunks())
    view.commit()
    published = sw.publish(view.store, "v", target)
    assert published.is_whole
    require_equal_twice(view, tmp_path, "delta", view.store.snapshot().reader("v").schema)


def test_a_table_that_refuses_a_commit_is_no_failure_of_the_store(tmp_path: Path) -> None:
    view, target = GrowingView(Location(str(tmp_path / "root"))), target_in(tmp_path, "delta")
    DeltaTable.create(str(tmp_path / "v"), KEPT, configuration={"delta.appendOnly": "true"})
    view.create(pa.table({"k": ["a"], "n": [1]}, schema=KEPT))
    with pytest.raises(
        sw.errors.PublishError, match=r"delta:.* refuses the rows or the commit .*publish to a new table"
    ):
        sw.publish(view.store, "v", target)
    assert DeltaTable(str(tmp_path / "v")).version() == 0


@pytest.mark.more_after(1)
@FORMATS
def test_one_of_rows_that_differ_in_the_sign_of_a_zero_leaves_alone(tmp_path: Path, format: str) -> None:
    def rows(*zeros: float) -> pa.Table:
        return pa.table({"n": [1] * len(zeros), "x": [*zeros], "y": pa.array(zeros, pa.float32())})

    view, target = GrowingView(Location(str(tmp_path / "root"))), target_in(tmp_path, format)
    view.create(rows(-0.0, 0.0, -0.0, math.nan))
    sw.publish(view.store, "v", target)
    view.correct("true", rows(0.0, -0.0, math.nan))
    assert not sw.publish(view.store, "v", target).is_whole
    _, found = second_contents(tmp_path, format)
    assert sorted(map(repr, found["x"].to_pylist())) == ["-0.0", "0.0", "nan"]
    assert sorted(map(repr, found["y"].to_pylist())) == ["-0.0", "0.0", "nan"]


def test_a_commit_without_information_is_one_of_another_program(tmp_path: Path) -> None:
    view, target = GrowingView(Location(str(tmp_path / "root"))), target_in(tmp_path, "delta")
    view.create(pa.table({"n": [1]}))
    sw.publish(view.store, "v", target)
    written_by_another(tmp_path, "delta", pa.table({"n": [99]}))
    commit = tmp_path / "v" / "_delta_log" / f"{1:020}.json"
    actions = commit.read_text().splitlines()
    commit.write_text("\n".join(each for each in actions if "commitInfo" not in each))
    view.table.append(pa.table({"n": [2]}))
    view.commit()
    with pytest.raises(sw.errors.CommitRefusedError, match=r"another program \(a commit without information by"):
        sw.publish(view.store, "v", target)
    assert sorted(rows_of_another(tmp_path, "delta")["n"].to_pylist()) == [1, 99]


def test_rows_that_came_with_the_creation_of_a_table_stay(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "v"), pa.table({"n": [99]}))
    commit = tmp_path / "v" / "_delta_log" / f"{0:020}.json"
    commit.write_text(commit.read_text().replace('"operation":"WRITE"', '"operation":"CREATE TABLE"'))
    view, target = GrowingView(Location(str(tmp_path / "root"))), target_in(tmp_path, "delta")
    view.create(pa.table({"n": [1]}))
    with pytest.raises(sw.errors.CommitRefusedError, match=r"written by another program \(CREATE TABLE by"):
        sw.publish(view.store, "v", target)
    assert rows_of_another(tmp_path, "delta")["n"].to_pylist() == [99]


@pytest.mark.more
def test_a_restored_table_continues_from_the_restored_epoch(tmp_path: Path) -> None:
    view, target = GrowingView(Location(str(tmp_path / "root"))), target_in(tmp_path, "delta")
    epochs = [view.create(pa.table({"n": [1]}))]
    sw.publish(view.store, "v", target)
    for number in (2, 3):
        view.table.append(pa.table({"n": [number]}))
        epochs.append(view.commit())
        sw.publish(view.store, "v", target)
    written_by_another(tmp_path, "delta", pa.table({"n": [99]}))
    DeltaTable(str(tmp_path / "v")).restore(1)
    assert sw.publish(view.store, "v", target).since == epochs[1]
    require_equal_twice(view, tmp_path, "delta", view.store.snapshot().reader("v").schema)


@pytest.mark.more
def test_a_column_that_was_dropped_and_added_again_is_a_change_of_another_program(tmp_path: Path) -> None:
    view, target = GrowingView(Location(str(tmp_path / "root"))), target_in(tmp_path, "iceberg")
    view.create(pa.table({"k": ["a"], "n": [1]}, schema=KEPT))
    sw.publish(view.store, "v", target)
    table = iceberg_table(tmp_path)
    with table.update_schema() as columns:
        columns.rename_column("n", "m")
    with table.update_schema() as columns:
        columns.rename_column("m", "n")
    view.table.append(pa.table({"k": ["b"], "n": [2]}, schema=KEPT))
    view.commit()
    assert not sw.publish(view.store, "v", target).is_whole
    table = iceberg_table(tmp_path)
    with table.update_schema(allow_incompatible_changes=True) as columns:
        columns.delete_column("n")
    with table.update_schema() as columns:
        columns.add_column("n", LongType())
    view.table.append(pa.table({"k": ["c"], "n": [3]}, schema=KEPT))
    view.commit()
    with pytest.raises(sw.errors.CommitRefusedError, match="a change of columns after snapshot"):
        sw.publish(view.store, "v", target)


@pytest.mark.more
def test_a_process_that_dies_after_an_inexact_merge_leaves_a_table_that_is_written_again(tmp_path: Path) -> None:
    target, view = target_in(tmp_path, "delta"), GrowingView(Location(str(tmp_path / "root")), "carrier", "day of it")
    view.create(groups({1: 1, 2: 1, 13: 2}))
    sw.publish(view.store, "v", target)
    view.table.upsert(groups({1: 7}))
    wanted = PublishedEpoch(view.store.root, "v", view.commit())
    rows = view.store.snapshot().view("v").to_arrow()
    table = opened_table(target, SystemClock())
    lost = rows.select(["carrier", "day of it"]).slice(0, 1).set_column(0, "carrier", pa.array(["not there"]))
    with pytest.raises(InexactChangeError, match="removed 0 for 1"):
        # The rows of this change are not the rows of the epoch, and the process dies before it writes all rows again.
        table.change(ViewChange("v", wanted.epoch, tuple(lost.column_names), rows.slice(0, 1), lost), wanted)
    assert contents(tmp_path, "delta")[0] == wanted.epoch, "the wrong rows have the name of the epoch"
    published = sw.publish(view.store, "v", target)
    assert (published.since, published.is_whole) == (None, True)
    require_equal(view.store, tmp_path, "delta")
    assert sw.publish(view.store, "v", target).since == wanted.epoch, "once"


@pytest.mark.more_after(1)
@pytest.mark.parametrize("part", ["list", "manifest", "append"])
def test_iceberg_metadata_that_is_read_in_part_loses_no_row(tmp_path: Path, part: str) -> None:
    key = () if part == "append" else ("k",)  # nothing is removed from a view of single rows
    view, target = GrowingView(Location(str(tmp_path / "root")), *key), target_in(tmp_path, "iceberg")
    view.create(counted(a=1))
    sw.publish(view.store, "v", target)
    for number in range(2):
        view.table.append(counted(**{f"b{number}": number}))
        view.commit()
        sw.publish(view.store, "v", target)
    snapshot = iceberg_table(tmp_path).current_snapshot()
    files = [snapshot.manifest_list, *(each.manifest_path for each in snapshot.manifests(iceberg_table(tmp_path).io))]
    file = Path(files[part == "manifest"].removeprefix("file://"))
    content = file.read_bytes()
    view.table.append(counted(c=3)) if part == "append" else view.table.upsert(counted(a=5, c=3))
    view.commit()
    last_block = content.rindex(content[-16:], 0, len(content) - 16) + 16  # a block ends with the mark of the file
    for read in (last_block, 0, 100, len(content) - 20):
        file.write_bytes(content[:read])
        with pytest.raises((sw.errors.StorageUnavailableError, sw.errors.PublishError)):
            sw.publish(view.store, "v", target)
        assert iceberg_table(tmp_path).current_snapshot().snapshot_id == snapshot.snapshot_id
    file.write_bytes(content)
    sw.publish(view.store, "v", target)
    require_equal_twice(view, tmp_path, "iceberg", view.store.snapshot().reader("v").schema)

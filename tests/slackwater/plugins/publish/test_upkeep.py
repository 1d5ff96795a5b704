"""Upkeep of a published table deletes only files that the table's own log or manifest names."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import load_catalog

import slackwater as sw
from slackwater.plugins.publish.delta_table import PublishedDeltaTable
from slackwater.plugins.publish.iceberg_table import PublishedIcebergTable
from slackwater.plugins.publish.parquet_files import MANIFEST, PublishedParquetFiles
from slackwater.plugins.publish.publication import PublishedEpoch
from state.clock import ManualClock, SystemClock
from state.errors import CommitRefusedError, RemovalRefusedError
from tests.slackwater.plugins.publish.published import target_in

_USERS = (
    "docs/contract.pdf",
    "raw/orders.csv",
    "root/state.lance/data/x.lance",
    "notes.parquet",
    "day=1/part-x.parquet",
)
_OLD_S = 30 * 86_400


def rows(*numbers: int) -> pa.Table:
    return pa.table({"n": pa.array(numbers, pa.int64()), "day": pa.array([1] * len(numbers), pa.int64())})


def users_files(table: Path) -> list[Path]:
    """Files of others below a table, all of them a month old."""
    files = [table / name for name in _USERS]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"the only copy")
    return files


def age(place: Path) -> None:
    old = SystemClock().now().timestamp() - _OLD_S
    for file in place.rglob("*"):
        os.utime(file, (old, old))


def age_log(table: Path, seconds: float) -> None:
    """Moves the removals in the log of a Delta table into the past."""
    for file in (table / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        for action in actions:
            if "remove" in action:
                action["remove"]["deletionTimestamp"] -= int(seconds * 1_000)
        file.write_text("\n".join(map(json.dumps, actions)))


def epochs() -> Iterator[PublishedEpoch]:
    return (PublishedEpoch("r", "v", number) for number in range(1, 100))


def test_upkeep_of_delta_deletes_no_file_that_its_log_does_not_name(tmp_path: Path) -> None:
    lake, number = tmp_path / "lake", epochs()
    outer, inner = sw.Delta(str(lake), keep_s=0), sw.Delta(str(lake / "late"))
    for target in (outer, inner, outer, inner, outer):
        PublishedDeltaTable(target).replace(rows(1, 2).to_reader(), next(number))
    files = [*users_files(lake), *(lake / "late").rglob("*.parquet"), lake / "part-of-a-dead-writer.parquet"]
    files[-1].write_bytes(b"")
    age(lake)
    age_log(lake, 3_700)
    assert len(list(lake.glob("part-0*.parquet"))) == 3
    PublishedDeltaTable(outer).maintain()
    assert len(list(lake.glob("part-0*.parquet"))) == 1
    assert [file for file in files if not file.exists()] == []
    for place in (lake, lake / "late"):
        assert DeltaTable(str(place)).to_pyarrow_table().num_rows == 2


@pytest.mark.parametrize("is_ours", [True, False])
def test_files_that_a_checkpoint_could_forget_are_deleted_too(tmp_path: Path, is_ours: bool) -> None:
    """Delta forgets removals after `deletedFileRetentionDuration`, by default when our own retention ends."""
    target, number = sw.Delta(str(tmp_path / "v")), epochs()
    if not is_ours:
        write_deltalake(str(tmp_path / "v"), rows(0))
        PublishedDeltaTable(target).maintain()
    for _ in range(3):
        PublishedDeltaTable(target).replace(rows(1).to_reader(), next(number))
    age_log(tmp_path / "v", 7 * 86_400 + 60)
    DeltaTable(str(tmp_path / "v")).create_checkpoint()
    PublishedDeltaTable(target).maintain()
    assert len(list((tmp_path / "v").glob("*.parquet"))) == 1
    head = PublishedDeltaTable(target).head()
    assert head is not None and head.published is not None and head.published.epoch == 3


def test_a_link_in_a_delta_table_leads_its_upkeep_to_no_other_directory(tmp_path: Path) -> None:
    target, number = sw.Delta(str(tmp_path / "v"), keep_s=0), epochs()
    for content in (rows(1), rows(2)):
        PublishedDeltaTable(target).replace(content.to_reader(), next(number))
    users = tmp_path / "users"
    users.mkdir()
    (users / "a.parquet").write_bytes(b"the only copy")
    (tmp_path / "v" / "day=1").symlink_to(users)
    log = tmp_path / "v" / "_delta_log" / f"{1:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    actions += [{"remove": {**each["remove"], "path": "day=1/a.parquet"}} for each in actions if "remove" in each]
    log.write_text("\n".join(map(json.dumps, actions)))
    age_log(tmp_path / "v", 3_700)
    with pytest.raises(RemovalRefusedError, match="day=1 is a link"):
        PublishedDeltaTable(target).maintain()
    assert (users / "a.parquet").exists()


def test_a_table_that_was_restored_keeps_its_files(tmp_path: Path) -> None:
    target, number = sw.Delta(str(tmp_path / "v"), keep_s=0), epochs()
    for content in (rows(1), rows(2)):
        PublishedDeltaTable(target).replace(content.to_reader(), next(number))
    DeltaTable(str(tmp_path / "v")).restore(0)
    age_log(tmp_path / "v", _OLD_S)
    PublishedDeltaTable(target).maintain()
    assert DeltaTable(str(tmp_path / "v")).to_pyarrow_table()["n"].to_pylist() == [1]


def test_upkeep_of_iceberg_deletes_no_file_of_others(tmp_path: Path) -> None:
    clock, number = ManualClock(SystemClock().now()), epochs()
    target = sw.Iceberg(str(tmp_path / "v"), keep_s=0)
    for _ in range(3):
        PublishedIcebergTable(target, clock).replace(rows(1).to_reader(), next(number))
        clock.advance(60)
    files = users_files(tmp_path / "v")
    metadata = tmp_path / "v" / "metadata" / "of_another_engine.metadata.json"
    metadata.write_bytes(b"{}")
    age(tmp_path / "v")
    table = PublishedIcebergTable(target, clock)
    table.require_writable()
    table.maintain()
    assert [file for file in (*files, metadata) if not file.exists()] == []
    assert not list((tmp_path / "v" / "metadata").glob("_slackwater_check*"))


def test_the_metadata_of_an_iceberg_table_has_no_file_of_others_deleted(tmp_path: Path) -> None:
    clock, number = SystemClock(), epochs()
    target, users = sw.Iceberg(str(tmp_path / "v")), tmp_path / "users"
    users.mkdir()
    files = [users / f"{at}.csv" for at in range(5)]
    for file in files:
        file.write_bytes(b"the only copy")
    for content in (rows(1), rows(2)):
        PublishedIcebergTable(target, clock).replace(content.to_reader(), next(number))
    latest = max((tmp_path / "v" / "metadata").glob("*.metadata.json"), key=lambda file: file.name)
    metadata = json.loads(latest.read_text())
    named = [*map(str, files), *(f"{users}/none-{at}.csv" for at in range(100))]
    metadata["metadata-log"][:0] = [{"timestamp-ms": 1, "metadata-file": file} for file in named]
    latest.write_text(json.dumps(metadata))
    for content in (rows(3), rows(4)):
        PublishedIcebergTable(target, clock).replace(content.to_reader(), next(number))
    assert [file for file in files if not file.exists()] == []


@pytest.mark.more
def test_old_metadata_of_an_iceberg_table_is_deleted(tmp_path: Path) -> None:
    clock, number = SystemClock(), epochs()
    target = sw.Iceberg(str(tmp_path / "v"))
    PublishedIcebergTable(target, clock).replace(rows(1).to_reader(), next(number))
    catalog = load_catalog("slackwater", type="sql", uri=f"sqlite:///{tmp_path / 'catalog.db'}")
    table = catalog.load_table(target.identifier)
    with table.transaction() as transaction:
        transaction.set_properties({"write.metadata.previous-versions-max": "1"})
    for at in range(3):
        PublishedIcebergTable(target, clock).replace(rows(at).to_reader(), next(number))
    assert len(list((tmp_path / "v" / "metadata").glob("*.metadata.json"))) == 2


class Dies(BaseException):
    """The process ends."""


def parquet(target: sw.ParquetFiles) -> PublishedParquetFiles:
    return PublishedParquetFiles(target, SystemClock())


def names(place: Path) -> set[str]:
    return {str(file.relative_to(place)) for file in place.rglob("*.parquet")}


def die_writing(table: PublishedParquetFiles, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """A publication ends before its file of this number."""
    write, count = PublishedParquetFiles._write, iter(range(1_000))

    def dies(self: PublishedParquetFiles, path: str, content: pa.Table) -> None:
        if next(count) == at:
            raise Dies
        write(self, path, content)

    with monkeypatch.context() as patch, pytest.raises(Dies):
        patch.setattr(PublishedParquetFiles, "_write", dies)
        table.replace(pa.table({"n": [1, 2, 3], "day": [1, 2, 3]}).to_reader(), PublishedEpoch("r", "v", 2))


@pytest.mark.parametrize("at", [0, 1, 2])
def test_only_the_planned_files_of_a_dead_writer_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    target = sw.ParquetFiles(str(tmp_path / "v"), partition_by="day")
    parquet(target).replace(rows(1).to_reader(), PublishedEpoch("r", "v", 1))
    before = names(tmp_path / "v")
    die_writing(parquet(target), monkeypatch, at)
    assert len(names(tmp_path / "v") - before) == at
    nested = {f"{place}epoch-2-2-{number}.parquet" for place in ("late/", "day=1/late/") for number in (0, 1)}
    others = nested | {"epoch-2-2-0.parquet", "day=9/epoch-2-2-0.parquet", "day=1/epoch-2-2-7.parquet"}
    for name in others:
        (tmp_path / "v" / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows(7), tmp_path / "v" / name)
    parquet(target).replace(rows(4).to_reader(), PublishedEpoch("r", "v", 3))
    assert names(tmp_path / "v") == before | others | {"day=1/epoch-3-3-0.parquet"}
    assert json.loads((tmp_path / "v" / MANIFEST).read_text())["planned"] == []


def test_a_dead_writer_that_lives_writes_no_file_that_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock(SystemClock().now())
    target = sw.ParquetFiles(str(tmp_path / "v"))
    PublishedParquetFiles(target, clock).replace(rows(1).to_reader(), PublishedEpoch("r", "v", 1))
    frozen = PublishedParquetFiles(target, clock)
    die_writing(frozen, monkeypatch, 0)
    PublishedParquetFiles(target, clock).replace(rows(4).to_reader(), PublishedEpoch("r", "v", 3))
    frozen._write("epoch-2-2-0.parquet", rows(2))
    clock.advance(target.keep_s + 1)
    PublishedParquetFiles(target, clock).maintain()
    assert names(tmp_path / "v") == {"epoch-3-3-0.parquet"}


def test_a_file_that_has_a_planned_name_already_is_neither_replaced_nor_deleted(tmp_path: Path) -> None:
    target = sw.ParquetFiles(str(tmp_path / "v"))
    parquet(target).replace(rows(1).to_reader(), PublishedEpoch("r", "v", 1))
    users = tmp_path / "v" / "epoch-2-2-0.parquet"
    users.write_bytes(b"the only copy")
    with pytest.raises(CommitRefusedError, match="another program, which stays"):
        parquet(target).replace(rows(2).to_reader(), PublishedEpoch("r", "v", 2))
    parquet(target).replace(rows(3).to_reader(), PublishedEpoch("r", "v", 2))
    assert users.read_bytes() == b"the only copy"
    assert names(tmp_path / "v") >= {"epoch-2-3-0.parquet"}


@pytest.mark.parametrize("list_name", ["planned", "replaced", "files"])
@pytest.mark.parametrize("path", ["../orders.parquet", "/orders.parquet", "late/epoch-1-1-0.parquet", "notes.parquet"])
def test_a_manifest_that_names_other_files_is_not_followed(tmp_path: Path, list_name: str, path: str) -> None:
    target = target_in(tmp_path, "parquet", keep_s=0)
    assert isinstance(target, sw.ParquetFiles)
    parquet(target).replace(rows(1).to_reader(), PublishedEpoch("r", "v", 1))
    document: dict[str, Any] = json.loads((tmp_path / "v" / MANIFEST).read_text())
    at = "2020-01-01T00:00:00+00:00"
    listed: Any = {path: at} if list_name == "replaced" else [path]
    (tmp_path / "v" / MANIFEST).write_text(json.dumps(document | {list_name: listed, "is_writing": True}))
    (tmp_path / "v" / "late").mkdir()
    for file in (tmp_path / "orders.parquet", *(tmp_path / "v" / name for name in ("notes.parquet", "late/x.parquet"))):
        file.write_bytes(b"user")
    table = parquet(target)
    table.maintain()
    head = table.head()
    assert head is not None and head.published is None and "other content" in head.commit
    assert (tmp_path / "orders.parquet").exists() and (tmp_path / "v" / "notes.parquet").exists()


def test_a_partition_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    target, users = sw.ParquetFiles(str(tmp_path / "v"), partition_by="day", keep_s=0), tmp_path / "users"
    parquet(target).replace(rows(1).to_reader(), PublishedEpoch("r", "v", 1))
    (tmp_path / "v" / "day=1").rename(users)
    (tmp_path / "v" / "day=1").symlink_to(users)
    other = pa.table({"n": [2], "day": [2]})
    with pytest.raises(RemovalRefusedError, match="link"):
        parquet(target).replace(other.to_reader(), PublishedEpoch("r", "v", 2))
    assert [file.name for file in users.iterdir()] == ["epoch-1-1-0.parquet"]

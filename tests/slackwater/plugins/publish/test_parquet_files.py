"""A directory of Parquet files is read by its manifest, and of a view that only grows without it, too."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

import slackwater as sw
from slackwater.plugins.publish.parquet_files import MANIFEST, PublishedParquetFiles
from slackwater.plugins.publish.publication import PublishedEpoch
from slackwater.reading.changes.view_changes import ViewChange
from state.clock import ManualClock
from state.location import Location
from tests.slackwater.plugins.publish.growing_view import GrowingView, events, groups
from tests.slackwater.plugins.publish.published import contents, manifest, require_equal, target_in

TEXTS = ["plain", "é ü", "a/b=c%d", "", None, "__HIVE_DEFAULT_PARTITION__", "..", "x y'\"?#"]


def files_in(directory: Path) -> set[str]:
    return {str(file.relative_to(directory)) for file in directory.rglob("*.parquet")}


def numbered(*numbers: int) -> pa.Table:
    return pa.table({"n": pa.array(numbers, pa.int64()), "day": [date(2026, 1, 1 + n % 3) for n in numbers]})


def test_a_view_that_grows_is_read_as_a_directory(tmp_path: Path) -> None:
    view, target = GrowingView(Location(str(tmp_path / "root"))), target_in(tmp_path, "parquet", partition_by="day")
    view.create(numbered(0, 1, 2))
    sw.publish(view.store, "v", target)
    before = files_in(tmp_path / "v")
    view.table.append(numbered(3, 4))
    view.commit()
    sw.publish(view.store, "v", target)
    assert before < files_in(tmp_path / "v"), "no file changes or goes"
    assert {Path(file).parent.name for file in before} == {"day=2026-01-01", "day=2026-01-02", "day=2026-01-03"}
    rows = duckdb.sql(
        f"SELECT n, day FROM read_parquet('{tmp_path}/v/**/*.parquet', hive_partitioning=true)"
    ).fetchall()
    assert sorted(rows) == [(n, date(2026, 1, 1 + n % 3)) for n in range(5)]


def test_other_views_are_read_by_the_manifest(tmp_path: Path) -> None:
    view, target = GrowingView(Location(str(tmp_path / "root")), "carrier", "day of it"), target_in(tmp_path, "parquet")
    view.create(groups(dict.fromkeys(range(40), 1)))
    sw.publish(view.store, "v", target)
    old = files_in(tmp_path / "v")
    view.table.upsert(groups({1: 7}))
    epoch = view.commit()
    sw.publish(view.store, "v", target)
    assert require_equal(view.store, tmp_path, "parquet") == epoch
    assert old < files_in(tmp_path / "v"), "a reader with the manifest before can go on"
    place = f"{tmp_path}/v"
    listed = f"SELECT unnest(files) AS file FROM read_json('{place}/{MANIFEST}')"
    duckdb.sql(f"SET VARIABLE files = (SELECT list('{place}/' || file) FROM ({listed}))")
    assert duckdb.sql("SELECT sum(n) FROM read_parquet(getvariable('files'))").fetchall() == [(39 + 7,)]


@pytest.mark.parametrize("keep_s", [0.0, 60.0])
def test_a_replaced_file_stays_for_its_time(tmp_path: Path, keep_s: float) -> None:
    clock = ManualClock()
    target = target_in(tmp_path, "parquet", keep_s=keep_s)
    key, rows = ("n",), pa.table({"n": [1, 2], "x": [1, 1]})

    def opened() -> PublishedParquetFiles:
        assert isinstance(target, sw.ParquetFiles)
        return PublishedParquetFiles(target, clock)

    opened().replace(rows.to_reader(), PublishedEpoch("r", "v", 1))
    changed = pa.table({"n": [2], "x": [5]})
    opened().change(ViewChange("v", 2, key, changed, changed.select(key).slice(1)), PublishedEpoch("r", "v", 2))
    assert len(files_in(tmp_path / "v")) == (1 if keep_s == 0 else 2)
    assert len(manifest(tmp_path)["replaced"]) == 1
    clock.advance(59)
    opened().maintain()
    assert len(files_in(tmp_path / "v")) == (1 if keep_s == 0 else 2)
    clock.advance(1)
    opened().maintain()
    assert len(files_in(tmp_path / "v")) == 1 and not manifest(tmp_path)["replaced"]
    assert sorted(contents(tmp_path, "parquet")[1]["x"].to_pylist()) == [1, 5]


def test_values_of_partitions_come_back_as_they_were(tmp_path: Path) -> None:
    texts = [text for text in TEXTS if text not in ("", "__HIVE_DEFAULT_PARTITION__")]
    rows = pa.table(
        {"n": pa.array(range(len(texts)), pa.int64()), "place": texts, "ok": [True, None] * (len(texts) // 2)}
    )
    view = GrowingView(Location(str(tmp_path / "root")))
    view.create(rows)
    target = sw.ParquetFiles(str(tmp_path / "v"), partition_by=["place", "ok"])
    sw.publish(view.store, "v", target)
    view.correct("n >= 0", rows.slice(0, 0))  # every row is found again in its file
    published = sw.publish(view.store, "v", target)
    assert (published.is_whole, published.removed) == (False, len(texts))
    assert manifest(tmp_path)["files"] == []


def test_partitions_are_read_by_other_programs(tmp_path: Path) -> None:
    texts = [text for text in TEXTS if text not in ("", "__HIVE_DEFAULT_PARTITION__")]
    view = GrowingView(Location(str(tmp_path / "root")))
    view.create(pa.table({"n": pa.array(range(len(texts)), pa.int64()), "place": texts}))
    sw.publish(view.store, "v", sw.ParquetFiles(str(tmp_path / "v"), partition_by="place"))
    files = [str(tmp_path / "v" / file) for file in manifest(tmp_path)["files"]]
    by_arrow = pads.dataset(files, partitioning="hive").to_table().to_pylist()
    listed = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
    by_duckdb = duckdb.sql(f"SELECT n, place FROM read_parquet([{listed}], hive_partitioning=true)").fetchall()
    assert {row["n"]: row["place"] for row in by_arrow} == dict(enumerate(texts)) == dict(by_duckdb)


@pytest.mark.parametrize(
    ("partition_by", "message"),
    [
        ("missing", "the view has no such column; it has: n, day, name"),
        ("delay", "the column is double; partitions are of text, whole numbers, dates or booleans"),
        (["n", "day", "name"], "these are all columns"),
    ],
)
def test_partitions_that_cannot_be_are_named(tmp_path: Path, partition_by: Any, message: str) -> None:
    view = GrowingView(Location(str(tmp_path / "root")))
    kind = "delay" if partition_by == "delay" else "name"
    view.create(pa.table({"n": [1], "day": [date(2026, 1, 1)], kind: [1.5 if kind == "delay" else "a"]}))
    with pytest.raises(sw.errors.SchemaError, match=message):
        sw.publish(view.store, "v", sw.ParquetFiles(str(tmp_path / "v"), partition_by=partition_by))
    assert not (tmp_path / "v").exists()


def test_another_partitioning_is_refused(tmp_path: Path) -> None:
    view = GrowingView(Location(str(tmp_path / "root")))
    view.create(numbered(1))
    sw.publish(view.store, "v", target_in(tmp_path, "parquet"))
    view.table.append(numbered(2))
    view.commit()
    with pytest.raises(sw.errors.SchemaError, match="is partitioned by no column, and not by day"):
        sw.publish(view.store, "v", target_in(tmp_path, "parquet", partition_by="day"))


def test_files_of_another_program_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "v").mkdir()
    pq.write_table(numbered(1), tmp_path / "v" / "foreign.parquet")
    view = GrowingView(Location(str(tmp_path / "root")))
    view.create(numbered(1))
    with pytest.raises(sw.errors.CommitRefusedError, match=r"it has foreign\.parquet without a manifest"):
        sw.publish(view.store, "v", target_in(tmp_path, "parquet"))
    assert files_in(tmp_path / "v") == {"foreign.parquet"}


def test_the_files_of_a_writer_that_died_go_with_the_next_publication(tmp_path: Path) -> None:
    view, target = GrowingView(Location(str(tmp_path / "root"))), target_in(tmp_path, "parquet")
    first = view.create(events(1))
    sw.publish(view.store, "v", target)
    document, dead = manifest(tmp_path), tmp_path / "v" / f"epoch-{first + 1}-2-0.parquet"
    (tmp_path / "v" / MANIFEST).write_text(
        json.dumps({**document, "write": 2, "is_writing": True, "planned": [dead.name]})
    )
    pq.write_table(events(2), dead)
    pq.write_table(events(3), tmp_path / "v" / "by_a_user.parquet")
    view.table.append(events(2))
    epoch = view.commit()
    sw.publish(view.store, "v", target)
    assert not dead.exists() and (tmp_path / "v" / "by_a_user.parquet").exists()
    assert require_equal(view.store, tmp_path, "parquet") == epoch


def test_of_two_writers_one_wins(tmp_path: Path) -> None:
    target = sw.ParquetFiles(str(tmp_path / "v"))
    late, early = PublishedParquetFiles(target, ManualClock()), PublishedParquetFiles(target, ManualClock())
    early.replace(numbered(1).to_reader(), PublishedEpoch("r", "v", 1))
    with pytest.raises(sw.errors.CommitRefusedError, match="it is unknown whether the epoch is published"):
        late.replace(numbered(2).to_reader(), PublishedEpoch("r", "v", 2))
    assert contents(tmp_path, "parquet")[0] == 1 and len(files_in(tmp_path / "v")) == 1

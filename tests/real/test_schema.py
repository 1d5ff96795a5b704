"""Schemas, and columns that are not in the files, in whole runs."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slackwater as sw
from slackwater.verification.verification import Outcome
from tests.real.events import write

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("session")]

FAST = sw.Listing(interval_s=0.1)
SETTINGS = sw.Settings(fetch=sw.settings.FetchSettings(num_fetchers=2))


def pipeline(tmp_path: Path, *views: tuple[str, str], **options: Any) -> sw.Pipeline:
    (tmp_path / "in").mkdir(exist_ok=True)
    made = sw.Pipeline("schema", tmp_path / "root", settings=SETTINGS)
    made.source("t", tmp_path / "in", **{"format": "parquet", "discovery": FAST, **options})
    for name, query in views:
        made.view(name, query)
    return made


def rows(tmp_path: Path, view: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = sw.open(tmp_path / "root").snapshot().view(view).to_arrow().to_pylist()
    return sorted(found, key=repr)


def sources(tmp_path: Path) -> dict[str, Any]:
    (source,) = sw.open(tmp_path / "root").ledger.sources().to_pylist()
    return dict(source)


def put(tmp_path: Path, path: str, table: pa.Table) -> None:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    file = tmp_path / "in" / path
    write(file.parent, file.name, sink.getvalue())


def put_lines(tmp_path: Path, path: str, *lines: dict[str, Any]) -> None:
    write(tmp_path / "in", path, b"".join(json.dumps(line).encode() + b"\n" for line in lines))


@pytest.mark.more
def test_partitions_and_metadata_are_columns_of_the_views(tmp_path: Path) -> None:
    put(tmp_path, "dt=2026-01-01/city=S%C3%A3o%20Paulo/a.parquet", pa.table({"x": [1, 2]}))
    put(tmp_path, "dt=2026-01-02/city=__HIVE_DEFAULT_PARTITION__/b.parquet", pa.table({"x": [3]}))
    everything = "SELECT x, dt, city, _path, _size, _etag, _row FROM t"
    days = "SELECT dt, count(*) AS n, max(_last_modified) AS latest FROM t GROUP BY dt"
    made = pipeline(
        tmp_path,
        ("everything", everything),
        ("days", days),
        ("epochs", "SELECT x, _epoch AS epoch FROM t"),
        metadata=("path", "size", "last_modified", "etag", "row", "epoch"),
    )
    made.run(until="caught_up")
    put(tmp_path, "dt=2026-01-02/city=Rio/c.parquet", pa.table({"x": [4]}))
    put(tmp_path, "dt=soon/city=Rio/d.parquet", pa.table({"x": [5]}))
    made.run(until="caught_up")
    store = sw.open(tmp_path / "root")
    files = {row["path"]: row for row in store.ledger.files("t").to_pylist()}
    found = rows(tmp_path, "everything")
    assert [(row["x"], str(row["dt"]), row["city"], row["_row"]) for row in found] == [
        (1, "2026-01-01", "São Paulo", 0),
        (2, "2026-01-01", "São Paulo", 1),
        (3, "2026-01-02", None, 0),
        (4, "2026-01-02", "Rio", 0),
    ]
    assert all((row["_size"], row["_etag"]) == tuple(files[row["_path"]][k] for k in ("size", "etag")) for row in found)
    assert {row["dt"].day: row["n"] for row in rows(tmp_path, "days")} == {1: 2, 2: 2}
    done = {row["done_epoch"] for row in files.values()}
    assert {row["epoch"] for row in rows(tmp_path, "epochs")} <= done
    assert len({row["epoch"] for row in rows(tmp_path, "epochs")}) >= 2
    (quarantined,) = store.ledger.files("t", status="quarantined").to_pylist()
    assert quarantined["path"].endswith("dt=soon/city=Rio/d.parquet")
    assert "its path has dt=soon, but column dt of the source is date32" in quarantined["error"]
    checks = {check.view: check for check in sw.verify(store, engine="spark", follow_sources=True).views}
    assert checks["everything"].outcome is Outcome.EQUAL and checks["days"].outcome is Outcome.EQUAL
    assert checks["epochs"].outcome is Outcome.NOT_CHECKABLE and "_epoch" in checks["epochs"].reason


@pytest.mark.more
def test_mixed_files_of_a_sample_give_one_schema(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", pa.table({"id": pa.array([1], pa.int32()), "note": pa.nulls(1)}))
    put(tmp_path, "b.parquet", pa.table({"id": pa.array([2**40], pa.int64()), "extra": [1.5]}))
    put(tmp_path, "c.parquet", pa.table({"note": ["text"], "id": pa.array([3], pa.int16())}))
    made = pipeline(tmp_path, ("everything", "SELECT * FROM t"))
    made.run(until="caught_up")
    assert rows(tmp_path, "everything") == [
        {"id": 1, "note": None, "extra": None},
        {"id": 2**40, "note": None, "extra": 1.5},
        {"id": 3, "note": "text", "extra": None},
    ]
    assert sw.open(tmp_path / "root").ledger.files("t")["requests"].to_pylist() == [1, 1, 1]


@pytest.mark.more
def test_a_file_of_another_kind_than_the_others_is_quarantined_even_if_it_is_the_first(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", pa.table({"id": ["x"]}))
    put(tmp_path, "b.parquet", pa.table({"id": [1]}))
    put(tmp_path, "c.parquet", pa.table({"id": [2], "clock": pa.array([1], pa.time64("us"))}))
    put(tmp_path, "d.parquet", pa.table({"id": pa.array([3], pa.int16())}))
    pipeline(tmp_path, ("everything", "SELECT * FROM t")).run(until="caught_up")
    assert rows(tmp_path, "everything") == [{"id": 1}, {"id": 2}, {"id": 3}]
    (bad,) = sw.open(tmp_path / "root").ledger.files(status="quarantined").to_pylist()
    assert bad["path"].endswith("a.parquet") and "id" in bad["error"]


def test_no_file_ends_the_run_by_its_columns(tmp_path: Path) -> None:
    put(tmp_path / "one", "a.parquet", pa.table({"clock": pa.array([1], pa.time64("us"))}))
    put(tmp_path / "one", "b.parquet", pa.Table.from_arrays([[1], [2], [3], [4]], names=["", "v", "v", "a.b"]))
    put(tmp_path / "two", "col1=7/a.parquet", pa.table({"COL1": [1], "Id": [2]}))
    put(tmp_path / "two", "col1=8/b.parquet", pa.table({"iD": [3]}))
    for number, header in enumerate((",a,b", "a,b,", "v,v,V")):
        write(tmp_path / f"csv{number}", "a.csv", f"{header}\n1,2,3\n".encode())
    made = sw.Pipeline("schema", tmp_path / "root", settings=SETTINGS)
    for number in range(3):
        made.source(f"csv{number}", tmp_path / f"csv{number}", format="csv")
        made.view(f"all_csv{number}", f"SELECT * FROM csv{number}")
    for name in ("one", "two"):
        made.source(name, tmp_path / name / "in", format="parquet", materialize=True)
        made.view(f"all_{name}", f"SELECT * FROM {name}")
    made.run(until="caught_up")
    assert rows(tmp_path, "all_csv0") == [{"_c0": 1, "a": 2, "b": 3}]
    assert rows(tmp_path, "all_csv1") == [{"a": 1, "b": 2, "_c2": 3}]
    assert rows(tmp_path, "all_csv2") == [{"v": 1, "v_1": 2, "V_2": 3}]
    assert rows(tmp_path, "all_one") == [{"_c0": 1, "v": 2, "v_1": 3, "a_b": 4}]
    assert rows(tmp_path, "all_two") == [{"Id": 2, "col1": 7}, {"Id": 3, "col1": 8}]
    (bad,) = sw.open(tmp_path / "root").ledger.files(status="quarantined").to_pylist()
    assert bad["path"].endswith("a.parquet") and "column clock" in bad["error"]


def test_a_strict_source_quarantines_and_a_lenient_one_reports(tmp_path: Path) -> None:
    def made(**evolution: Any) -> sw.Pipeline:
        pipeline = sw.Pipeline("schema", tmp_path / "root", settings=SETTINGS)
        declared = sw.Schema("Id bigint, qty bigint", **evolution)
        pipeline.source("strict", tmp_path / "strict" / "in", format="parquet", schema=declared, discovery=FAST)
        pipeline.source("shown", tmp_path / "shown" / "in", format="parquet", materialize=True, discovery=FAST)
        for name in ("strict", "shown"):
            pipeline.view(f"all_{name}", f"SELECT * FROM {name}")
        return pipeline

    for name in ("strict", "shown"):
        put(tmp_path / name, "a.parquet", pa.table({"id": [1], "qty": [2], "note": pa.nulls(1)}))
    made().run(until="caught_up")
    for name in ("strict", "shown"):
        put(tmp_path / name, "b.parquet", pa.table({"ID": [2], "quantity": [3], "note": [5]}))
    report = made().run(until="caught_up")
    assert rows(tmp_path, "all_strict") == [{"Id": 1, "qty": 2}]
    assert rows(tmp_path, "all_shown") == [{"id": 1, "qty": 2, "note": None}, {"id": 2, "qty": None, "note": "5"}]
    (bad,) = sw.open(tmp_path / "root").ledger.files(status="quarantined").to_pylist()
    assert bad["source"] == "strict" and "it lacks the column qty of the source, and has quantity" in bad["error"]
    assert [note for note in report.notes if note.startswith("source shown: files lack qty, null in their rows")]
    put(tmp_path / "strict", "c.parquet", pa.table({"id": [3]}))
    made(evolution="lenient").run(until="caught_up")
    assert rows(tmp_path, "all_strict") == [{"Id": 1, "qty": 2}, {"Id": 3, "qty": None}]
    assert sw.verify(sw.open(tmp_path / "root"), pipeline=made(evolution="lenient")).all_equal


@pytest.mark.more
def test_a_source_leaves_columns_out_and_reports_each_with_its_first_file(tmp_path: Path) -> None:
    put_lines(tmp_path, "a.json", {"id": 1, "new": 1})
    made = pipeline(tmp_path, ("everything", "SELECT * FROM t"), format="json", schema="id bigint")
    made.run(until="caught_up")
    (first,) = sources(tmp_path)["left_out"]
    put_lines(tmp_path, "b.json", {"id": 2, "new": 2, "newer": 3})
    made.run(until="caught_up")
    assert rows(tmp_path, "everything") == [{"id": 1}, {"id": 2}]
    assert first["column"] == "new" and first["path"].endswith("/in/a.json")
    left_out = {each["column"]: each for each in sources(tmp_path)["left_out"]}
    assert left_out["new"] == first
    assert left_out["newer"]["path"].endswith("/in/b.json") and left_out["newer"]["epoch"] > first["epoch"]


@pytest.mark.more
def test_added_columns_are_in_the_schema_and_views_keep_theirs_over_a_restart(tmp_path: Path) -> None:
    everything = ("everything", "SELECT * FROM t")
    options = {"format": "json", "schema": sw.Schema(evolution="add_columns"), "metadata": ("row",)}
    put_lines(tmp_path, "a.json", {"id": 1}, {"id": 2})
    pipeline(tmp_path, everything, **options).run(until="caught_up")
    put_lines(tmp_path, "b.json", {"id": 3}, {"id": 4, "new": 1.5, "other": "x"})
    put_lines(tmp_path, "c.json", {"id": 5, "newest": [1]})
    pipeline(tmp_path, everything, **options).run(until="caught_up")
    schema = sources(tmp_path)["schema"]
    assert schema.startswith("id int64, _row int64, ")
    assert all(column in schema for column in ("new double", "other string", "newest list<item: int64>"))
    put_lines(tmp_path, "d.json", {"id": 6, "new": 2.5})
    pipeline(tmp_path, everything, **options).run(until="caught_up")
    assert rows(tmp_path, "everything") == [
        {"id": 1, "_row": 0},
        {"id": 2, "_row": 1},
        {"id": 3, "_row": 0},
        {"id": 4, "_row": 1},
        {"id": 5, "_row": 0},
        {"id": 6, "_row": 0},
    ]
    store = sw.open(tmp_path / "root")
    assert set(store.ledger.files("t")["status"].to_pylist()) == {"done"}
    assert set(store.ledger.files("t")["requests"].to_pylist()) == {1}, (
        "what was read for the new columns is not read again"
    )
    assert sources(tmp_path)["left_out"] == []
    (check,) = sw.verify(store, engine="spark", follow_sources=True).views
    assert check.outcome is Outcome.EQUAL

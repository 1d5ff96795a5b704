"""The stored rows of a static table, on a disk and in a bucket; and what can be a table."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import slackwater as sw
from actors.file_errors import UnreadableFile
from actors.objects.object_store import ObjectStore
from slackwater.cli.app import app
from slackwater.commands.replace_table import replace_table
from slackwater.tables.static_table import FILE, StaticTable, table_location
from slackwater.tables.table_rows import table_rows
from slackwater.testing.servers.s3_server import S3Server
from state.errors import UsageError
from state.location import Location

ROWS = pa.table({"place": ["a", "b"], "n": pa.array([1, 2], pa.int64())})
OTHER = pa.table({"n": pa.array([7], pa.int32()), "place": ["c"]})


@pytest.fixture(params=["disk", "bucket"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    if request.param == "disk":
        return table_location(Location(str(tmp_path)), "places")
    server: S3Server = request.getfixturevalue("s3")
    bucket = request.getfixturevalue("bucket")
    return table_location(Location(f"s3://{bucket}/root", server.storage_options), "places")


def stored(location: Location) -> list[dict[str, Any]]:
    store = ObjectStore(location)
    file = store.find("places", FILE)
    assert file is not None
    rows: list[dict[str, Any]] = pq.read_table(pa.py_buffer(store.open(file).head(file.size))).to_pylist()
    return rows


def test_replaced_rows_stay_until_others_are_declared(location: Location) -> None:
    table = StaticTable(location, "places")
    table.declare(ROWS)
    assert stored(location) == ROWS.to_pylist()
    table.replace(OTHER)
    StaticTable(location, "places").declare(ROWS)
    assert stored(location) == [{"place": "c", "n": 7}]
    table.declare(ROWS.slice(0, 1))
    assert stored(location) == [{"place": "a", "n": 1}]


def test_equal_rows_are_not_written_again(location: Location) -> None:
    store, table = ObjectStore(location), StaticTable(location, "places")
    table.declare(ROWS)
    before = store.find("places", FILE)
    table.declare(pa.concat_tables([ROWS.slice(0, 1), ROWS.slice(1)]))
    assert store.find("places", FILE) == before


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (ROWS.drop_columns(["n"]), "rows without n: its columns are place, n"),
        (ROWS.append_column("m", [[1, 2]]), "rows with m: its columns are place, n"),
        (ROWS.append_column("N", [[1, 2]]), "the columns n, N of the file match column n of the source; rename them"),
        (pa.table({"place": ["a"], "n": ["one"]}), "column n: string does not become int64"),
    ],
)
def test_rows_that_do_not_fit_change_nothing(tmp_path: Path, rows: pa.Table, message: str) -> None:
    location = table_location(Location(str(tmp_path)), "places")
    table = StaticTable(location, "places")
    table.declare(ROWS)
    with pytest.raises(sw.errors.SchemaError, match=message):
        table.replace(rows)
    assert stored(location) == ROWS.to_pylist()


def test_columns_of_the_new_rows_match_in_any_case(tmp_path: Path) -> None:
    location = table_location(Location(str(tmp_path)), "places")
    table = StaticTable(location, "places")
    table.declare(ROWS)
    table.replace(pa.table({"N": [7], "Place": ["z"]}))
    assert stored(location) == [{"place": "z", "n": 7}]


@pytest.mark.parametrize(
    "data",
    [ROWS, ROWS.to_pandas(), polars.DataFrame(ROWS.to_pylist()), ROWS.to_pylist(), ROWS.to_batches()[0]],
    ids=lambda data: type(data).__name__,
)
def test_a_frame_of_any_library_has_the_same_rows(data: Any) -> None:
    assert table_rows("places", data).equals(ROWS)


def test_types_that_do_not_reach_spark_are_replaced() -> None:
    categories = pd.DataFrame({"c": pd.Categorical(["a", "b"]), "at": [pd.Timestamp("2026-01-01"), pd.NaT]})
    assert table_rows("places", categories).schema.types == [pa.string(), pa.timestamp("us")]


def test_what_a_table_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = sw.Pipeline("shop", tmp_path / "root")
    pipeline.table("places", ROWS)
    with pytest.raises(sw.errors.SettingsError, match="Places is declared twice, as places"):
        pipeline.table("Places", ROWS)
    with pytest.raises(sw.errors.SettingsError, match="give the format of its files"):
        pipeline.table("rates", tmp_path)
    with pytest.raises(sw.errors.SettingsError, match="table rates: int is no table"):
        pipeline.table("rates", 3)
    with pytest.raises(sw.errors.SettingsError, match="are for a table of files"):
        pipeline.table("rates", ROWS, format="csv")
    with pytest.raises(sw.errors.SchemaError, match="table rates: column __sw_a"):
        pipeline.table("rates", pa.table({"__sw_a": [1]}))
    monkeypatch.setattr("slackwater.tables.table_rows.MAX_BYTES", 10)
    with pytest.raises(sw.errors.SettingsError, match="write it to a directory or bucket"):
        pipeline.table("rates", ROWS)


def test_a_file_is_read_in_the_types_of_the_table(tmp_path: Path) -> None:
    location = table_location(Location(str(tmp_path)), "places")
    StaticTable(location, "places").declare(ROWS)
    (tmp_path / "new.csv").write_text('n,place\n1,007\n2,""\n3,\n')
    told = CliRunner().invoke(app, ["replace-table", str(tmp_path), "places", str(tmp_path / "new.csv")])
    assert "table places: 3 rows, which the next run reads" in told.output
    assert stored(location) == [{"place": "007", "n": 1}, {"place": "", "n": 2}, {"place": None, "n": 3}]


def test_json_and_parquet_are_read_as_a_source_reads_them(tmp_path: Path) -> None:
    location = table_location(Location(str(tmp_path)), "places")
    StaticTable(location, "places").declare(pa.table({"place": ["x"], "at": pa.array([1], pa.timestamp("us"))}))
    (tmp_path / "new.json").write_text('[{"PLACE": {"a": 1}, "at": "2026-01-02T03:04:05.1234560"},\n{"place": "y"}]')
    told = CliRunner().invoke(app, ["replace-table", str(tmp_path), "places", str(tmp_path / "new.json")])
    assert "table places: 2 rows" in told.output, told.output
    at = datetime.fromisoformat("2026-01-02T03:04:05.123456")
    assert stored(location) == [{"place": '{"a": 1}', "at": at}, {"place": "y", "at": None}]
    far = datetime.fromisoformat("9999-12-31")
    table = pa.table({"at": pa.array([far], pa.timestamp("us")), "place": ["z"]})
    pq.write_table(table, tmp_path / "new.parquet", use_deprecated_int96_timestamps=True)
    told = CliRunner().invoke(app, ["replace-table", str(tmp_path), "places", str(tmp_path / "new.parquet")])
    assert stored(location) == [{"place": "z", "at": far}], told.output


def test_a_name_that_is_not_text_is_named(tmp_path: Path) -> None:
    StaticTable(table_location(Location(str(tmp_path)), "places"), "places").declare(ROWS)
    file = tmp_path / os.fsdecode(b"\xff.csv")
    file.write_text("place,n\nx,1\n")
    with pytest.raises(UsageError, match="its name is not UTF-8: rename it"):
        replace_table(Location(str(tmp_path)), "places", file)
    with pytest.raises(UnreadableFile, match="its name is not UTF-8"):
        ObjectStore(Location(str(tmp_path))).find("s", file.name)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "", "must end with one of .parquet, .csv, .json, .jsonl, .avro, .orc"),
        ("a.csv", "place,n\nx,one\n", "a.csv cannot be read"),
        ("none.parquet", None, "none.parquet cannot be read"),
    ],
)
def test_a_file_that_is_no_table_is_named(tmp_path: Path, name: str, content: str | None, message: str) -> None:
    StaticTable(table_location(Location(str(tmp_path)), "places"), "places").declare(ROWS)
    if content is not None:
        (tmp_path / name).write_text(content)
    told = CliRunner().invoke(app, ["replace-table", str(tmp_path), "places", str(tmp_path / name)])
    assert told.exit_code != 0 and message in told.output


def test_a_root_without_the_table_is_told(tmp_path: Path) -> None:
    told = CliRunner().invoke(app, ["replace-table", str(tmp_path), "places", str(tmp_path / "a.csv")])
    assert told.exit_code != 0 and "the root has no rows of a static table 'places'" in told.output

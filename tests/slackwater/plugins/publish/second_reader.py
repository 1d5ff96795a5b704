"""Published tables without the library of their format: the log is parsed here, and DuckDB reads the Parquet files."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb
import fastavro
import pyarrow as pa

from tests.slackwater.plugins.publish.published import manifest


def second_contents(directory: Path, format: str) -> tuple[int, pa.Table]:
    """The epoch that the table `v` names, and its rows."""
    return {"delta": _delta, "iceberg": _iceberg, "parquet": _parquet}[format](directory)


def _delta(directory: Path) -> tuple[int, pa.Table]:
    """As the protocol says: the commits of the log in their order.  Only for a log without missing commits."""
    files: dict[str, dict[str, Any]] = {}
    schema: dict[str, Any] = {}
    epoch, commits = 0, sorted((directory / "v" / "_delta_log").glob("*.json"))
    for number, commit in enumerate(commits):
        assert commit.name == f"{number:020}.json"
        for action in map(json.loads, commit.read_text().splitlines()):
            if "remove" in action:
                del files[action["remove"]["path"]]
            elif "add" in action:
                assert "deletionVector" not in action["add"]
                files[action["add"]["path"]] = action["add"]
            elif "metaData" in action:
                schema = json.loads(action["metaData"]["schemaString"])
            elif "commitInfo" in action:
                epoch = int(action["commitInfo"].get("slackwater.epoch", epoch))
    names = [field["name"] for field in schema["fields"]]
    found = [(str(directory / "v" / unquote(path)), add["partitionValues"]) for path, add in files.items()]
    return epoch, _read(found, names)


def _iceberg(directory: Path) -> tuple[int, pa.Table]:
    """As the specification says: catalog, metadata, list of manifests, manifests, data files."""
    with sqlite3.connect(directory / "catalog.db") as catalog:
        [(place,)] = catalog.execute("SELECT metadata_location FROM iceberg_tables WHERE table_name = 'v'").fetchall()
    metadata = json.loads(_local(place).read_text())
    [schema] = [each for each in metadata["schemas"] if each["schema-id"] == metadata["current-schema-id"]]
    [snapshot] = [each for each in metadata["snapshots"] if each["snapshot-id"] == metadata["current-snapshot-id"]]
    files: list[tuple[str, dict[str, Any]]] = []
    rows = 0
    for listed in _avro(snapshot["manifest-list"]):
        assert listed["content"] == 0, "there are delete files"
        for entry in _avro(listed["manifest_path"]):
            if entry["status"] != 2:
                files.append((str(_local(entry["data_file"]["file_path"])), {}))
                rows += entry["data_file"]["record_count"]
    # Columns have other names in the files than in the table, but the same order.
    table = _read(files, []) if files else pa.table({field["name"]: pa.nulls(0) for field in schema["fields"]})
    table = table.rename_columns([field["name"] for field in schema["fields"]])
    assert rows == table.num_rows
    return int(snapshot["summary"]["slackwater.epoch"]), table


def _parquet(directory: Path) -> tuple[int, pa.Table]:
    listed = manifest(directory)
    files: list[tuple[str, dict[str, Any]]] = [(str(directory / "v" / path), {}) for path in listed["files"]]
    names = [*listed["columns"]]
    texts = dict.fromkeys(listed["partition_by"], "VARCHAR")
    epoch = int(listed["slackwater.epoch"])
    if not texts or not files:
        return epoch, _read(files, names)
    options = f"hive_partitioning = true, hive_types = {texts}"
    return epoch, _select(f"SELECT * FROM read_parquet({_listed(files)}, {options})", names)


def _read(files: list[tuple[str, dict[str, Any]]], names: list[str]) -> pa.Table:
    """The rows of Parquet files, each with the values of its partition."""
    if not files:
        return pa.table({name: pa.nulls(0) for name in names})
    if not any(partition for _, partition in files):
        return _select(f"SELECT * FROM read_parquet({_listed(files)}, hive_partitioning = false)", names)
    tables = []
    for path, partition in files:
        table = _select(f"SELECT * FROM read_parquet('{_quoted(path)}', hive_partitioning = false)", [])
        for name, value in partition.items():
            table = table.append_column(name, pa.array([value] * table.num_rows, pa.string()))
        tables.append(table.select(names))
    return pa.concat_tables(tables, promote_options="permissive")


def _listed(files: list[tuple[str, dict[str, Any]]]) -> str:
    return "[" + ", ".join(f"'{_quoted(path)}'" for path, _ in files) + "]"


def _select(query: str, names: list[str]) -> pa.Table:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        table = connection.sql(query).to_arrow_table()
    return table.select(names) if names else table


def _avro(place: str) -> list[Any]:
    with _local(place).open("rb") as stream:
        return list(fastavro.reader(stream))


def _local(place: str) -> Path:
    return Path(place.removeprefix("file://"))


def _quoted(path: str) -> str:
    # DuckDB takes some characters of a path for a pattern.
    return path.replace("'", "''")

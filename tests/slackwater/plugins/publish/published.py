"""A published table, read by the library of its format alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError

from slackwater.plugins.publish.parquet_files import MANIFEST
from slackwater.plugins.publish.targets import Delta, Iceberg, ParquetFiles, Target
from slackwater.reading.store import Store
from tests.slackwater.plugins.publish.growing_view import bag


def target_in(directory: Path, format: str, **options: Any) -> Target:
    """The table `v` in a directory."""
    kinds: dict[str, type[Target]] = {"delta": Delta, "iceberg": Iceberg, "parquet": ParquetFiles}
    return kinds[format](str(directory / "v"), **options)


def iceberg_table(directory: Path) -> Any:
    catalog = load_catalog("slackwater", type="sql", uri=f"sqlite:///{directory / 'catalog.db'}")
    assert isinstance(catalog, SqlCatalog)
    return catalog.load_table("slackwater.v")


def manifest(directory: Path) -> dict[str, Any]:
    """The manifest of a directory of Parquet files."""
    document: dict[str, Any] = json.loads((directory / "v" / MANIFEST).read_text())
    return document


def is_published(directory: Path, format: str) -> bool:
    """True if the table has a commit."""
    if format == "delta":
        return DeltaTable.is_deltatable(str(directory / "v"))
    if format == "parquet":
        return (directory / "v" / MANIFEST).exists() and manifest(directory)["slackwater.epoch"] != "0"
    try:
        return iceberg_table(directory).current_snapshot() is not None
    except NoSuchTableError:
        return False


def contents(directory: Path, format: str) -> tuple[int, pa.Table]:
    """The epoch that the table names, and its rows."""
    if format == "delta":
        table = DeltaTable(str(directory / "v"))
        commits = (commit for commit in table.history() if "slackwater.epoch" in commit)
        return int(next(commits)["slackwater.epoch"]), table.to_pyarrow_table()
    if format == "parquet":
        listed = manifest(directory)
        files = [str(directory / "v" / file) for file in listed["files"]]
        if not files:
            return int(listed["slackwater.epoch"]), pa.table({name: pa.nulls(0) for name in listed["columns"]})
        return int(listed["slackwater.epoch"]), pads.dataset(files, partitioning="hive").to_table()
    iceberg = iceberg_table(directory)
    return int(iceberg.current_snapshot().summary["slackwater.epoch"]), iceberg.scan().to_arrow()


def require_equal(store: Store, directory: Path, format: str, name: str = "v") -> int:
    """Checks the table against a view at the epoch that it names, and returns the epoch."""
    epoch, rows = contents(directory, format)
    view = store.snapshot(epoch).view(name).to_arrow()
    assert sorted(rows.column_names) == sorted(view.column_names)
    assert bag(rows.select(view.column_names).cast(view.schema), view.column_names) == bag(view, view.column_names)
    return epoch


def written_by_another(directory: Path, format: str, rows: pa.Table) -> None:
    """Appends rows as another program does."""
    if format == "delta":
        write_deltalake(str(directory / "v"), rows, mode="append")
    elif format == "iceberg":
        iceberg_table(directory).append(rows)
    else:
        pq.write_table(rows, directory / "v" / "foreign.parquet")
        files = [*manifest(directory)["files"], "foreign.parquet"]
        (directory / "v" / MANIFEST).write_text(json.dumps({"files": files, "by": "another program"}))


def rows_of_another(directory: Path, format: str) -> pa.Table:
    """The rows of a table that another program has written to."""
    if format == "delta":
        return DeltaTable(str(directory / "v")).to_pyarrow_table()
    if format == "iceberg":
        return iceberg_table(directory).scan().to_arrow()
    return pads.dataset([str(directory / "v" / file) for file in manifest(directory)["files"]]).to_table()

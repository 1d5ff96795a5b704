"""DuckDB over exactly the rows that the ledger says were ingested, at any epoch of one root.

Rows are compared exactly: the numbers of the tests are such that no sum depends on its order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

import slackwater as sw

_READERS = {
    "parquet": "read_parquet(?)",
    "csv": "read_csv(?, header=true)",
    "json": "read_json(?, format='newline_delimited')",
}


class LedgerOracle:
    """Holds every row of every file once, with its position; an epoch is a join with the ledger of that epoch.

    Args:
        formats: source → format.
        read: the content of a file, by its path in the ledger.
        scratch: a directory for files.
    """

    def __init__(self, formats: Mapping[str, str], read: Callable[[str], bytes], scratch: Path) -> None:
        self._formats, self._read, self._scratch = formats, read, scratch
        self._duckdb: Any = duckdb.connect()
        self._loaded: dict[str, set[str]] = {source: set() for source in formats}

    def check_every_epoch(self, store: sw.Store, views: Mapping[str, str]) -> int:
        """Compares every view with its query at every retained epoch; returns how many epochs that were."""
        for source in self._formats:
            for path in store.files(source)["path"].to_pylist():
                self._load(source, path)
        epochs = store.epochs()["epoch"].to_pylist()
        for epoch in epochs:
            self.check(store.snapshot(epoch=epoch), views)
        return len(epochs)

    def check(self, snapshot: sw.Snapshot, views: Mapping[str, str]) -> None:
        """Compares the views that exist at an epoch."""
        for source in self._formats:
            self._show(source, snapshot.files(source))
        for name in snapshot.views:
            self._duckdb.register("actual", snapshot.view(name).to_arrow())
            self._duckdb.execute(f"CREATE OR REPLACE TEMP TABLE expected AS {views[name]}")
            for what, one, other in (("too much", "actual", "expected"), ("too little", "expected", "actual")):
                rows = self._duckdb.execute(f"FROM {one} EXCEPT ALL FROM {other} LIMIT 3").fetchall()
                assert not rows, f"{name} at epoch {snapshot.epoch} has {what}, among it {rows}"

    def _show(self, source: str, ledger: pa.Table) -> None:
        self._duckdb.register("ledger", ledger.select(["path", "rows_read"]))
        self._duckdb.execute(f"CREATE OR REPLACE TABLE ledger_{source} AS SELECT * FROM ledger")
        self._duckdb.execute(
            f"CREATE OR REPLACE VIEW {source} AS SELECT r.* EXCLUDE (path, position) FROM all_{source} r "
            f"JOIN ledger_{source} l ON r.path = l.path AND r.position < l.rows_read"
        )

    def _load(self, source: str, path: str) -> None:
        local = self._scratch / f"file-{sum(map(len, self._loaded.values()))}"
        local.write_bytes(self._read(path))
        select = f"SELECT *, row_number() OVER () - 1 AS position, ? AS path FROM {_READERS[self._formats[source]]}"
        known = bool(self._loaded[source])
        statement = f"INSERT INTO all_{source} {select}" if known else f"CREATE TABLE all_{source} AS {select}"
        self._duckdb.execute(statement, [path, str(local)])
        self._loaded[source].add(path)

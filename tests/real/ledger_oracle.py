"""DuckDB over exactly the rows that the ledger says were ingested and not taken out, at any epoch of one root.

Rows are compared exactly: the numbers of the tests are such that no sum depends on its order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

import slackwater as sw
from state.tables.tables import REMOVED_STATUSES

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
        stored: the sources that are materialized; all of their files are in one directory.
    """

    def __init__(
        self,
        formats: Mapping[str, str],
        read: Callable[[str], bytes],
        scratch: Path,
        stored: Collection[str] = (),
    ) -> None:
        self._formats, self._read, self._scratch, self._stored = formats, read, scratch, stored
        self._duckdb: Any = duckdb.connect()
        self._loaded: dict[str, set[tuple[str, str]]] = {source: set() for source in formats}

    def check_every_epoch(self, store: sw.Store, views: Mapping[str, str]) -> int:
        """Compares every view with its query at every retained epoch; returns how many epochs that were."""
        self._store = store
        self.learn(store)
        epochs = store.epochs()["epoch"].to_pylist()
        for epoch in epochs:
            self.check(store.snapshot(epoch=epoch), views)
        return len(epochs)

    def learn(self, store: sw.Store) -> None:
        """Reads the files as they are now: before they are replaced or deleted."""
        for source in self._formats:
            for file in store.ledger.files(source).to_pylist():
                if file["status"] not in REMOVED_STATUSES and (file["path"], file["etag"]) not in self._loaded[source]:
                    self._load(source, file["path"], file["etag"])

    def check(self, snapshot: sw.Snapshot, views: Mapping[str, str]) -> None:
        """Compares the views that exist at an epoch, and the rows that are stored by then."""
        for source in self._formats:
            self._show(source, snapshot.files(source))
        behind: dict[int, list[str]] = {}
        for name in snapshot.views:
            behind.setdefault(snapshot.view(name).reflects_epoch, []).append(name)
        for name in behind.pop(snapshot.epoch, []):
            self._compare(f"{name} at epoch {snapshot.epoch}", snapshot.view(name).to_arrow(), views[name])
        for epoch, names in behind.items():
            self._compare_behind(snapshot, epoch, {name: views[name] for name in names})
        for source in self._stored:
            self._check_rows(source, snapshot)

    def _compare_behind(self, snapshot: sw.Snapshot, epoch: int, views: Mapping[str, str]) -> None:
        """Compares views that show the rows of an earlier epoch."""
        earlier = self._store.snapshot(epoch=epoch) if epoch else None
        for source in self._formats:
            self._show(source, snapshot.files(source).slice(0, 0) if earlier is None else earlier.files(source))
        for name, query in views.items():
            what = f"{name} of epoch {epoch} at epoch {snapshot.epoch}"
            self._compare(what, snapshot.view(name).to_arrow(), query)
        for source in self._formats:
            self._show(source, snapshot.files(source))

    def _check_rows(self, source: str, snapshot: sw.Snapshot) -> None:
        """Compares stored rows one by one, with the file and the position that they are from."""
        query = (
            f"SELECT split_part(r.path, '/', -1), position, r.* EXCLUDE (path, etag, position) FROM all_{source} r "
            f"JOIN ledger_{source} l ON r.path = l.path AND r.etag = l.etag AND r.position < l.rows_read"
        )
        try:
            rows = snapshot.rows(source).lance().to_table()
            rows = rows.drop_columns([name for name in ("__sw_version", "_epoch") if name in rows.column_names])
        except sw.errors.ViewNotFoundError:
            assert not self._duckdb.execute(f"{query} LIMIT 1").fetchall(), f"rows of {source} are not stored"
        else:
            self._compare(f"{source} as stored at epoch {snapshot.epoch}", rows, query)

    def _compare(self, what: str, rows: pa.Table, query: str) -> None:
        self._duckdb.register("actual", rows)
        self._duckdb.execute(f"CREATE OR REPLACE TEMP TABLE expected AS {query}")
        for much, one, other in (("too much", "actual", "expected"), ("too little", "expected", "actual")):
            found = self._duckdb.execute(f"FROM {one} EXCEPT ALL FROM {other} LIMIT 3").fetchall()
            assert not found, f"{what} has {much}, among it {found}"

    def _show(self, source: str, ledger: pa.Table) -> None:
        is_removed = pc.is_in(ledger["status"], value_set=pa.array(REMOVED_STATUSES))
        self._duckdb.register("ledger", ledger.filter(pc.invert(is_removed)).select(["path", "etag", "rows_read"]))
        self._duckdb.execute(f"CREATE OR REPLACE TABLE ledger_{source} AS SELECT * FROM ledger")
        self._duckdb.execute(
            f"CREATE OR REPLACE VIEW {source} AS SELECT r.* EXCLUDE (path, etag, position) FROM all_{source} r "
            f"JOIN ledger_{source} l ON r.path = l.path AND r.etag = l.etag AND r.position < l.rows_read"
        )

    def _load(self, source: str, path: str, etag: str) -> None:
        local = self._scratch / f"file-{sum(map(len, self._loaded.values()))}"
        local.write_bytes(self._read(path))
        reader = _READERS[self._formats[source]]
        select = f"SELECT *, row_number() OVER () - 1 AS position, ? AS path, ? AS etag FROM {reader}"
        known = bool(self._loaded[source])
        statement = f"INSERT INTO all_{source} {select}" if known else f"CREATE TABLE all_{source} AS {select}"
        self._duckdb.execute(statement, [path, etag, str(local)])
        self._loaded[source].add((path, etag))

"""Delta table of a publication, by delta-rs.

The application `slackwater:ROOT:VIEW:IDENTITY` has the epoch as the version of its transaction, and the commit names
them, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from obstore.exceptions import BaseError, NotFoundError

from slackwater.plugins.publish.leaving_rows import LeavingRows
from slackwater.plugins.publish.partitions import require_partition_types
from slackwater.plugins.publish.publication import PublishedEpoch
from slackwater.plugins.publish.published_table import (
    InexactChangeError,
    TableHead,
    check_writable,
    column_types,
    columns_without_nulls,
    publish_error,
    refused_commit,
    require_same_columns,
    stored_schema,
)
from slackwater.plugins.publish.targets import Delta
from slackwater.reading.changes.view_changes import ViewChange
from state.equality.exact_rows import exact_rows, with_nulls
from state.equality.row_identity import row_texts
from state.lance.lance_access import lance_options
from state.location import Location
from state.objects.object_client import object_client
from state.objects.storage_error import storage_error
from state.objects.stored_object import read_object
from state.places.marker import Marker, write_marker
from state.removal.tables import DELTA_RETENTION, delta_retention, vacuum_delta

_MAINTENANCE = ("OPTIMIZE", "VACUUM START", "VACUUM END", "SET TBLPROPERTIES")
_CREATION = "CREATE TABLE"
_RESTORE = "RESTORE"
_LEAVES = "__sw_leaves"
# Delta-rs tries a request for three minutes, and the publication is tried again as a whole.
_RETRIES = {"max_retries": "3", "retry_timeout": "15s"}
_WRITTEN, _DELETED = "slackwater.written", "slackwater.deleted"
_INSERTS, _UPDATES, _DELETES = (f"num_target_rows_{what}" for what in ("inserted", "updated", "deleted"))


class PublishedDeltaTable:
    """See `PublishedTable`."""

    def __init__(self, target: Delta) -> None:
        self._target = target
        self._uri = str(target.location)
        options = lance_options(target.location)
        self._options = options if target.location.is_local else {**_RETRIES, **(options or {})}
        with self._errors():
            try:
                self._table: DeltaTable | None = DeltaTable(self._uri, storage_options=self._options)
            except TableNotFoundError:
                self._table = None
        self._opened_version = -1 if self._table is None else self._table.version()

    @property
    def locations(self) -> tuple[Location, ...]:
        return (self._target.location,)

    def head(self) -> TableHead | None:
        if self._table is None:
            return None
        with self._errors():
            last = next(self._changes(), {})
        operation = last.get("operation", "a commit")
        # Some programs create a table and write its first rows in one commit.
        if operation == _CREATION and not self._table.file_uris():
            return None
        words = f"{operation} by {last.get('engineInfo', 'an unknown program')}"
        published = PublishedEpoch.of(last)
        if published is not None and _is_inexact(last):
            # The process died before it wrote all rows again.
            published = replace(published, epoch=0)
        return TableHead(self._version(self._table), published, words, (lambda _: None) if last else self._kept_epoch)

    def _kept_epoch(self, wanted: PublishedEpoch) -> int | None:
        """The epoch in the transaction of the application: checkpoints keep it when the log loses its commits."""
        assert self._table is not None
        with self._errors():
            return self._table.transaction_version(wanted.application)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return () if self._table is None else tuple(self._table.metadata().partition_columns)

    def _changes(self) -> Iterator[dict[str, Any]]:
        """The commits that may have changed the rows, newest first, without commits that a later restore has undone.

        The log itself is read: the history of delta-rs leaves out commits without information, which the protocol
        allows, and gives the commits before them wrong versions.
        """
        assert self._table is not None
        version = self._table.version()
        while version >= 0 and (commit := self._commit_info(version)) is not None:
            restored = (commit.get("operationParameters") or {}).get("version")
            if commit.get("operation") == _RESTORE and restored is not None:
                version = min(int(restored), version - 1)
                continue
            version -= 1
            if commit.get("operation") not in _MAINTENANCE:
                yield commit

    def _commit_info(self, version: int) -> dict[str, Any] | None:
        """The information of a commit, which may be empty; None if the log has lost the commit."""
        name = f"_delta_log/{version:020}.json"
        try:
            content = read_object(object_client(self._target.location), self._target.location, name).content
        except (FileNotFoundError, NotFoundError):
            return None
        except (BaseError, OSError) as error:
            raise storage_error(error, self._target.location) from error
        actions = map(json.loads, filter(None, content.splitlines()))
        info: dict[str, Any] | None = next((action["commitInfo"] for action in actions if "commitInfo" in action), None)
        return info or {"operation": "a commit without information"}

    def require_fit(self, schema: pa.Schema) -> None:
        wanted = _as_delta(schema)
        if self._table is not None:
            require_same_columns(self._target, column_types(wanted), column_types(_arrow_schema(self._table)))
            require_partition_types(self._target, self.partition_columns, schema)

    def require_writable(self) -> None:
        check_writable(self._target.location)

    def mark(self, marker: Marker) -> None:
        write_marker(self._target.location, marker)

    def replace(self, rows: pa.RecordBatchReader, epoch: PublishedEpoch) -> str:
        with self._errors():
            if self._table is not None:
                # A new schema is part of the same commit.
                is_stricter = columns_without_nulls(_as_delta(rows.schema), _arrow_schema(self._table))
                write_deltalake(
                    self._table,
                    rows,
                    mode="overwrite",
                    schema_mode="overwrite" if is_stricter else None,
                    partition_by=list(self.partition_columns) or None,
                    commit_properties=_properties(epoch),
                )
                return self._version(self._table)
            write_deltalake(
                self._uri,
                rows,
                mode="error",
                storage_options=self._options,
                commit_properties=_properties(epoch),
                configuration=self._configuration,
            )
            return self._version(DeltaTable(self._uri, storage_options=self._options))

    def change(self, change: ViewChange, epoch: PublishedEpoch) -> str:
        if self._table is None:
            raise ValueError("a table is replaced before it is changed")
        with self._errors():
            # A merge without rows makes no commit, and so could not name the epoch.
            if change.removed.num_rows or (change.key and change.rows.num_rows):
                self._merge(self._table, change, epoch)
            else:
                write_deltalake(self._table, change.rows, mode="append", commit_properties=_properties(epoch))
            return self._version(self._table)

    def maintain(self) -> None:
        if self._table is None:
            return
        with self._errors():
            if DELTA_RETENTION not in self._table.metadata().configuration:
                self._table.alter.set_table_properties(self._configuration)
            self._table.optimize.compact()
            # Delta-rs deletes expired logs by itself, with its checkpoints.
            vacuum_delta(self._table, self._target.location, self._target.keep_s)

    @property
    def _configuration(self) -> dict[str, str]:
        return {DELTA_RETENTION: delta_retention(self._target.keep_s)}

    def _merge(self, table: DeltaTable, change: ViewChange, epoch: PublishedEpoch) -> None:
        """Deletes retracted rows, updates rows with known keys, and inserts the other rows, in one commit."""
        names = change.rows.column_names
        leaving = LeavingRows(change)
        if change.key:
            gone, rows = change.removed, change.rows
            deleted = gone.num_rows
        else:
            gone, rows, deleted = self._whole_rows(table, change, leaving)
        # A retracted row has only its key: the other columns are null, also columns without nulls in the view.
        schema = with_nulls(change.rows.schema)
        source = pa.concat_tables([_marked(_padded(gone, schema), True), _marked(exact_rows(rows, schema), False)])
        same = " AND ".join(f"({condition})" for condition in _conditions(leaving.columns, schema, bool(change.key)))
        counts = {_WRITTEN: str(rows.num_rows), _DELETED: str(deleted)}
        merger = table.merge(
            source,
            same if change.key else f"s.{_LEAVES} AND {same}",
            source_alias="s",
            target_alias="t",
            commit_properties=_properties(epoch, counts),
        )
        values = {_quoted(name): f"s.{_quoted(name)}" for name in names}
        merger = merger.when_matched_delete(f"s.{_LEAVES}")
        if change.key:
            merger = merger.when_matched_update(values)
        done = merger.when_not_matched_insert(values, f"NOT s.{_LEAVES}").execute()
        if _is_inexact({**counts, "operationMetrics": done}):
            raise InexactChangeError(
                f"{self._target}: a merge wrote {done[_INSERTS] + done[_UPDATES]:,} rows for {rows.num_rows:,}, and "
                f"removed {done[_DELETES]:,} for {deleted:,}: all rows are written again"
            )

    def _whole_rows(
        self, table: DeltaTable, change: ViewChange, leaving: LeavingRows
    ) -> tuple[pa.Table, pa.Table, int]:
        """The rows to delete, each once, the rows to insert, and the number of rows that the table loses.

        A condition deletes every row that equals a removed row.  Surplus equal rows are written again.
        """
        batches = table.to_pyarrow_dataset().to_batches(columns=leaving.columns)
        equal = [leaving.equal(pa.Table.from_batches([batch])) for batch in batches if batch.num_rows]
        copies = pa.concat_tables([with_nulls(change.removed.schema).empty_table(), *equal])
        stays = leaving.staying(copies)
        leaving.require_found(self._target)
        first = {text: at for at, text in enumerate(row_texts(change.removed))}
        gone = change.removed.take(pa.array(first.values(), pa.int64()))
        rows = pa.concat_tables([copies.filter(stays), exact_rows(change.rows, copies.schema)])
        return gone, rows, copies.num_rows

    def _version(self, table: DeltaTable) -> str:
        return f"version {table.version()}"

    def _is_overtaken(self) -> bool:
        """True if another process has committed since the table was opened.  Delta-rs has one error for all reasons."""
        now = DeltaTable(self._uri, storage_options=self._options)
        return self._table is None or now.version() > self._opened_version

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except CommitFailedError as error:
            if self._is_overtaken():
                raise refused_commit(self._target) from None
            raise publish_error(error, self._target, self._target.location) from error
        except (DeltaError, OSError, ValueError) as error:  # of Arrow, too
            raise publish_error(error, self._target, self._target.location) from error


def _as_delta(schema: pa.Schema) -> pa.Schema:
    return stored_schema(schema, "Delta", lambda column: pa.schema(Schema.from_arrow(column).to_arrow()))


def _arrow_schema(table: DeltaTable) -> pa.Schema:
    return pa.schema(table.schema().to_arrow())


def _is_inexact(commit: Mapping[str, Any]) -> bool:
    """True for the information of a merge that wrote or deleted other numbers of rows than its change has."""
    metrics = commit.get("operationMetrics") or {}
    if _WRITTEN not in commit or not {_INSERTS, _UPDATES, _DELETES}.issubset(metrics):
        return False
    inserts, updates, deletes = (int(metrics[name]) for name in (_INSERTS, _UPDATES, _DELETES))
    return inserts + updates != int(commit[_WRITTEN]) or deletes != int(commit[_DELETED])


def _properties(epoch: PublishedEpoch, counts: Mapping[str, str] = {}) -> CommitProperties:
    """No repetition: a commit counts only on the version that was read."""
    return CommitProperties(
        custom_metadata={**epoch.properties, **counts},
        max_commit_retries=0,
        app_transactions=[Transaction(epoch.application, epoch.epoch)],
    )


def _marked(rows: pa.Table, leaves: bool) -> pa.Table:
    return rows.append_column(_LEAVES, pa.array([leaves] * rows.num_rows, pa.bool_()))


def _padded(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with every column of a schema; missing columns are null."""
    for field in schema:
        if field.name not in rows.column_names:
            rows = rows.append_column(field.name, pa.nulls(rows.num_rows, field.type))
    return exact_rows(rows, schema)


def _conditions(columns: list[str], schema: pa.Schema, is_key: bool) -> Iterator[str]:
    """The conditions of a merge: columns of a key are equal in SQL, and columns of a whole row identical.

    A join of delta-rs finds -0.0 and 0.0 equal, unless they are in a nested value; their texts differ.
    """
    for name in columns:
        ours, theirs = f"s.{_quoted(name)}", f"t.{_quoted(name)}"
        yield f"{theirs} IS NOT DISTINCT FROM {ours}"
        if not is_key and pa.types.is_floating(schema.field(name).type):
            yield f"CAST({theirs} AS VARCHAR) IS NOT DISTINCT FROM CAST({ours} AS VARCHAR)"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"

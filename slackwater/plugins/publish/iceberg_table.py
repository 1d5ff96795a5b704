"""Iceberg table of a publication, by PyIceberg: copy-on-write, one snapshot for each publication.

The summary of the snapshot names root, view and epoch.  PyIceberg writes no delete files: the data files that have rows
of a change are written again without them.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

import pyarrow as pa
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchNamespaceError,
    NoSuchTableError,
    ResolveError,
    RESTError,
    TableAlreadyExistsError,
    ValidationException,
)
from pyiceberg.io.pyarrow import _pyarrow_to_schema_without_ids
from pyiceberg.manifest import DataFile, ManifestContent
from pyiceberg.schema import index_by_name
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.snapshots import Operation, Snapshot
from sqlalchemy.exc import SQLAlchemyError

from slackwater.places.iceberg_location import iceberg_location
from slackwater.plugins.publish.iceberg_catalog import iceberg_catalog
from slackwater.plugins.publish.iceberg_files import read_file, written_files
from slackwater.plugins.publish.leaving_rows import LeavingRows
from slackwater.plugins.publish.publication import PublishedEpoch
from slackwater.plugins.publish.published_table import (
    FILE_BYTES,
    TableHead,
    check_writable,
    column_types,
    columns_without_nulls,
    publish_error,
    refused_commit,
    require_same_columns,
    stored_schema,
)
from slackwater.plugins.publish.targets import Iceberg
from slackwater.reading.changes.view_changes import ViewChange
from state.clock import Clock
from state.errors import StorageUnavailableError
from state.location import Location
from state.places.marker import MARKER, Marker
from state.removal.tables import (
    ICEBERG_METADATA_DELETION,
    expire_snapshots,
    keep_manifests_of_refused_commits,
    keep_metadata_of_others,
    probe_iceberg,
)

_TOTAL = "total-records"
_RETRIES = "commit.retry.num-retries"
_PATHS = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")
_OF_THE_LIBRARY = (
    RESTError,
    SQLAlchemyError,
    OSError,
    EOFError,  # of a manifest that was read in part, as is zlib.error
    zlib.error,
    ValueError,  # also of Arrow
    NotImplementedError,
    NoSuchTableError,
    NoSuchNamespaceError,
    ResolveError,
)
_OF_NEW_TABLES = {
    _RETRIES: "0",
    ICEBERG_METADATA_DELETION: "true",
    "write.metadata.previous-versions-max": "100",
}


class PublishedIcebergTable:
    """See `PublishedTable`.

    Args:
        clock: gives the age of snapshots.

    Raises:
        SettingsError: there is no catalog, or its properties are not valid.
    """

    def __init__(self, target: Iceberg, clock: Clock) -> None:
        self._target, self._clock = target, clock
        self._location = target.location
        self._marker: Marker | None = None
        with self._errors():
            self._catalog = iceberg_catalog(target)
            try:
                self._table: Table | None = self._catalog.load_table(target.identifier)
            except NoSuchTableError:
                self._table = None
        self._opened = None if self._table is None else self._table.metadata_location

    @property
    def locations(self) -> tuple[Location, ...]:
        if self._table is None:
            return () if self._location is None else (self._location,)
        # A catalog can have a table of this name elsewhere, and a table can have its files elsewhere.
        table = self._table.location()
        further = [path for name in _PATHS if (path := self._table.properties.get(name)) and not path.startswith(table)]
        found = (iceberg_location(uri, self._catalog.properties) for uri in (table, *further))
        return tuple(location for location in found if location is not None)

    def head(self) -> TableHead | None:
        snapshot = None if self._table is None else self._table.current_snapshot()
        if self._table is None or snapshot is None:
            return None
        version = _version(snapshot)
        while _operation(snapshot) == Operation.REPLACE and snapshot.parent_snapshot_id is not None:
            parent = self._table.snapshot_by_id(snapshot.parent_snapshot_id)
            if parent is None:
                break
            snapshot = parent
        summary = {} if snapshot.summary is None else snapshot.summary.additional_properties
        words = f"{_operation(snapshot) or 'a change'} in {_version(snapshot)}"
        if _has_other_columns(self._table, snapshot):
            # A change of columns makes no snapshot.  A column that was dropped and added again has nulls in all rows.
            return TableHead(version, None, f"a change of columns after {_version(snapshot)}")
        is_lost = _operation(snapshot) == Operation.REPLACE
        return TableHead(version, PublishedEpoch.of(summary), words, self._kept_epoch if is_lost else (lambda _: None))

    def _kept_epoch(self, wanted: PublishedEpoch) -> int | None:
        """The epoch in the properties of the table, which stay when the snapshots before a compaction expire."""
        kept = None if self._table is None else PublishedEpoch.of(self._table.properties)
        return kept.epoch if kept is not None and wanted.may_follow(kept) else None

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return ()  # a data file has all columns

    def require_fit(self, schema: pa.Schema) -> None:
        wanted = _as_iceberg(schema)
        if self._table is not None:
            found = self._table.schema().as_arrow()
            require_same_columns(self._target, column_types(wanted), column_types(found))

    def require_writable(self) -> None:
        if self._table is None:
            # A catalog chooses place and access of a table when it makes it.
            if self._location is not None and self._location.is_local:
                check_writable(self._location)
            return
        with self._errors():
            probe_iceberg(self._table.io, f"{self._table.location()}/metadata")

    def mark(self, marker: Marker) -> None:
        self._marker = marker
        if self._table is not None:
            with self._errors():
                self._mark(self._table)

    def _mark(self, table: Table) -> None:
        """Writes the marker by the table's own access, which can differ from the access in the environment."""
        if self._marker is None:
            return
        output = table.io.new_output(f"{table.location()}/{MARKER}")
        with suppress(FileExistsError):
            if not output.exists():
                with output.create() as stream:
                    stream.write(self._marker.to_json())

    def replace(self, rows: pa.RecordBatchReader, epoch: PublishedEpoch) -> str:
        with self._errors():
            table = self._written_once(self._table or self._created(rows.schema))
            gone = [task.file for task in _planned(table)]
            return self._commit(table, epoch, rows.schema, _tables(rows), gone)

    def change(self, change: ViewChange, epoch: PublishedEpoch) -> str:
        if self._table is None:
            raise ValueError("a table is replaced before it is changed")
        with self._errors():
            table = self._written_once(self._table)
            leaving = LeavingRows(change)
            touched = list(_touched(table, leaving)) if leaving else []
            leaving.require_found(self._target)
            kept = (_read(table, task, change.rows.column_names).filter(stays) for task, stays in touched)
            gone = [task.file for task, _ in touched]
            return self._commit(table, epoch, change.rows.schema, itertools.chain(kept, [change.rows]), gone)

    def maintain(self) -> None:
        if self._table is None:
            return
        with self._errors():
            until = self._clock.now() - timedelta(seconds=self._target.keep_s)
            table = self._written_once(self._table)
            expire_snapshots(table, until)

    def _created(self, schema: pa.Schema) -> Table:
        self._catalog.create_namespace_if_not_exists(self._target.identifier[:-1])
        table = self._catalog.create_table(
            self._target.identifier,
            schema,
            location=None if self._location is None else self._location.url,
            properties=_OF_NEW_TABLES,
        )
        self._mark(table)
        return table

    def _written_once(self, table: Table) -> Table:
        """The table with the property by which a commit counts only on the snapshot that was read."""
        if table.properties.get(_RETRIES) != "0":
            with table.transaction() as transaction:
                transaction.set_properties({_RETRIES: "0"})
        keep_metadata_of_others(table)
        self._opened = table.metadata_location
        return table

    def _commit(
        self,
        table: Table,
        epoch: PublishedEpoch,
        schema: pa.Schema,
        rows: Iterable[pa.Table],
        gone: Iterable[DataFile],
    ) -> str:
        numbers = itertools.count()  # of the files: their names differ by it
        stricter = columns_without_nulls(_as_iceberg(schema), table.schema().as_arrow())
        with table.transaction() as transaction:
            if stricter:
                with transaction.update_schema() as columns:
                    for path in stricter:
                        columns.make_column_optional(path)
            transaction.set_properties(epoch.properties)
            update = transaction.update_snapshot(snapshot_properties=epoch.properties)
            metadata = transaction.table_metadata  # a copy, which takes longer than a small file
            gone = list(gone)
            with update.overwrite() if gone else update.fast_append() as snapshot:
                keep_manifests_of_refused_commits(snapshot)
                for part in rows:
                    if not part.num_rows:
                        continue
                    for file in written_files(metadata, part, table.io, snapshot.commit_uuid, numbers):
                        snapshot.append_data_file(file)
                for file in gone:
                    snapshot.delete_data_file(file)
            staged = transaction.table_metadata.current_snapshot()
            if staged is not None and _has_total(table.current_snapshot()):
                manifests = [each for each in staged.manifests(table.io) if each.content == ManifestContent.DATA]
                counts = [(each.added_rows_count or 0) + (each.existing_rows_count or 0) for each in manifests]
                _require_all_rows(table, staged, sum(counts))
        self._table = table
        current = table.current_snapshot()
        return "" if current is None else _version(current)

    def _is_overtaken(self) -> bool:
        """True if another process has committed since the table was opened."""
        if self._opened is None:
            return True
        return self._catalog.load_table(self._target.identifier).metadata_location != self._opened

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (CommitFailedException, ValidationException, TableAlreadyExistsError) as error:
            if self._is_overtaken():
                raise refused_commit(self._target) from None
            raise publish_error(error, self._target, self._location) from error
        except _OF_THE_LIBRARY as error:
            raise publish_error(error, self._target, self._location) from error


def _as_iceberg(schema: pa.Schema) -> pa.Schema:
    return stored_schema(schema, "Iceberg", lambda column: _pyarrow_to_schema_without_ids(column).as_arrow())


def _touched(table: Table, leaving: LeavingRows) -> Iterator[tuple[FileScanTask, pa.Array]]:
    """The data files with retracted rows, each with the mask of the rows that stay."""
    for task in _planned(table):
        stays = leaving.staying(_read(table, task, leaving.columns))
        if stays.false_count:
            yield task, stays


def _planned(table: Table) -> list[FileScanTask]:
    tasks = list(table.scan().plan_files())
    snapshot = table.current_snapshot()
    if snapshot is not None and _has_total(snapshot):
        _require_all_rows(table, snapshot, sum(task.file.record_count for task in tasks))
    return tasks


def _has_total(snapshot: Snapshot | None) -> bool:
    """True if the summary of a snapshot has the number of rows; the summary of the first snapshot will have it."""
    return snapshot is None or (snapshot.summary is not None and _TOTAL in snapshot.summary.additional_properties)


def _require_all_rows(table: Table, snapshot: Snapshot, rows: int) -> None:
    """Compares the rows of the manifests of a snapshot with its summary.

    PyIceberg takes the end of a manifest that was read in part for the end of the manifest: the next commit would
    lose the files after it.

    Raises:
        StorageUnavailableError: they differ.
    """
    total = 0 if snapshot.summary is None else int(snapshot.summary.additional_properties.get(_TOTAL, 0))
    if rows != total:
        raise StorageUnavailableError(
            f"{table.location()}: the manifests of {_version(snapshot)} have {rows:,} rows, and its summary says "
            f"{total:,}: part of the metadata was not read, or is damaged; nothing was published; if this remains, "
            "publish to a new table"
        )


def _read(table: Table, task: FileScanTask, columns: list[str]) -> pa.Table:
    return read_file(table.metadata, table.io, task, columns)


def _tables(rows: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """The rows in tables of the size of a file."""
    batches: list[pa.RecordBatch] = []
    for batch in rows:
        batches.append(batch)
        if sum(each.nbytes for each in batches) >= FILE_BYTES:
            yield pa.Table.from_batches(batches)
            batches = []
    if batches:
        yield pa.Table.from_batches(batches)


def _operation(snapshot: Snapshot) -> Operation | None:
    return None if snapshot.summary is None else snapshot.summary.operation


def _has_other_columns(table: Table, snapshot: Snapshot) -> bool:
    """True if a name refers to a different column now than in a snapshot."""
    written = table.schemas().get(-1 if snapshot.schema_id is None else snapshot.schema_id)
    if written is None:
        return False
    now = index_by_name(table.schema())
    return any(now.get(name, number) != number for name, number in index_by_name(written).items())


def _version(snapshot: Snapshot) -> str:
    return f"snapshot {snapshot.snapshot_id}"

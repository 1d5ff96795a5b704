"""Snapshot of one committed epoch: ledger, queues and all views at the same moment."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from slackwater.reading.file_history import FileHistory, file_history
from slackwater.reading.file_relation import FileRelation
from slackwater.reading.notebook import as_html
from slackwater.reading.snapshot_sql import DEFAULT_MEMORY_BYTES, DEFAULT_TIMEOUT_S, SnapshotQuery, run_query
from slackwater.reading.tables.epoch_table import epoch_table
from slackwater.reading.tables.file_table import FileStatus, file_table, require_source
from slackwater.reading.tables.handled_table import handled_table
from slackwater.reading.tables.quarantine_table import quarantine_table
from slackwater.reading.tables.source_table import source_table
from slackwater.reading.view import View
from slackwater.reading.view_reader import ViewReader
from state.errors import ViewNotFoundError
from state.location import Location
from state.store.store import StateStore
from state.tables.catalog import Catalog
from state.tables.records import EpochRecord
from state.tables.stored_rows import base_name, declared_name, is_view, stored_rows_name

_NO_VIEWS = (
    "none yet: a run shows its views, empty at first, when Spark has started and the schema of their sources is known"
)


class Snapshot:
    """The root as of one epoch; later commits do not change it.

    Args:
        root: the root of the pipeline.
        store: a handle on its store.
        record: the record of the epoch.
    """

    def __init__(self, root: Location, store: StateStore, record: EpochRecord) -> None:
        self._root = root
        self._store = store
        self._record = record
        self._catalog: Catalog | None = None

    def __repr__(self) -> str:
        return f"Snapshot({str(self._root)!r}, epoch={self.epoch})"

    def _repr_html_(self) -> str:
        views = [self.view(name) for name in self.views]
        rows = pa.table({"view": self.views, "rows": [each.count_rows() for each in views]})
        return as_html(repr(self), rows, f"committed at {self.committed_at:%Y-%m-%d %H:%M:%S} UTC")

    @property
    def epoch(self) -> int:
        return self._record.epoch

    @property
    def committed_at(self) -> datetime:
        """The time of the commit, in UTC."""
        return self._record.committed_at

    @property
    def views(self) -> tuple[str, ...]:
        """The names of the views at this epoch."""
        return tuple(filter(is_view, self._record.views))

    def view(self, name: str) -> View:
        """A view as of this epoch.

        Raises:
            ViewNotFoundError: the epoch has no such view; the message lists its views.
        """
        version = self.reader(name).version
        definition = self._definitions().views.get(name)
        if definition is None:
            return View(self._root, version, (), self.epoch)
        epoch = self.epoch if definition.stopped_epoch is None else definition.stopped_epoch
        return View(self._root, version, definition.key, epoch)

    def failure_of(self, name: str) -> str | None:
        """The error of a view that has failed, and lacks rows of this epoch; None for a view that has not."""
        definition = self._definitions().views.get(name)
        return None if definition is None else definition.error

    def is_building(self, name: str) -> bool:
        """True if a view lacks earlier rows: its backfill, or the backfill of its new definition, is not complete."""
        recorded = {*self._definitions().views, *self._record.views}
        return any(each != base_name(each) and declared_name(each) == name for each in recorded)

    def reader(self, name: str) -> ViewReader:
        """The reader of the dataset of a view.  Errors as `view`."""
        version = self._record.views.get(name) if is_view(name) else None
        if version is None:
            reason = self.failure_of(name)
            if reason is not None or self.is_building(name):
                why = "its backfill is not complete" if reason is None else f"it has failed: {reason}"
                raise ViewNotFoundError(f"view {name!r} has no rows at epoch {self.epoch} of {self._root}: {why}")
            raise ViewNotFoundError(
                f"there is no view {name!r} at epoch {self.epoch} of {self._root}; the views are: "
                f"{', '.join(self.views) or _NO_VIEWS}"
            )
        return ViewReader(self._root, version)

    def rows(self, source: str) -> View:
        """The rows of a materialized source that were ingested by this epoch, in any order.

        Raises:
            NotFoundError: the epoch has no such source.
            ViewNotFoundError: the source is not materialized, or no row was ingested yet.
        """
        require_source(source, self._definitions())
        version = self._record.views.get(stored_rows_name(source))
        if version is None:
            raise ViewNotFoundError(
                f"there are no rows of {source} at epoch {self.epoch} of {self._root}: none was ingested by then, or "
                "the source is not declared with materialize=True"
            )
        return View(self._root, version, (), self.epoch)

    def sql(
        self,
        query: str,
        *,
        timeout_s: float | None = DEFAULT_TIMEOUT_S,
        max_memory_bytes: int | None = DEFAULT_MEMORY_BYTES,
    ) -> pa.Table:
        """The result of a SELECT over the views of this epoch, computed by DuckDB in a worker process.

        Every view is a relation by its name, with the columns of its result.  The ledger, as `files()` returns it, is
        the relation `files`, unless a view has this name; it is read slice by slice.  Only the columns that the query
        names are read, and of columns of a view that it compares with constants only the rows that pass.  Names ignore
        case.  The query reads no other file and no network, and writes nothing.

        The worker starts at the first call, which takes a second or two.  It answers the next calls of this process,
        and ends after a minute without one.

        Args:
            query: one SELECT (or WITH, FROM, VALUES, DESCRIBE) in DuckDB's SQL; times are in UTC.
            timeout_s: seconds that DuckDB computes at most; None for no limit.
            max_memory_bytes: largest memory of DuckDB, as it counts it, and largest result; None for no limit.  The
                default is 4 GiB, or half of the machine's memory if that is less.  Nothing is spilled to a disk.
                A query that exceeds one of both limits by half is ended with its worker.

        Raises:
            UsageError: DuckDB is not installed or refuses the query, the query is not one SELECT, or exceeds a limit.
            EpochExpiredError: the epoch is no longer retained.
            StorageError: the root cannot be read.
            SlackwaterError: the worker has ended by itself.

        Examples:
            >>> snapshot.sql("SELECT carrier, n FROM by_carrier ORDER BY n DESC LIMIT 10")  # doctest: +SKIP
        """
        return run_query(SnapshotQuery(query, self._root, self._record, max_memory_bytes), timeout_s)

    def files(
        self,
        source: str | None = None,
        status: FileStatus | None = None,
        *,
        where: pc.Expression | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        """The ledger and the queues as of this epoch; arguments and columns as `Ledger.files`.

        Raises:
            NotFoundError: the epoch has no such source.
            UsageError: the status, the condition or the limit is not valid.
        """
        version = self._record.state_version
        return file_table(
            self._store, self._definitions(), version, source=source, status=status, where=where, limit=limit
        )

    def file_relation(self) -> FileRelation:
        """The same as a relation of DuckDB, which is read slice by slice."""
        return FileRelation(self._store, self._definitions(), self._record.state_version)

    def quarantine(self, source: str | None = None) -> pa.Table:
        """The bad records as of this epoch; columns as `Ledger.quarantine`.

        Raises:
            NotFoundError: the epoch has no such source.
        """
        return quarantine_table(self._store, self._definitions(), self._record.state_version, source)

    def handled_files(self, source: str | None = None) -> pa.Table:
        """The actions on files until the commit of this epoch; columns as `Ledger.handled_files`.

        Raises:
            NotFoundError: the epoch has no such source.
        """
        require_source(source, self._definitions())
        return handled_table(self._root, self._definitions(), source, self.committed_at)

    def epochs(self) -> pa.Table:
        """The epochs up to this one that it retained; columns as `Store.epochs`."""
        return epoch_table(self._as_stored(), before=None, limit=None)

    def sources(self) -> pa.Table:
        """One row per source as this epoch recorded it; columns as `Ledger.sources`.

        Progress that a run reports between two epochs is not in it.
        """
        return source_table(self._as_stored(), self._definitions(), None, self.committed_at)

    def why(self, path: str) -> FileHistory:
        """The history of one object up to this epoch, see `Ledger.why`."""
        return file_history(path, self._root, self._as_stored(), self._definitions(), None, self.committed_at)

    def _as_stored(self) -> StateStore:
        """The store at the version of this epoch."""
        version = self._record.state_version
        return self._store if version == self._store.version else self._store.reopen(version)

    def _definitions(self) -> Catalog:
        if self._catalog is None:
            self._catalog = Catalog.of(self._store.scan("catalog", state_version=self._record.state_version))
        return self._catalog

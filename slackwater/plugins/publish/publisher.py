"""Publisher: brings one view of a root into one table, from the epoch that the table names to the wanted one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa
import structlog
from obstore.exceptions import BaseError

from actors.objects.object_store import ObjectStore
from slackwater import __version__
from slackwater.places.overlap_table import require_apart
from slackwater.places.pipeline_places import pipeline_places
from slackwater.plugins.publish.declaration import DeclaredPublication
from slackwater.plugins.publish.partitions import require_partition_values
from slackwater.plugins.publish.publication import Publication, PublishedEpoch, failed_view, unfinished_view
from slackwater.plugins.publish.published_table import InexactChangeError, PublishedTable, TableHead
from slackwater.plugins.publish.targets import Delta, Iceberg, ParquetFiles, Target, missing_library
from slackwater.reading.changes.view_changes import ViewChange
from slackwater.reading.changes.view_difference import difference
from slackwater.reading.recorded_source import recorded_definition
from slackwater.reading.snapshot import Snapshot
from slackwater.reading.store import Store
from slackwater.reading.view_reader import ViewReader
from state.capabilities.probe import ROOT_NEEDS, TABLE_NEEDS
from state.capabilities.store_record import require_table_store
from state.clock import Clock
from state.errors import (
    AccessDeniedError,
    CommitRefusedError,
    EpochNotFoundError,
    StorageUnavailableError,
    UsageError,
    ViewNotFoundError,
)
from state.location import Location
from state.objects.storage_error import storage_error
from state.ownership.owner import new_run_id
from state.places.marker import MARKER, Marker, read_marker
from state.tables.records import CatalogSource

_log = structlog.get_logger(actor="run")


def publish(
    store: Store, view: str, target: Target, *, epoch: int | str | None = None, adopt: bool = False
) -> Publication:
    """Brings a view into a table of another format, as one commit that names root, view and epoch.

    The first call writes all rows.  Each later call reads the epoch of the table, and writes the differences since
    then. It writes all rows again if that epoch has expired or the view was rebuilt.  A process that dies leaves the
    table at the epoch that it names, and the next call continues from there.  The root is only read.

    The rows that may differ are in memory at once; the other rows of the view are not.

    Args:
        store: the root.
        view: the name of the view.
        target: the table, `Delta(...)`, `Iceberg(...)` or `ParquetFiles(...)`; it is created if it does not exist.
        epoch: an epoch, as for `Store.snapshot`; None for the latest.
        adopt: whether a table that holds this view of another root, or a later epoch of this root, becomes a table
            of this root: one commit replaces all of its rows.  For a root that was moved or restored, or that
            replaces a lost one.

    Raises:
        ViewNotFoundError, EpochNotFoundError: the epoch has no such view, or there is no such epoch.
        SchemaError: the format does not have a type of the view, or the table has other columns.
        CommitRefusedError: another program has written to the table, and nothing was published; or the table got a
            commit meanwhile, which can be this publication's own: publish again to find out.
        SettingsError: the table overlaps the root or a source.
        UsageError: the table has a later epoch, another view, or belongs to another root; or the library of the
            format is not installed.
        StorageError: the root or the table cannot be read or written.

    Examples:
        >>> publish(store, "by_carrier", Delta("s3://lake/published/by_carrier"))  # doctest: +SKIP
    """
    handle = store.handle()
    require_place(view, target, handle.root, handle.cataloged()[1].sources.values())
    return Publisher(store, view, target, handle.clock, adopts=adopt).publish(epoch)


@dataclass(frozen=True)
class Publisher:
    """Publishes a view to a table.

    Args:
        store: the root.
        view: the name of the view.
        target: the table.
        clock: the clock by which files expire.
        is_marked: whether this process has written the marker of the table.
        adopts: whether a table of this view becomes a table of this root, although another root has published it, or
            this root had a later epoch before it was restored.
    """

    store: Store
    view: str
    target: Target
    clock: Clock
    is_marked: bool = False
    adopts: bool = False

    def publish(self, epoch: int | str | None = None) -> Publication:
        snapshot = self.store.published_snapshot() if epoch is None else self.store.snapshot(epoch)
        failure = snapshot.failure_of(self.view)
        published = self._publish(snapshot)
        if failure is not None:
            return replace(published, incomplete=failed_view(self.view, failure))
        return replace(published, incomplete=unfinished_view(self.view) if snapshot.is_building(self.view) else "")

    def _publish(self, snapshot: Snapshot) -> Publication:
        reader = snapshot.reader(self.view)
        wanted = PublishedEpoch(self.store.root, self.view, snapshot.epoch, self.store.identity())
        table = opened_table(self.target, self.clock)
        head = table.head()
        if head is not None and self.adopts and _is_adopted(head, wanted):
            since = None
        else:
            since = None if head is None else epoch_of(self.target, head, wanted)
        table.require_fit(reader.schema)
        if head is None:
            require_free(self.target, wanted)
            require_target_store(self.target, self.clock)
        if not self.is_marked:
            table.mark(self._marker())
        if head is not None and since == wanted.epoch:
            return Publication(self.view, str(self.target), since, since, False, 0, 0, head.version)
        change = None if since is None else self._change(since, snapshot)
        if change is None:
            return self._whole(table, reader, since, wanted)
        self._require_partition_values(table, change.rows)
        try:
            version = table.change(change, wanted)
        except InexactChangeError as error:
            _log.warning("a change of a published table was not exact", view=self.view, error=str(error))
            return self._whole(opened_table(self.target, self.clock), reader, since, wanted)
        rows, removed = change.rows.num_rows, change.removed.num_rows
        return Publication(self.view, str(self.target), wanted.epoch, since, False, rows, removed, version)

    def _marker(self) -> Marker:
        owner = self.store.owner()
        pipeline = "" if owner is None else owner.pipeline
        return Marker("table", pipeline, self.store.root, self.view, __version__, self.store.identity())

    def _change(self, since: int, snapshot: Snapshot) -> ViewChange | None:
        """The change of the view since an epoch; None if it is not known, or is that from one dataset to another."""
        after, key = snapshot.reader(self.view), snapshot.view(self.view).key
        try:
            before = self.store.snapshot(since).reader(self.view)
            if before.location != after.location:
                return None
            rows, removed = difference(before, after, key)
        except (EpochNotFoundError, ViewNotFoundError):
            return None
        return ViewChange(self.view, snapshot.epoch, key, rows, removed)

    def _require_partition_values(self, table: PublishedTable, rows: pa.Table) -> None:
        is_delta = isinstance(self.target, Delta)
        require_partition_values(self.target, rows, table.partition_columns, is_delta=is_delta)

    def _whole(
        self, table: PublishedTable, reader: ViewReader, since: int | None, wanted: PublishedEpoch
    ) -> Publication:
        with reader.errors():
            schema, names = reader.schema, [*table.partition_columns]
            for batch in reader.dataset.scanner(columns=names).to_batches() if names else ():
                self._require_partition_values(table, pa.Table.from_batches([batch]))
            rows = int(reader.dataset.count_rows())
            batches = reader.dataset.scanner(columns=schema.names).to_batches()
        version = table.replace(pa.RecordBatchReader.from_batches(schema, batches), wanted)
        return Publication(self.view, str(self.target), wanted.epoch, since, True, rows, 0, version)


def epoch_of(target: Target, head: TableHead, wanted: PublishedEpoch) -> int | None:
    """The epoch of the table; None if its first publication is not complete.

    Args:
        target: the table.
        head: its last commit.
        wanted: the epoch to publish.

    Raises:
        CommitRefusedError: the last commit is not ours.
        UsageError: it is of another view, of another root, or of a later epoch.
    """
    published = head.published
    kept = None if published is not None else head.kept_epoch(wanted)
    if kept is not None:
        # The commits after it are not known any more: no change can be written, but all rows can.
        published = replace(wanted, epoch=kept if kept > wanted.epoch else 0)
    if published is None:
        raise CommitRefusedError(
            f"{target} was written by another program ({head.commit}): nothing was published; take its commit "
            "back, or publish to a new table"
        )
    if not wanted.may_follow(published):
        raise UsageError(_of_another_root(target, published, wanted))
    if published.epoch > wanted.epoch:
        raise UsageError(
            f"{target} is at epoch {published.epoch}, later than {wanted.epoch}, and never goes back: publish "
            f"this epoch to another table; if the root was restored from a backup: {_adoption(target, wanted)}"
        )
    return published.epoch or None


def _is_adopted(head: TableHead, wanted: PublishedEpoch) -> bool:
    """True if the table holds the same view of another root, or a later epoch of a root that was restored.

    Raises:
        UsageError: this root has no identity, by which it could recognise the table afterwards.
    """
    published = head.published
    if published is None or published.view != wanted.view:
        return False
    if wanted.may_follow(published) and published.epoch <= wanted.epoch:
        return False
    if not wanted.identity:
        raise UsageError(f"{wanted.root} has no identity yet, so it cannot adopt a table: start its pipeline once")
    return True


def _of_another_root(target: Target, published: PublishedEpoch, wanted: PublishedEpoch) -> str:
    refusal = f"{target} holds view {published.view!r} of {published.words}"
    step = f"publish view {wanted.view!r} of {wanted.words} to a table of its own"
    if published.view != wanted.view:
        return f"{refusal}: {step}"
    command = _adoption(target, wanted)
    if wanted.identity and published.identity == wanted.identity:
        return f"{refusal}, and this root is a copy of it, or was moved: {step}; if it was moved: {command}"
    return f"{refusal}: {step}; if this root replaces that root: {command}"


def _adoption(target: Target, wanted: PublishedEpoch) -> str:
    return f"slackwater publish {wanted.root} {wanted.view} --to {target} --adopt"


def require_free(target: Target, wanted: PublishedEpoch) -> None:
    """Checks that a new table is not in a root or another table.

    Raises:
        UsageError: it is.
    """
    location = target.location
    if location is None:
        return
    try:
        marker, above = read_marker(location), ObjectStore(location).enclosing_table()
    except (AccessDeniedError, StorageUnavailableError):
        if isinstance(target, Iceberg) and not location.is_local and not location.storage_options:
            return  # its catalog can give out the access, with the table alone
        raise
    is_own = (
        marker is not None
        and marker.kind == "table"
        and wanted.may_follow(PublishedEpoch(marker.root, marker.view, 0, marker.identity))
    )
    if marker is not None and not is_own:
        raise UsageError(
            f"{target} is {marker.words} ({location}/{MARKER}), and this is view {wanted.view!r} of {wanted.words}: "
            "publish to a directory of its own, or delete the marker if the directory has no table any more"
        )
    if above is not None:
        raise UsageError(f"{target} is in {above}: publish to a directory outside")


def require_target_store(target: Target, clock: Clock) -> None:
    """Probes the store of a table that does not exist yet.  A catalog of Iceberg commits by itself.

    Args:
        target: the table.
        clock: gives the probe a name of its own.

    Raises:
        StoreCapabilityError: the store lacks a capability; nothing was written.
        StorageError: the place cannot be read or written.
    """
    if not isinstance(target, Delta | ParquetFiles):
        return
    needs = TABLE_NEEDS if isinstance(target, Delta) else ROOT_NEEDS
    try:
        require_table_store(target.location, new_run_id(clock), needs)
    except (BaseError, OSError) as error:
        raise storage_error(error, target.location) from error


def require_place(view: str, target: Target, root: Location, sources: Iterable[CatalogSource]) -> None:
    """Checks that a table does not overlap its root and the sources that the root has recorded.

    Args:
        view: the name of the view.
        target: the table.
        root: the root, whose storage options also open sources on the same kind of store.
        sources: the recorded sources.

    Raises:
        SettingsError: the table overlaps one of them.
    """
    table = DeclaredPublication(view, target).places()
    recorded = [recorded_definition(source, (), root) for source in sources]
    require_apart([*pipeline_places(root, recorded), *table], new=table)


def opened_table(target: Target, clock: Clock) -> PublishedTable:
    """The table of a target.

    Raises:
        UsageError: the library of its format is not installed.
        SettingsError: there is no catalog.
        StorageError: the place cannot be read.
    """
    try:
        if isinstance(target, Delta):
            from slackwater.plugins.publish.delta_table import PublishedDeltaTable

            return PublishedDeltaTable(target)
        if isinstance(target, ParquetFiles):
            from slackwater.plugins.publish.parquet_files import PublishedParquetFiles

            return PublishedParquetFiles(target, clock)
        from slackwater.plugins.publish.iceberg_table import PublishedIcebergTable

        return PublishedIcebergTable(target, clock)
    except ModuleNotFoundError as error:
        raise missing_library(target, error.name) from None

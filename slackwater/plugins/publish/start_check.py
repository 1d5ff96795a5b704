"""Check of the tables of a pipeline, before anything of its run starts, and the plan of a dry run."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from slackwater.extensions.table_target import PublicationPlan
from slackwater.places.declared_place import DeclaredPlace, PlaceKind
from slackwater.places.overlap_table import require_apart
from slackwater.plugins.publish.declaration import DeclaredPublication
from slackwater.plugins.publish.publication import PublishedEpoch
from slackwater.plugins.publish.published_table import PublishedTable
from slackwater.plugins.publish.publisher import epoch_of, opened_table, require_free, require_target_store
from slackwater.reading.snapshot import Snapshot
from slackwater.reading.store import Store
from state.capabilities.store_record import root_identity
from state.clock import Clock
from state.errors import EpochNotFoundError, SlackwaterError, StoreNotFoundError
from state.location import Location


def check_publications(
    root: Location,
    publications: Iterable[DeclaredPublication],
    clock: Clock,
    places: Sequence[DeclaredPlace] = (),
) -> None:
    """Checks that each table can be reached and written, and is one that the run may write to.

    The columns are compared if the root has the view.

    Args:
        root: the root of the pipeline, which may not exist yet.
        publications: those of the pipeline.
        places: the other places of the run.

    Raises:
        SettingsError: a catalog has put a table into another place of the run.
        CommitRefusedError, UsageError, SchemaError, StorageError: as `publish`.
    """
    snapshot = latest_snapshot(root, clock)
    tables = [(each, opened_table(each.target, clock)) for each in publications]
    identity = root_identity(root) if tables else ""
    written = [
        DeclaredPlace(PlaceKind.TABLE, each.view, location) for each, table in tables for location in table.locations
    ]
    require_apart([*places, *written], new=written)
    for each, table in tables:
        checked_epoch(table, each, root, snapshot, identity)
        if table.head() is None:
            require_free(each.target, PublishedEpoch(root.url, each.view, 0, identity))
            require_target_store(each.target, clock)
        table.require_writable()


def latest_snapshot(root: Location, clock: Clock) -> Snapshot | None:
    """The latest epoch of a root; None without one."""
    try:
        return Store(root, clock).snapshot()
    except (StoreNotFoundError, EpochNotFoundError):
        return None


def checked_epoch(
    table: PublishedTable,
    publication: DeclaredPublication,
    root: Location,
    snapshot: Snapshot | None,
    identity: str,
) -> int | None:
    """The epoch of a table; None without an epoch.

    Args:
        table: the table, which is only read.
        publication: the epochs that a run would publish to it.
        root: the root of the pipeline.
        snapshot: its latest epoch; None without one.
        identity: the identity of the root; empty before its first start.

    Raises:
        CommitRefusedError, UsageError, SchemaError, StorageError: as `publish`.
    """
    head, epoch = table.head(), None
    if head is not None:
        latest = sys.maxsize if snapshot is None else snapshot.epoch
        epoch = epoch_of(publication.target, head, PublishedEpoch(root.url, publication.view, latest, identity))
    if snapshot is not None and publication.view in snapshot.views:
        table.require_fit(snapshot.reader(publication.view).schema)
    return epoch


def plan_publications(
    root: Location, publications: Iterable[DeclaredPublication], clock: Clock
) -> tuple[PublicationPlan, ...]:
    """Looks at each table.  Write access is not tried.

    Args:
        root: the root of the pipeline, which may not exist yet.
        publications: those of the pipeline.
        clock: gives the time.

    Raises:
        StorageError: the root cannot be read.
    """
    declared = tuple(publications)
    snapshot = latest_snapshot(root, clock) if declared else None
    identity = root_identity(root) if declared else ""
    plans = []
    for each in declared:
        table = str(each.target)
        try:
            epoch = checked_epoch(opened_table(each.target, clock), each, root, snapshot, identity)
        except SlackwaterError as error:
            plans.append(PublicationPlan(each.view, table, refused=str(error)))
            continue
        is_latest = snapshot is not None and epoch == snapshot.epoch
        beginning = "all rows of the view" if epoch is None else f"the epochs after {epoch}"
        plans.append(PublicationPlan(each.view, table, epoch, "nothing before new files" if is_latest else beginning))
    return tuple(plans)

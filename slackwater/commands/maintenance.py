"""Work on a root without a run, as its owner for the time of the work."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TypeVar

from state.clock import Clock, SystemClock
from state.lance.lance_root import LanceRoot
from state.location import Location
from state.ownership.owner import Ownership, new_run_id
from state.store.store import StateStore
from state.tables.catalog import Catalog
from state.upkeep.housekeeping import Housekeeping
from state.upkeep.pin import pinned_epochs
from state.upkeep.retention import RetentionSettings
from state.upkeep.vacuum import Vacuumed

Result = TypeVar("Result")


def run_as_owner(
    root: str | os.PathLike[str],
    storage_options: Mapping[str, str] | None,
    action: Callable[[StateStore, LanceRoot], Result],
    *,
    takeover: bool = False,
    clock: Clock | None = None,
) -> Result:
    """Takes a root over, does one action, and releases the root.  A run that was frozen meanwhile is fenced.

    Args:
        root: the root of a pipeline.
        storage_options: as for `open`.
        action: gets the owner's handle on the store, and the root.
        takeover: take the root even from a living owner.
        clock: paces the observation of another owner.

    Raises:
        StoreNotFoundError: no pipeline has written there.
        OwnedError: a process runs on this root.
        FencedError: another process took the root over at the same moment.
        StorageError: the root cannot be read or written.
    """
    clock = clock or SystemClock()
    place = LanceRoot(Location(os.fspath(root), storage_options or {}), clock)
    pipeline = Catalog.of(place.open(read_only=True).scan("catalog")).pipeline
    run_id = new_run_id(clock)
    ownership = Ownership(
        place.location, clock, run_id=run_id, pipeline="unnamed" if pipeline is None else pipeline.name
    )
    ownership.acquire(takeover=takeover)
    try:
        ownership.update(phase="maintenance")
        store = place.open()
        ownership.confirm()
        ownership.update(term=store.take_over(run_id).term)
        return action(store, place)
    finally:
        ownership.release()


def vacuum(store: StateStore, root: LanceRoot, retention: RetentionSettings) -> Vacuumed:
    """Deletes expired epochs, and the files that only they use.

    Args:
        root: the place of the store.
        retention: selects the epochs to keep.

    Raises:
        FencedError, CommitRefusedError, CommitUnknownError: as `StateStore.commit`.
        StorageError: the root cannot be read or written.
    """

    def pinned() -> frozenset[int]:
        return pinned_epochs(root.location, root.clock)

    return Housekeeping(root, root.clock, retention, pinned).run(store)

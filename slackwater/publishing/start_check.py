"""Check of the tables of a pipeline, before anything of its run starts."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from slackwater.publishing.declaration import DeclaredPublication
from slackwater.publishing.publication import PublishedEpoch
from slackwater.publishing.publisher import epoch_of, opened_table
from slackwater.reading.store import Store
from state.clock import Clock
from state.errors import EpochNotFoundError, StoreNotFoundError
from state.location import Location


def check_publications(root: Location, publications: Iterable[DeclaredPublication], clock: Clock) -> None:
    """Checks that each table can be reached and written, and is one that the run may write to.

    The columns are compared if the root has the view.

    Args:
        root: the root of the pipeline, which may not exist yet.
        publications: those of the pipeline.
        clock: of the run.

    Raises:
        CommitRefusedError, UsageError, SchemaError, StorageError: as `Store.publish`.
    """
    try:
        snapshot = Store(root, clock).snapshot()
    except (StoreNotFoundError, EpochNotFoundError):
        snapshot = None
    for each in publications:
        table = opened_table(each.target, clock)
        head = table.head()
        if head is not None:
            latest = sys.maxsize if snapshot is None else snapshot.epoch
            epoch_of(each.target, head, PublishedEpoch(root.url, each.view, latest))
        if snapshot is not None and each.view in snapshot.views:
            table.require_fit(snapshot.reader(each.view).schema)
        table.require_writable()

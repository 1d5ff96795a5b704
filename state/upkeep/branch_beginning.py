"""The first version of the store of a branch."""

from __future__ import annotations

from dataclasses import replace

from state.store.store import StateStore
from state.tables.delta import Delta
from state.tables.record_rows import epoch_delta, expiry_delta
from state.tables.records import EpochRecord


def first_record(record: EpochRecord) -> EpochRecord:
    """The first epoch of a branch, from the record of its root.

    A view that is not complete reads an earlier epoch, which the branch does not have: there it begins again.
    """
    views = {name: view for name, view in record.views.items() if view.pinned_epoch is None}
    return replace(record, views=views)


def become_branch(store: StateStore, first: EpochRecord, definitions: Delta) -> None:
    """Makes the store of a root the store of a branch: one epoch, no tags.

    Args:
        store: a clone of the store of the root, at the version of that epoch.
        first: see `first_record`.
        definitions: rows of the catalog that replace the epoch's rows in the branch.

    Raises:
        CommitRefusedError: another process makes the same branch.
    """
    others = [each for each in store.epoch_times()["epoch"].to_pylist() if each != first.epoch]
    begun = replace(first, state_version=store.version + 1)
    store.amend(Delta.merge([expiry_delta(others), epoch_delta(begun), definitions]), tags={}, views=first.views)

"""Merge: the views of a branch become views of its root, without computing them again."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

from slackwater.branching.branch import branch_of
from slackwater.branching.merge_steps import Merged, MergeSteps
from slackwater.commands.maintenance import run_as_owner
from state.clock import SystemClock
from state.lance.branch_files import BranchFiles
from state.lance.lance_access import copy_dataset
from state.lance.lance_root import LanceRoot
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.store.store import StateStore
from state.tables.records import ViewVersion


def merge(
    root: str | os.PathLike[str],
    name: str,
    *,
    views: Collection[str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Merged:
    """Takes views of a branch into its root, in one epoch, without computing them again.

    A view that was added or changed in the branch is taken, together with the views that read it, unless the root has
    it with the same definition.  The rows of its datasets are copied, so that the branch may be dropped afterwards.
    The next run of the root must declare it as the branch does.  Root and branch must have read the same files of its
    sources.

    Args:
        root: the URL or directory of the root; no pipeline runs on it.
        name: the name of the branch.
        views: the views to take, also if only the root has changed them; None for all that the branch has changed.
        storage_options: as for `open`.

    Raises:
        NotFoundError: there is no such branch, or it has no such view.
        UsageError: a view cannot be taken; the message says why, and what to do.
        OwnedError: a pipeline runs on the root.
        FencedError, CommitRefusedError, CommitUnknownError: another process has taken the root, or the store does not
            answer; nothing, or all, is taken.
        StorageError: a root cannot be read or written.
    """
    clock = SystemClock()

    def take(store: StateStore, place: LanceRoot) -> Merged:
        branch_of(place.location, name)
        files = BranchFiles(place.location, name, clock)
        branch = LanceStateStore.open(files.location, clock, read_only=True)
        with branch.pin(branch.head.epoch):
            record = branch.epoch(branch.head.epoch)
            assert record is not None, "it is pinned"
            datasets = _Datasets(place, files.location)
            return MergeSteps(name, store, datasets, branch, record, files.first(), clock).take(views)

    return run_as_owner(root, storage_options, take, clock=clock)


class _Datasets:
    """See `MergedDatasets`.

    Args:
        root: the root.
        branch: the place of the branch.
    """

    def __init__(self, root: LanceRoot, branch: Location) -> None:
        self._root, self._branch = root, branch

    def copy(self, path: str, version: int, target: str) -> tuple[int, int]:
        return copy_dataset(self._branch.child(path), version, self._root.location.child(target))

    def tag_committed(self, view: ViewVersion) -> None:
        self._root.tag_committed(view)

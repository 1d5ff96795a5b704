"""The files of a branch: manifests that name the files of one epoch of the root above it.

    <root>/branches/<name>/views/...             clones of the datasets of the views, at the versions of the epoch
    <root>/branches/<name>/origin/state.lance    a clone of the store at the epoch, and one commit that makes it the
                                                 store of the branch: one epoch, no tags
    <root>/branches/<name>/state.lance           a clone of that commit, and the last file that is written

A clone (Lance's `shallow_clone`) has the version number of its original, so an epoch record names the same versions in
both roots.  It stores the location of the original dataset and the names of its files.  Later files belong to the clone
alone, and a clean-up deletes only the clone's own files.

Every step skips work that is done, so the creation of a branch can be repeated after a crash, and two processes may
create the same branch.  A branch can be opened after the last step, and then is complete.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import obstore
from obstore.exceptions import BaseError

from state.clock import Clock
from state.errors import CommitRefusedError, SlackwaterError, StoreNotFoundError, UsageError
from state.lance.dataset_files import DatasetFiles
from state.lance.lance_access import lance_options, open_dataset
from state.lance.lance_store import LanceStateStore, dataset_location
from state.lance.view_dataset import tag_committed
from state.location import Location
from state.objects.object_client import object_client
from state.objects.storage_error import storage_error
from state.removal.datasets import delete_listed
from state.removal.evidence import DroppedBranch
from state.tables.delta import Delta
from state.tables.records import EpochRecord
from state.upkeep.branch_beginning import become_branch, first_record
from state.upkeep.branches import branch_location
from state.upkeep.vacuum import STORE_PATH

_AT_ONCE = 16


class BranchFiles:
    """The files of one branch.

    Args:
        root: the root above it.
        clock: the clock of its store.
    """

    def __init__(self, root: Location, name: str, clock: Clock) -> None:
        self._root, self._name, self._clock = root, name, clock
        self.location = branch_location(root, name)
        self._origin = self.location.child("origin")

    @property
    def is_whole(self) -> bool:
        """True if the branch can be opened.

        Raises:
            StorageError: the root cannot be read.
        """
        try:
            LanceStateStore.open(self.location, self._clock, read_only=True)
        except StoreNotFoundError:
            return False
        return True

    @property
    def are_there(self) -> bool:
        """True if the place of the branch has any file.

        Raises:
            StorageError: the root cannot be read.
        """
        return next(self._paths(self.location), None) is not None

    def first(self) -> LanceStateStore:
        """The store of the branch as it began.

        Raises:
            StoreNotFoundError: the branch is not whole.
            StorageError: the root cannot be read.
        """
        return LanceStateStore.open(self._origin, self._clock, read_only=True)

    def make(self, epoch: int, definitions: Delta) -> None:
        """Makes the branch, of whose files some may be there.

        Args:
            epoch: an epoch that its root keeps for it.
            definitions: rows of the catalog that replace the epoch's rows in the branch.

        Raises:
            UsageError: the place of the branch has other files.
            NotFoundError: files of the epoch are gone.
            StorageError: the root cannot be read or written.
        """
        above = LanceStateStore.open(self._root, self._clock, read_only=True)
        record = above.epoch(epoch)
        assert record is not None, "the root keeps the epoch"
        record = first_record(record)
        views = record.views
        datasets = {path: version for view in views.values() for path, version in view.datasets.items()}
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            list(threads.map(lambda each: self._clone_dataset(*each), datasets.items()))
            list(threads.map(lambda view: tag_committed(self.location, view), views.values()))
        origin = self._make_origin(record, definitions)
        _clone(dataset_location(origin.location), dataset_location(self.location), origin.version)

    def delete_store(self) -> None:
        """Deletes the store of the branch: the rest of a branch never opens.

        Raises:
            StorageError: the root cannot be read or written.
        """
        self._delete(DroppedBranch(self._root, self._name, STORE_PATH))

    def delete_rest(self) -> tuple[str, ...]:
        """Deletes the remaining files of the branch after `delete_store`.  Errors as there.

        Returns:
            The first names of objects that Slackwater did not write: they stay.
        """
        return self._delete(DroppedBranch(self._root, self._name))

    def _clone_dataset(self, path: str, version: int) -> None:
        _clone(self._root.child(path), self.location.child(path), version)

    def _make_origin(self, record: EpochRecord, definitions: Delta) -> LanceStateStore:
        """Makes the first version of the store of the branch."""
        try:
            store = LanceStateStore.open(self._origin, self._clock)
        except StoreNotFoundError:
            _clone(dataset_location(self._root), dataset_location(self._origin), record.state_version)
            store = LanceStateStore.open(self._origin, self._clock)
        if store.version > record.state_version:
            return store
        try:
            become_branch(store, record, definitions)
        except CommitRefusedError:
            return store.reopen()  # another process makes the same branch
        return store

    def _paths(self, place: Location) -> Iterator[str]:
        try:
            if place.is_local and not place.path.is_dir():
                return iter(())
            return iter([each["path"] for batch in obstore.list(object_client(place)) for each in batch])
        except (BaseError, OSError) as error:
            raise storage_error(error, place) from None

    def _delete(self, evidence: DroppedBranch) -> tuple[str, ...]:
        try:
            return delete_listed(evidence).left
        except (BaseError, OSError) as error:
            raise storage_error(error, evidence.place) from None


def _clone(source: Location, target: Location, version: int) -> None:
    """Makes a dataset that names the files of one version of the source, with the same version number."""
    try:
        open_dataset(source, version).shallow_clone(target.lance_uri, version, lance_options(source))
    except (OSError, ValueError, RuntimeError) as error:
        _require_clone(source, target, version, storage_error(error, target))
    DatasetFiles(target).sync_creation(version)


def _require_clone(source: Location, target: Location, version: int, error: SlackwaterError) -> None:
    """Accepts a clone that another try has made."""
    try:
        found = open_dataset(target)
    except SlackwaterError:
        raise error from None
    if version != found.version or source.lance_uri not in [each.path for each in found.base_paths().values()]:
        raise UsageError(
            f"{target} exists, and is not version {version} of {source}: delete the rest of that branch with "
            "`drop-branch`, or choose another name"
        )

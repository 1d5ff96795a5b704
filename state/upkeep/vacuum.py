"""The vacuum: deletes versions and datasets that no retained epoch names, by list, never by age."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from state.store.store import StateStore
from state.tables.stored_rows import is_stored_rows_path

STORE_PATH = "state.lance"
_CREATION_EPOCH = re.compile(r"-(\d+)(?:-\w+)?\.lance$")
_DATASETS = (("path", "version"), ("state_path", "state_version"), ("distinct_path", "distinct_version"))


@dataclass(frozen=True)
class Vacuumed:
    """Counts of a vacuum.

    Args:
        versions: deleted versions of datasets.
        datasets: deleted datasets.
        bytes: the size of their files.
        left: objects in deleted datasets that Slackwater did not write, relative to the root; they stay.
        epochs_expired: epochs that expired before it.
        epochs_left: retained epochs.
    """

    versions: int = 0
    datasets: int = 0
    bytes: int = 0
    left: tuple[str, ...] = ()
    epochs_expired: int = 0
    epochs_left: int = 0

    def __add__(self, other: Vacuumed) -> Vacuumed:
        return Vacuumed(
            self.versions + other.versions,
            self.datasets + other.datasets,
            self.bytes + other.bytes,
            self.left + other.left,
            self.epochs_expired + other.epochs_expired,
            self.epochs_left + other.epochs_left,
        )


class VacuumRoot(Protocol):
    """The contract of a root for the vacuum; paths are relative to the root, and `STORE_PATH` is the store."""

    def open(self, *, read_only: bool = False) -> StateStore:
        """A handle on the last version of the store."""
        ...

    def datasets(self) -> list[str]:
        """The existing datasets of views, including datasets that no epoch names."""
        ...

    def versions(self, path: str) -> set[int]:
        """The existing versions of a dataset."""
        ...

    def delete_versions(self, path: str, versions: set[int]) -> Vacuumed:
        """Deletes versions, and the files that only they use.  A tagged version and the last version stay.

        Missing versions are skipped, so that an interrupted call may be repeated.
        """
        ...

    def delete_dataset(self, path: str) -> Vacuumed:
        """Deletes a dataset with all its versions.  Objects that Slackwater did not write stay: see `Vacuumed.left`."""
        ...


class _Named(NamedTuple):
    """The versions of one dataset that retained epochs name."""

    versions: set[int]
    last: int


class Vacuum:
    """Deletes versions and datasets that no retained epoch names.

    It deletes only versions older than the last named one.  A version that no record names when the records are read is
    named by no later record either, and a path is never used twice.  So the list stays valid for ever, with any
    concurrent commits, and even in a process that lost the root.

    Args:
        root: the root that the pipeline writes to.
    """

    def __init__(self, root: VacuumRoot) -> None:
        self._root = root
        self._left: dict[str, _Named] = {}

    def run(self) -> Vacuumed:
        """One pass over all datasets; returns the counts of deletions.

        Raises:
            StorageError: the root cannot be read or written; the next pass continues.
        """
        store = self._root.open(read_only=True)
        # Read at once: later commits and another vacuum may delete this version of the store.
        records = store.scan("epoch", fields=["term", "state_version", "views"]).combine_chunks()
        named, last_of_others = _named(records), _last_of_other_terms(records, store.head.term)
        gone = Vacuumed(epochs_left=records.num_rows)
        for path, each in named.items():
            unnamed = {version for version in self._existing(path, each.last) - each.versions if version < each.last}
            if unnamed:
                gone += self._root.delete_versions(path, unnamed)
            self._left[path] = each
        for path in self._root.datasets():
            created = _CREATION_EPOCH.search(path)
            # Epochs in flight may use datasets that no record names yet.  Rows of a source may be staged during the
            # whole attempt before their first commit.
            settled = last_of_others if is_stored_rows_path(path) else store.head.epoch
            if path not in named and created and int(created.group(1)) <= settled:
                gone += self._root.delete_dataset(path)
        return gone

    def _existing(self, path: str, last: int) -> set[int]:
        """The existing versions of a dataset; listing reads a file for each, so only the first pass lists."""
        left = self._left.get(path)
        return self._root.versions(path) if left is None else left.versions.union(range(left.last, last))


def _last_of_other_terms(records: pa.Table, term: int) -> int:
    """The last retained epoch of another term; 0 if all are of this term."""
    others = records.filter(pc.not_equal(records["term"], term))
    return int(pc.max(others["epoch"]).as_py() or 0)


def _named(records: pa.Table) -> Mapping[str, _Named]:
    """The versions that retained epochs name, by path; computed in Arrow for tens of thousands of epochs."""
    if records.num_rows == 0:
        return {}
    views = pa.Table.from_struct_array(pc.list_flatten(records["views"]).combine_chunks())
    named = {}
    for path_column, version_column in _DATASETS:
        by_path = views.group_by(path_column).aggregate([(version_column, "distinct")])
        for path, versions in zip(by_path[path_column], by_path[f"{version_column}_distinct"], strict=True):
            if path.as_py() is not None:
                named[path.as_py()] = versions.as_py()
    named[STORE_PATH] = records["state_version"].to_pylist()
    return {path: _Named(set(versions), max(versions)) for path, versions in named.items()}

"""Deletes what no retained epoch names: by list, never by age."""

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
    """What is gone: versions of datasets, whole datasets, and the bytes of their files."""

    versions: int = 0
    datasets: int = 0
    bytes: int = 0

    def __add__(self, other: Vacuumed) -> Vacuumed:
        return Vacuumed(self.versions + other.versions, self.datasets + other.datasets, self.bytes + other.bytes)


class VacuumRoot(Protocol):
    """What a vacuum asks of a root; paths are relative to it, and that of the store is `STORE_PATH`."""

    def open(self, *, read_only: bool = False) -> StateStore:
        """A handle on the store as it is now."""
        ...

    def datasets(self) -> list[str]:
        """The datasets of views that there are, those of no epoch too."""
        ...

    def versions(self, path: str) -> set[int]:
        """The versions of a dataset that there are."""
        ...

    def delete_versions(self, path: str, versions: set[int]) -> Vacuumed:
        """Deletes versions, and the files that only they use.  A tagged version and the last one stay.

        Versions that are not there are passed over, so that an interrupted call may be repeated.
        """
        ...

    def delete_dataset(self, path: str) -> Vacuumed:
        """Deletes a dataset with all of its versions."""
        ...


class _Named(NamedTuple):
    """The versions of one dataset that retained epochs name."""

    versions: set[int]
    last: int


class Vacuum:
    """Deletes what no retained epoch names, each time that it is asked to.

    Only versions older than the last named one go.  A version that no record names when they are read is named by no
    later record either, and a path is never used twice.  So the list stays true however long this takes, whatever is
    committed meanwhile, and even in a process that has been replaced.

    Args:
        root: where the pipeline writes.
    """

    def __init__(self, root: VacuumRoot) -> None:
        self._root = root
        self._left: dict[str, _Named] = {}

    def run(self) -> Vacuumed:
        """One pass over all datasets; what it deleted.

        Raises:
            StorageError: the root cannot be read or written; the next pass goes on.
        """
        store = self._root.open(read_only=True)
        # Read at once: while versions are deleted others may be made, and this one go.
        records = store.scan("epoch").select(["epoch", "term", "state_version", "views"]).combine_chunks()
        named, last_of_others = _named(records), _last_of_other_terms(records, store.head.term)
        gone = Vacuumed()
        for path, each in named.items():
            unnamed = {version for version in self._existing(path, each.last) - each.versions if version < each.last}
            if unnamed:
                gone += self._root.delete_versions(path, unnamed)
            self._left[path] = each
        for path in self._root.datasets():
            created = _CREATION_EPOCH.search(path)
            # Later epochs may be on their way, with datasets that are not named yet.  Rows are staged for as long as
            # an attempt lives before the first of them are committed.
            settled = last_of_others if is_stored_rows_path(path) else store.head.epoch
            if path not in named and created and int(created.group(1)) <= settled:
                gone += self._root.delete_dataset(path)
        return gone

    def _existing(self, path: str, last: int) -> set[int]:
        """Listing the versions reads a file for each: done once, then they are known."""
        left = self._left.get(path)
        return self._root.versions(path) if left is None else left.versions.union(range(left.last, last))


def _last_of_other_terms(records: pa.Table, term: int) -> int:
    """The last retained epoch that was committed under another term; 0 if there is none."""
    others = records.filter(pc.not_equal(records["term"], term))
    return int(pc.max(others["epoch"]).as_py() or 0)


def _named(records: pa.Table) -> Mapping[str, _Named]:
    """What the retained epochs name, by path; computed in Arrow, since there may be tens of thousands of them."""
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

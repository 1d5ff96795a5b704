"""A root in memory: the contract of `LanceRoot`, for simulation and tests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from state.clock import Clock
from state.errors import CommitRefusedError, FencedError, ViewNotFoundError
from state.tables.delta import Delta, StagedRows
from state.tables.records import ViewVersion
from state.tables.staging_age import CLEAN_UP_AGE, require_fresh
from state.upkeep.vacuum import STORE_PATH, Vacuumed
from tests.simulation.memory.memory_disk import MemoryDataset, MemoryDisk, MemoryStaged
from tests.simulation.memory.memory_store import MemoryStateStore


@dataclass(frozen=True)
class MemoryRoot:
    """The store and the views on a `MemoryDisk`.  The rows of a view may be any value; no method reads them."""

    disk: MemoryDisk
    clock: Clock

    def open(self, *, read_only: bool = False) -> MemoryStateStore:
        return MemoryStateStore.open(self.disk, self.clock, read_only=read_only)

    def create_or_open(self) -> MemoryStateStore:
        return MemoryStateStore.create_or_open(self.disk, self.clock)

    def stage(self, delta: Delta, epoch: int) -> Delta:
        rows = sum(len(changes) for changes in delta.changes.values())
        name = self._stage(self.disk.staged, delta)
        return Delta(staged=(*delta.staged, StagedRows(epoch, rows, name)))

    def restore(self, view: ViewVersion, term: int) -> ViewVersion:
        return view.at({path: self._restore_dataset(path, each, term) for path, each in view.datasets.items()})

    def datasets(self) -> list[str]:
        return [*self.disk.datasets, *(path for path in self.disk.stored if path not in self.disk.datasets)]

    def versions(self, path: str) -> set[int]:
        return set(self.disk.versions if path == STORE_PATH else self._dataset(path).versions)

    def delete_versions(self, path: str, versions: set[int]) -> Vacuumed:
        self._clean_up(self.disk.staged if path == STORE_PATH else self.disk.stored.get(path, {}))
        if path == STORE_PATH:
            return _without(self.disk.versions, versions - {self.disk.latest})
        dataset = self._dataset(path)
        kept = {dataset.latest, dataset.fence_version, dataset.committed}
        return _without(dataset.versions, {version for version in versions if version not in kept})

    def delete_dataset(self, path: str) -> Vacuumed:
        # Another vacuum may have deleted it meanwhile.
        staged = self.disk.stored.pop(path, None)
        return Vacuumed(datasets=int(self.disk.datasets.pop(path, None) is not None or staged is not None))

    def tag_committed(self, view: ViewVersion) -> None:
        dataset = self._dataset(view.path)
        dataset.rows(view.path, view.version)
        dataset.committed = max(view.version, dataset.committed or 0)

    def commit_view(self, path: str, expected_version: int, rows: Any) -> int:
        """Writes the next version of a view's dataset, as a writer with `expected_version` open.

        Args:
            path: the path of the dataset; expected version 0 creates it.
            expected_version: the version from which `rows` were computed.
            rows: all rows of the view.

        Returns:
            The new version.

        Raises:
            CommitRefusedError: that version is not the last one: a take-over has restored the view, or the dataset
                already exists.
            ViewNotFoundError: the dataset does not exist.
        """
        dataset = self.disk.datasets.setdefault(path, MemoryDataset()) if not expected_version else self._dataset(path)
        if dataset.latest != expected_version:
            raise CommitRefusedError(
                f"{path}: the last version is {dataset.latest}, not {expected_version}: recover from what is committed"
            )
        return dataset.add(rows)

    def view_rows(self, path: str, version: int) -> Any:
        """The rows of a view at a version.

        Raises:
            NotFoundError: the version does not exist.
        """
        return self._dataset(path).rows(path, version)

    def stage_rows(self, path: str, rows: Any) -> str:
        """Stages rows for a dataset that may not exist yet, and returns their name in it."""
        return self._stage(self.disk.stored.setdefault(path, {}), rows)

    def staged_rows(self, path: str, name: str) -> Any:
        """Staged rows, for a commit; None if they no longer exist, which a commit would not notice.

        Raises:
            CommitRefusedError: they are so old that they may be deleted.
        """
        staged = self.disk.stored.get(path, {}).get(name)
        if staged is None:  # the dataset was deleted
            return None
        require_fresh(staged.staged_at, self.clock.now())
        return staged.rows

    def _stage(self, place: dict[str, MemoryStaged], rows: Any) -> str:
        self.disk.stagings += 1
        name = f"staged-{self.disk.stagings}"
        place[name] = MemoryStaged(rows, self.clock.now())
        return name

    def _clean_up(self, staged: dict[str, MemoryStaged]) -> None:
        """Deletes old staged rows, as Lance does beside old versions; a version has a copy of those that it names."""
        for name, each in staged.items():
            if self.clock.now() - each.staged_at > CLEAN_UP_AGE:
                staged[name] = replace(each, rows=None)

    def _dataset(self, path: str) -> MemoryDataset:
        if path not in self.disk.datasets:
            raise ViewNotFoundError(f"{path} does not exist")
        return self.disk.datasets[path]

    def _restore_dataset(self, path: str, version: int, term: int) -> int:
        dataset = self._dataset(path)
        rows = dataset.rows(path, version)
        if dataset.fence_term > term:
            raise FencedError(f"{path} is fenced by term {dataset.fence_term}, ours is {term}: this process stops")
        dataset.fence_term, dataset.fence_version = term, dataset.add(rows)
        return dataset.fence_version


def _without(versions: dict[int, Any], gone: set[int]) -> Vacuumed:
    there = gone.intersection(versions)
    for version in there:
        del versions[version]
    return Vacuumed(versions=len(there))

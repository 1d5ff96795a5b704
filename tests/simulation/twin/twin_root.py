"""The simulated root with its twin."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from state.clock import Clock
from state.errors import CommitRefusedError, ViewNotFoundError
from state.lance.lance_store import LanceStateStore
from state.store.head_swap import StagedSwap
from state.store.store import StagedFold
from state.tables.delta import Delta
from state.tables.records import Head, ViewVersion
from state.upkeep.vacuum import STORE_PATH, Vacuumed
from tests.simulation.memory.memory_disk import MemoryDisk, MemoryVersion
from tests.simulation.memory.memory_root import MemoryRoot
from tests.simulation.memory.memory_store import MemoryStateStore
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.twin.lance_twin import LanceTwin, TwinVersion
from tests.simulation.twin.view_twins import ViewTwins
from tests.simulation.world.simulated_root import Access, SimulatedRoot, SimulatedStore


@dataclass(kw_only=True)
class TwinDisk(MemoryDisk):
    """A disk in memory whose store and views have twins in Lance."""

    twin: LanceTwin
    views: ViewTwins = field(init=False)

    def __post_init__(self) -> None:
        self.views = ViewTwins(self.twin.root, self)

    def check_all(self) -> None:
        """Compares everything: at the end of a story."""
        self.twin.check_all(self)
        self.views.check_all()

    def swap(self, expected: int, version: MemoryVersion) -> None:
        assert isinstance(version, TwinVersion), "a TwinStore has staged it"
        if self._lance_accepts(version) != (self.latest == expected):
            accepted, refused = ("memory", "Lance") if self.latest == expected else ("Lance", "memory")
            raise PromiseBroken(
                "twin", f"{accepted} accepts a commit after version {expected}, and {refused} refuses it"
            )
        super().swap(expected, version)

    def add(self, version: MemoryVersion) -> None:
        super().add(version)
        if isinstance(version, TwinVersion):
            self.twin.check_last(self, version)

    def _lance_accepts(self, version: TwinVersion) -> bool:
        try:
            version.lance._swap(version.staged)
        except CommitRefusedError:
            return False
        return True


class TwinStore(SimulatedStore):
    """A handle on both stores, which move together."""

    _disk: TwinDisk

    def __init__(
        self, disk: MemoryDisk, clock: Clock, version: int, *, read_only: bool = False, access: Access
    ) -> None:
        super().__init__(disk, clock, version, read_only=read_only, access=access)
        self._lance: LanceStateStore | None = None if read_only else self._disk.twin.at(disk, version)

    @property
    def fold_interval(self) -> int:
        return self._writable.fold_interval

    def stage_fold(self) -> StagedFold | None:
        self._access.before("fold")
        fold = self._writable.stage_fold()
        self._access.after("fold")
        return fold

    @property
    def _writable(self) -> LanceStateStore:
        assert self._lance is not None, "it was opened to write"
        return self._lance

    def _stage(self, delta: Delta | None, head: Head) -> StagedSwap:
        staged = super()._stage(delta, head)
        return replace(staged, content=self._disk.twin.stage_commit(self._writable, delta, staged.content))

    def _stage_fold_swap(self, fold: StagedFold, head: Head) -> StagedSwap:
        staged = super()._stage(None, head)
        made: MemoryVersion = staged.content
        mover = copy(self._writable)
        content = self._disk.twin.staged(made, mover, mover._stage_fold_swap(fold, head))
        return replace(staged, content=content)

    def _swap(self, staged: StagedSwap) -> None:
        super()._swap(staged)
        self._lance = staged.content.lance

    def _adopt(self, fresh: Any) -> None:
        super()._adopt(fresh)
        self._lance = fresh._lance

    def _swap_name(self, version: int) -> str | None:
        name = super()._swap_name(version)
        self._disk.twin.check_name(self._writable, version, name)
        return name


@dataclass(frozen=True)
class TwinMemoryRoot(MemoryRoot):
    """A `MemoryRoot` that does everything on Lance, too, in one step: nothing comes between the two."""

    disk: TwinDisk

    def create_or_open(self) -> MemoryStateStore:
        self.disk.twin.create_or_open()
        return super().create_or_open()

    def stage(self, delta: Delta, epoch: int) -> Delta:
        staged = super().stage(delta, epoch)
        self.disk.twin.stage(staged.staged[-1].content, delta, epoch)
        return staged

    def commit_view(self, path: str, expected_version: int, rows: Any) -> int:
        dataset = self.disk.datasets.get(path)
        before = None if dataset is None else dataset.versions.get(expected_version)
        found = self.disk.views.commit(path, expected_version, before, rows)
        try:
            version = super().commit_view(path, expected_version, rows)
        except (CommitRefusedError, ViewNotFoundError):
            if found is not None:
                raise PromiseBroken("twin", f"{path} after version {expected_version}: only Lance accepts it") from None
            self._keep_refused(path, before, rows)
            raise
        if version != found:
            raise PromiseBroken("twin", f"{path} after version {expected_version} is {version}, in Lance {found}")
        return version

    def _keep_refused(self, path: str, before: Any, rows: Any) -> None:
        """Keeps the version that Lance has made of an append, after versions that its writer had not seen.

        `ViewTable` has refused it, so no epoch names it, and the next restore leaves it behind.
        """
        dataset = self.disk.datasets.get(path)
        if dataset is not None and dataset.latest + 1 in self.disk.twin.root.versions(path):
            dataset.add((*dataset.rows(path, dataset.latest), *rows[len(before) :]))

    def tag_committed(self, view: ViewVersion) -> None:
        super().tag_committed(view)
        self.disk.views.tag(view)

    def delete_versions(self, path: str, versions: set[int]) -> Vacuumed:
        gone = super().delete_versions(path, versions)
        self.disk.twin.root.delete_versions(path, versions)
        if path == STORE_PATH:
            self.disk.twin.check_versions(self.disk)
        else:
            self.disk.views.check_versions(path)
        return gone

    def delete_dataset(self, path: str) -> Vacuumed:
        if path in self.disk.datasets:
            self.disk.twin.root.delete_dataset(path)
        return super().delete_dataset(path)

    def _restore_dataset(self, path: str, version: int, term: int) -> int:
        restored = super()._restore_dataset(path, version, term)
        found = self.disk.views.restore(path, version, term)
        if found != restored:
            raise PromiseBroken("twin", f"{path} is restored as version {restored}, and as {found} in Lance")
        return restored


@dataclass(frozen=True)
class TwinRoot(SimulatedRoot, TwinMemoryRoot):
    """A `SimulatedRoot` with a twin."""

    store_class: ClassVar[type[SimulatedStore]] = TwinStore

    disk: TwinDisk

"""The files of one branch, in memory: references to an epoch of the root above, and a disk of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from state.errors import NotFoundError
from state.tables.delta import Delta
from state.tables.records import ViewVersion
from state.upkeep.branch_beginning import become_branch, first_record
from state.upkeep.branches import branches_of
from tests.simulation.memory.memory_disk import MemoryDataset, MemoryDisk
from tests.simulation.memory.memory_store import MemoryStateStore
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.world.schedule import Life
from tests.simulation.world.simulated_root import SimulatedRoot

if TYPE_CHECKING:
    from tests.simulation.simulated_world import World


class SimulatedBranch:
    """One branch.

    Attributes:
        datasets: path and version of each dataset of the root that the branch refers to → its rows.
        state_version: the version of the store of the root that it refers to; None without the store of the branch.
        origin: the disk with the store of the branch as it began.
        disk: that of the branch, which can be opened; None before, and afterwards.
        opened: the branch as a root, from its first use on.

    Args:
        name: its name.
        above: the world of the root.
    """

    def __init__(self, name: str, above: World) -> None:
        self._name, self._above = name, above
        self.datasets: dict[tuple[str, int], object] = {}
        self.state_version: int | None = None
        self.origin = MemoryDisk()
        self.disk: MemoryDisk | None = None
        self.opened: World | None = None

    @property
    def world(self) -> World | None:
        """The branch as a root; None if it cannot be opened."""
        if self.opened is None and self.disk is not None:
            self.opened = self._above.at_branch(self._name, self.disk)
        return self.opened

    def check(self) -> None:
        """Checks that all that the branch refers to is there."""
        for (path, version), rows in self.datasets.items():
            if self._rows(path, version) != rows:
                raise PromiseBroken("G3", f"branch {self._name} needs version {version} of {path}, which has changed")
        if self.state_version is not None and self.state_version not in self._above.disk.versions:
            raise PromiseBroken("G3", f"branch {self._name} needs version {self.state_version} of the store")

    def check_end(self) -> None:
        """Checks the branch as a root, at the end of a story, if anything was done there."""
        if self.opened is not None:
            self.opened.check_end()

    def end(self) -> None:
        """Every process on the branch dies."""
        if self.opened is not None:
            for process in self.opened.processes:
                process.end()

    def refer(self, path: str, version: int) -> None:
        """The branch refers to a dataset, with which one of its own begins.

        Raises:
            NotFoundError: it is gone, as another user has dropped the branch meanwhile.
        """
        dataset = self._above.disk.datasets.get(path)
        is_gone = dataset is None or version not in dataset.versions
        if is_gone and self._name not in branches_of(self._above.head().tags):
            raise NotFoundError(f"branch {self._name} is dropped, and version {version} of {path} is gone")
        self.datasets[path, version] = rows = self._rows(path, version)
        self.origin.datasets.setdefault(path, MemoryDataset({version: rows}, version))

    def tag(self, view: ViewVersion) -> None:
        """A version of a view is the one for plain readers, unless a drop has deleted it meanwhile."""
        if view.path in self.origin.datasets:
            self.origin.datasets[view.path].committed = view.version

    def begin(self, epoch: int, version: int) -> None:
        """The store of the branch begins, unless another user has begun it.

        Args:
            epoch: the epoch of the root that it begins with.
            version: the version of the store at that epoch.
        """
        if self.origin.latest:
            return
        self.state_version = version
        self.origin.versions[version], self.origin.latest = self._above.disk.versions[version], version
        store = MemoryStateStore.open(self.origin, self._above.clock)
        record = store.epoch(epoch)
        assert record is not None, "it is the version of that epoch"
        become_branch(store, first_record(record), Delta())

    def open(self) -> None:
        """The branch is whole: users can open it, and run on it, unless a drop has deleted its origin meanwhile."""
        if self.disk is None and self.origin.latest:
            latest, datasets = self.origin.latest, self.origin.datasets
            self.disk = MemoryDisk(versions={latest: self.origin.versions[latest]}, latest=latest, datasets=datasets)

    def close(self) -> None:
        """The store of the branch is gone, and every process on it dies."""
        self.end()
        self.disk, self.opened, self.state_version = None, None, None
        self.origin = MemoryDisk(datasets=self.origin.datasets)

    def delete(self) -> None:
        """All that is left is gone."""
        self.datasets.clear()
        self.origin.datasets.clear()

    def _rows(self, path: str, version: int) -> object:
        try:
            return self._above.disk.datasets[path].rows(path, version)
        except (KeyError, NotFoundError) as error:
            raise PromiseBroken("G3", f"a branch needs version {version} of {path}, which does not exist") from error


class BranchByUser:
    """The files of a branch by the way of one user, who may die between any two of them; see `FilesOfBranch`."""

    def __init__(self, world: World, user: Life, branch: SimulatedBranch) -> None:
        self._root, self._branch = SimulatedRoot(world.disk, world.clock, world.access(user)), branch

    @property
    def is_whole(self) -> bool:
        return self._branch.disk is not None

    @property
    def are_there(self) -> bool:
        return self.is_whole or bool(self._branch.datasets) or bool(self._branch.origin.latest)

    def make(self, epoch: int) -> None:
        record = self._root.open(read_only=True).epoch(epoch)
        if record is None:
            raise PromiseBroken("G3", f"the root has noted a branch at epoch {epoch}, and does not keep it")
        views = first_record(record).views.values()
        for path, version in dict.fromkeys(each for view in views for each in view.datasets.items()):
            self._root.access.before("clone")
            self._branch.refer(path, version)
        for view in views:
            self._branch.tag(view)
        self._root.access.before("clone")
        self._branch.begin(epoch, record.state_version)
        self._root.access.before("clone")
        self._branch.open()

    def delete_store(self) -> None:
        self._root.access.before("clone")
        self._branch.close()

    def delete_rest(self) -> tuple[str, ...]:
        self._root.access.before("clone")
        self._branch.delete()
        return ()

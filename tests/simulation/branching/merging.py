"""A user who merges a branch: the owner of the root meanwhile, by the steps of production."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from slackwater.branching.merge_steps import Merged, MergeSteps
from state.errors import EpochNotFoundError, NotFoundError, SlackwaterError, StoreNotFoundError
from state.store.store import StateStore
from state.tables.records import Head, ViewVersion
from state.upkeep.branches import branches_of
from tests.simulation.branching.branch_files import SimulatedBranch
from tests.simulation.branching.merge_checker import MergeChecker
from tests.simulation.hosting.simulated_runtime import judge
from tests.simulation.memory.memory_store import MemoryStateStore
from tests.simulation.model_views.model_view import ModelView
from tests.simulation.world.interruptions import Killed
from tests.simulation.world.ownerships import RunOwnership
from tests.simulation.world.pins import PinningReader
from tests.simulation.world.schedule import Life
from tests.simulation.world.simulated_root import SimulatedRoot

if TYPE_CHECKING:
    from tests.simulation.simulated_world import World


class SimulatedMerge:
    """One merge, from its claim of the root to the release; see `slackwater.branching.merge.merge`.

    Attributes:
        user: who merges, and may die at any step.
        merged: its result; None before the end, and after an error.
        error: its error; None without one.

    Args:
        world: the root.
        branch: the branch.
        name: of the branch.
        run: its own name.
    """

    def __init__(self, world: World, branch: SimulatedBranch, name: str, run: str) -> None:
        self._world, self._branch, self._name, self.user = world, branch, name, Life(run)
        self._models: Mapping[str, ModelView] = {}
        self._checker: MergeChecker | None = None
        self._has_begun = False
        self.merged: Merged | None = None
        self.error: SlackwaterError | None = None
        world.ownerships.claim(run, world.head, self._begin, takeover=False)

    @property
    def is_over(self) -> bool:
        """True if it has released the root, or its user has died, or the root has another owner."""
        return not self.user.alive or not (self._has_begun or self._world.ownerships.is_claimed)

    def take_views(self) -> list[ModelView]:
        """The views that it has taken, whether its user knows or not; once."""
        names = () if self._checker is None else self._checker.taken()
        taken = [self._models[name] for name in names if name in self._models]
        self._models = {name: model for name, model in self._models.items() if name not in names}
        return taken

    def _begin(self, ownership: RunOwnership, _: Head) -> None:
        self._has_begun = True
        ownership.life.move_into(self.user)
        if not self.user.alive:
            ownership.life.end()
            return
        self._world.threads.start(self.user, lambda: self._try(ownership), lambda: self._release(ownership))

    def _try(self, ownership: RunOwnership) -> None:
        try:
            store = self._world.root(self.user).open()
            ownership.confirm()
            ownership.update(term=store.take_over(self.user.name).term)
            self.merged = self._merge(store)
        except SlackwaterError as error:
            judge(error, self.user.name)
            self.error = error
        if self._checker is not None:
            self._checker.check(self.merged, self.error)

    def _release(self, ownership: RunOwnership) -> None:
        self._world.ownerships.call(ownership.life, ownership.release, self.user.end)

    def _merge(self, store: StateStore) -> Merged:
        if self._name not in branches_of(store.head.tags):
            raise NotFoundError(f"there is no branch {self._name}")
        there = self._branch.world
        if there is None:
            raise StoreNotFoundError(f"branch {self._name} cannot be opened")
        place = SimulatedRoot(there.disk, there.clock, there.access(self.user))
        branch, first = place.open(read_only=True), MemoryStateStore.open(self._branch.origin, there.clock)
        reader = PinningReader(f"{self.user.name}-reader", there)
        reader.pin()
        try:
            if reader.epoch != branch.head.epoch:
                raise EpochNotFoundError(f"epoch {branch.head.epoch} of branch {self._name} is not retained")
            record = branch.epoch(branch.head.epoch)
            assert record is not None, "it is pinned"
            self._models = {**there.all_views}
            self._checker = MergeChecker(self._world.disk, self.user.name, there.disk, record)
            datasets = _Datasets(self._world.root(self.user), place)
            merged = MergeSteps(self._name, store, datasets, branch, record, first, there.clock).take(None)
        except Killed:
            reader.end()  # its pin stays until its end
            raise
        finally:
            if reader.alive:
                reader.let_go()
                reader.end()
        return merged


class _Datasets:
    """See `MergedDatasets`.

    Args:
        root, branch: the two, by the way of the user.
    """

    def __init__(self, root: SimulatedRoot, branch: SimulatedRoot) -> None:
        self._root, self._branch = root, branch

    def copy(self, path: str, version: int, target: str) -> tuple[int, int]:
        self._branch.access.read()
        return self._root.commit_view(target, 0, self._branch.view_rows(path, version)), 0

    def tag_committed(self, view: ViewVersion) -> None:
        self._root.tag_committed(view)

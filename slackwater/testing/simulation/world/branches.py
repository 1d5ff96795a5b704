"""Branches of the root: users make and drop them, by the steps of production, while runs go on.

A branch is a set of references here: to the datasets of an epoch, and to its version of the store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from slackwater.branching.branch_steps import end_branch, forget_branch, make_branch
from slackwater.commands.operations import BranchTagCommand
from slackwater.testing.simulation.promise_broken import PromiseBroken
from slackwater.testing.simulation.world.schedule import Life
from slackwater.testing.simulation.world.simulated_root import SimulatedRoot
from state.errors import CommandRefusedError, CommandUnansweredError, NotFoundError, SlackwaterError
from state.memory.memory_disk import MemoryDisk
from state.upkeep.branches import branches_of

if TYPE_CHECKING:
    from slackwater.testing.simulation.simulated_world import World

_TIMEOUT_S = 60.0


class _Files:
    """The files of one branch, see `FilesOfBranch`.

    Attributes:
        datasets: path and version of each dataset of the root that the branch refers to → its rows.
        state_version: the version of the store of the root that it refers to; None without the store of the branch.
    """

    def __init__(self, disk: MemoryDisk) -> None:
        self._disk = disk
        self.datasets: dict[tuple[str, int], object] = {}
        self.state_version: int | None = None

    def check(self, name: str) -> None:
        """Checks that all that the branch refers to is there."""
        for (path, version), rows in self.datasets.items():
            if self._rows(path, version) != rows:
                raise PromiseBroken("G3", f"branch {name} needs version {version} of {path}, which has changed")
        if self.state_version is not None and self.state_version not in self._disk.versions:
            raise PromiseBroken("G3", f"branch {name} needs version {self.state_version} of the store")

    def refer(self, path: str, version: int) -> None:
        """The branch refers to a dataset."""
        self.datasets[path, version] = self._rows(path, version)

    def _rows(self, path: str, version: int) -> object:
        try:
            return self._disk.datasets[path].rows(path, version)
        except (KeyError, NotFoundError) as error:
            raise PromiseBroken("G3", f"a branch needs version {version} of {path}, which does not exist") from error


class Branches:
    """All branches of the root.

    Args:
        world: everything else.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._files: dict[str, _Files] = {}
        self._users: list[Life] = []

    @property
    def names(self) -> frozenset[str]:
        """The branches that can be opened."""
        return frozenset(name for name, files in self._files.items() if files.state_version is not None)

    def make(self, name: str) -> None:
        """A user makes a branch at the last epoch, or goes on with one that was begun."""
        self._begin(f"branch-{name}", lambda user: self._make(user, name))

    def drop(self, name: str) -> None:
        """A user drops a branch."""
        self._begin(f"drop-{name}", lambda user: self._drop(user, name))

    def kill(self) -> None:
        """The users who are making or dropping branches die."""
        for user in self._users:
            user.end()
        self._users.clear()

    def check(self) -> None:
        """Checks that the root has all that the branches refer to."""
        for name, files in self._files.items():
            files.check(name)

    def _begin(self, name: str, work: Callable[[Life], None]) -> None:
        user = Life(name)
        self._users.append(user)
        self._world.threads.start(user, partial(_try, partial(work, user)))

    def _make(self, user: Life, name: str) -> None:
        notes = _Notes(self._world, user)
        make_branch(name, _ByUser(self._world, user, self._of(name)), notes, lambda: notes.epoch, is_chosen=False)

    def _drop(self, user: Life, name: str) -> None:
        notes = _Notes(self._world, user)
        known = branches_of(notes.tags()).get(name)
        if known is not None:
            files = _ByUser(self._world, user, self._of(name))
            end_branch(name, known.epoch, files, notes)
            forget_branch(name, files, notes)

    def _of(self, name: str) -> _Files:
        return self._files.setdefault(name, _Files(self._world.disk))


class _ByUser:
    """The files of a branch by the way of one user, who may die between any two of them."""

    def __init__(self, world: World, user: Life, files: _Files) -> None:
        self._root, self._files = SimulatedRoot(world.disk, world.clock, world.access(user)), files

    @property
    def is_whole(self) -> bool:
        return self._files.state_version is not None

    @property
    def are_there(self) -> bool:
        return self.is_whole or bool(self._files.datasets)

    def make(self, epoch: int) -> None:
        record = self._root.open(read_only=True).epoch(epoch)
        if record is None:
            raise PromiseBroken("G3", f"the root has noted a branch at epoch {epoch}, and does not keep it")
        views = [view for view in record.views.values() if view.pinned_epoch is None]
        for path, version in {each for view in views for each in view.datasets.items()}:
            self._root.access.before("clone")
            self._files.refer(path, version)
        self._root.access.before("clone")
        self._files.state_version = record.state_version

    def delete_store(self) -> None:
        self._root.access.before("clone")
        self._files.state_version = None

    def delete_rest(self) -> None:
        self._root.access.before("clone")
        self._files.datasets.clear()


class _Notes:
    """The tags of the root, which its owner changes; see `NotesOfRoot`."""

    def __init__(self, world: World, user: Life) -> None:
        self._world, self._user = world, user
        self._root = SimulatedRoot(world.disk, world.clock, world.access(user))

    @property
    def epoch(self) -> int:
        """The last epoch."""
        return self._root.open(read_only=True).head.epoch

    def tags(self) -> Mapping[str, int]:
        return self._root.open(read_only=True).head.tags

    def note(self, tag: str, epoch: int | None) -> None:
        world = self._world
        name = world.ask(BranchTagCommand(name=tag, epoch=epoch))
        if name is None:
            raise CommandUnansweredError("no run lives")
        world.inbox.tell(name, lambda: world.threads.wake(self._user))
        world.threads.wait_until(lambda: world.inbox.answer_to(name) is not None, _TIMEOUT_S)
        answer = world.inbox.answer_to(name)
        if answer is None:
            raise CommandUnansweredError("the run does not answer")
        if not answer.done:
            raise CommandRefusedError(answer.text)


def _try(work: Callable[[], None]) -> None:
    """A user reads the error of a command, and may repeat it."""
    try:
        work()
    except SlackwaterError:
        pass

"""All branches of a root, and the users who make, merge and drop them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from slackwater.branching.branch_steps import end_branch, forget_branch, make_branch
from slackwater.commands.operations import BranchTagCommand
from state.errors import CommandRefusedError, CommandUnansweredError, SlackwaterError, UsageError
from state.location import Location
from state.upkeep.branches import branch_location, branches_of
from tests.simulation.branching.branch_files import BranchByUser, SimulatedBranch
from tests.simulation.branching.merging import SimulatedMerge
from tests.simulation.memory.memory_disk import MemoryDisk
from tests.simulation.model_views.model_view import ModelView
from tests.simulation.world.schedule import Life
from tests.simulation.world.simulated_root import SimulatedRoot

if TYPE_CHECKING:
    from tests.simulation.simulated_world import World

_TIMEOUT_S = 60.0


class Branches:
    """All branches of the root.

    Args:
        world: everything else.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._branches: dict[str, SimulatedBranch] = {}
        self._users: list[Life] = []
        self.merges: list[SimulatedMerge] = []

    @property
    def names(self) -> frozenset[str]:
        """The branches that can be opened."""
        return frozenset(name for name, branch in self._branches.items() if branch.disk is not None)

    def world_of(self, name: str) -> World | None:
        """A branch as a root of its own; None if it cannot be opened."""
        return self._branches[name].world if name in self._branches else None

    def disk_at(self, location: Location) -> MemoryDisk | None:
        """The disk of a branch, by its location; None if it cannot be opened."""
        for name, branch in self._branches.items():
            if branch_location(self._world.place, name) == location:
                return branch.disk
        return None

    def disks(self) -> list[tuple[str, MemoryDisk]]:
        """The branches that can be opened and are not being dropped, each with its disk."""
        known = branches_of(self._world.head().tags)
        return [
            (name, branch.disk)
            for name, branch in self._branches.items()
            if branch.disk is not None and name in known and not known[name].is_dropping
        ]

    @property
    def worlds(self) -> list[World]:
        """The branches that were opened, as roots."""
        return [branch.opened for branch in self._branches.values() if branch.opened is not None]

    def make(self, name: str) -> None:
        """A user makes a branch at the last epoch, or goes on with one that was begun."""
        self._begin(f"branch-{name}", lambda user: self._make(user, name))

    def drop(self, name: str) -> None:
        """A user drops a branch, after ending what runs on it."""
        self._begin(f"drop-{name}", lambda user: self._drop(user, name))

    def merge(self, name: str) -> None:
        """A user takes the views of a branch into the root."""
        self.merges.append(SimulatedMerge(self._world, self._of(name), name, f"merge-{len(self.merges) + 1}"))

    @property
    def are_busy(self) -> bool:
        """True while a user makes, merges or drops a branch."""
        return any(user.alive for user in self._users) or not all(merge.is_over for merge in self.merges)

    @property
    def refusals(self) -> tuple[str, ...]:
        """The errors of merges that were refused."""
        return tuple(str(merge.error) for merge in self.merges if isinstance(merge.error, UsageError))

    def take_merged(self) -> list[ModelView]:
        """The views that merges have taken since the last call, as the branches have defined them."""
        return [view for merge in self.merges for view in merge.take_views()]

    def kill(self) -> None:
        """The users who are making, merging or dropping branches die."""
        for user in (*self._users, *(merge.user for merge in self.merges)):
            user.end()
        self._users.clear()

    def end(self) -> None:
        """Everything that runs on branches dies."""
        for branch in self._branches.values():
            branch.end()

    def check(self) -> None:
        """Checks that the root has all that the branches refer to."""
        for branch in self._branches.values():
            branch.check()

    def check_end(self) -> None:
        """Checks each branch as a root, at the end of a story."""
        for branch in self._branches.values():
            branch.check_end()

    def _begin(self, name: str, work: Callable[[Life], None]) -> None:
        user = Life(name)
        self._users.append(user)
        self._world.threads.start(user, partial(_try, partial(work, user)), user.end)

    def _make(self, user: Life, name: str) -> None:
        notes = _Notes(self._world, user)
        make_branch(name, BranchByUser(self._world, user, self._of(name)), notes, lambda: notes.epoch, is_chosen=False)

    def _drop(self, user: Life, name: str) -> None:
        notes = _Notes(self._world, user)
        known = branches_of(notes.tags()).get(name)
        if known is not None:
            files = BranchByUser(self._world, user, self._of(name))
            self._of(name).end()
            end_branch(name, known.epoch, files, notes)
            forget_branch(name, files, notes)

    def _of(self, name: str) -> SimulatedBranch:
        return self._branches.setdefault(name, SimulatedBranch(name, self._world))


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
        world.inbox.notify(name, lambda: world.threads.wake(self._user))
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

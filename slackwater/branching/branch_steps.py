"""The steps that make and drop a branch, in their order, and the checks between them.

The root notes a branch before a file of it is referred to, and forgets it when the files of the branch are gone.
Every step skips the work that is already done, so an interrupted call can be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from state.errors import UsageError
from state.upkeep.branches import branch_tag, branches_of, dropping_tag


class FilesOfBranch(Protocol):
    """The files of one branch, see `state.lance.branch_files.BranchFiles`."""

    @property
    def is_whole(self) -> bool: ...

    @property
    def are_there(self) -> bool: ...

    def make(self, epoch: int) -> None: ...

    def delete_store(self) -> None: ...

    def delete_rest(self) -> tuple[str, ...]: ...


class NotesOfRoot(Protocol):
    """The tags of the root above a branch."""

    def tags(self) -> Mapping[str, int]:
        """The present ones."""

    def note(self, tag: str, epoch: int | None) -> None:
        """Has the owner of the root put a tag, or delete it."""


def make_branch(
    name: str, files: FilesOfBranch, root: NotesOfRoot, choose: Callable[[], int], *, is_chosen: bool
) -> None:
    """Makes a branch, or goes on with one that was begun.

    Args:
        root: the root above it.
        choose: gives the epoch that a new branch begins with.
        is_chosen: whether a user has named that epoch: then a branch that was begun has to have it.

    Raises:
        UsageError: the branch exists, or is or was dropped, or other files are in its place.
    """
    known = branches_of(root.tags()).get(name)
    if known is None:
        if files.are_there:
            raise UsageError(f"{files} has files already: choose another name, or delete them")
        epoch = choose()
        root.note(branch_tag(name), epoch)
    else:
        if known.is_dropping:
            raise UsageError(f"branch {name!r} is being dropped: finish that with `drop-branch`, then make it again")
        epoch = known.epoch
        if (is_chosen and choose() != epoch) or files.is_whole:
            raise UsageError(f"branch {name!r} of {root} exists, at epoch {epoch}: choose another name, or drop it")
    files.make(epoch)
    now = branches_of(root.tags()).get(name)
    if now is None or now.is_dropping:
        files.delete_store()  # some may be written after the drop has deleted the others
        files.delete_rest()
        raise UsageError(f"branch {name!r} was dropped while it was made: make it again")


def end_branch(name: str, epoch: int, files: FilesOfBranch, root: NotesOfRoot) -> None:
    """Ends a branch: it never opens again.

    Args:
        epoch: that of the root that it refers to.
        root: the root above it.
    """
    root.note(dropping_tag(name), epoch)
    files.delete_store()


def forget_branch(name: str, files: FilesOfBranch, root: NotesOfRoot) -> tuple[str, ...]:
    """Deletes the remaining files of a branch after `end_branch`; then the root keeps its epoch no longer.

    Returns:
        The first names of objects that Slackwater did not write: they stay.
    """
    left = files.delete_rest()
    if branch_tag(name) in root.tags():
        root.note(branch_tag(name), None)
    root.note(dropping_tag(name), None)
    return left

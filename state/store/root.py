"""The contract of a root: the place that a pipeline writes to, with its store and the datasets of its views."""

from __future__ import annotations

from typing import Protocol

from state.store.store import StateStore
from state.tables.delta import Delta
from state.tables.records import ViewVersion


class Root(Protocol):
    """The store of a pipeline and the datasets of its views."""

    def open(self, *, read_only: bool = False) -> StateStore:
        """A handle on the store as it is now.

        Raises:
            StoreNotFoundError: the root has no store.
            RootMismatchError: the store has another format.
            StorageError: the root cannot be read.
        """
        ...

    def create_or_open(self) -> StateStore:
        """The store, created if missing; of two first starts at once, one creates it and the other opens it."""
        ...

    def stage(self, delta: Delta, epoch: int) -> Delta:
        """Makes a large delta durable, and returns a small one that names it.

        Any process may stage while another commits.  Staged rows become visible with the commit of their epoch; without
        that commit they stay invisible, and do no harm.

        Raises:
            StorageError: the root cannot be written.
        """
        ...

    def restore(self, view: ViewVersion, term: int) -> ViewVersion:
        """Makes the recorded version of a view its latest one, so that commits of older writers are refused.

        Call it only after a successful take-over.

        Returns:
            The view with the new versions, which hold exactly the rows of the recorded ones.

        Raises:
            FencedError: a later term has already fenced the view.
            NotFoundError: the recorded version does not exist.
            StorageError: the root cannot be written.
        """
        ...

    def tag_committed(self, view: ViewVersion) -> None:
        """Moves the tag `committed`, which plain readers use, to the recorded version; never back.

        Raises:
            NotFoundError: the recorded version does not exist.
            StorageError: the root cannot be written.
        """
        ...

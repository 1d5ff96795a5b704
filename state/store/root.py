"""What recovery and commits ask of the place that a pipeline writes to, whatever it is."""

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
            StoreNotFoundError: there is none.
            RootMismatchError: it is of a later format than this version of Slackwater knows.
            StorageError: the place cannot be read.
        """
        ...

    def create_or_open(self) -> StateStore:
        """The store, made if there is none; of two first starts at once, one creates it and the other opens it."""
        ...

    def stage(self, delta: Delta, epoch: int) -> Delta:
        """Makes a large delta durable, and gives a small one that names it.

        Any process may stage, while another commits.  What is staged becomes visible with the commit of its epoch; if
        that never comes, it is in nobody's way.

        Raises:
            StorageError: the place cannot be written.
        """
        ...

    def restore(self, view: ViewVersion, term: int) -> ViewVersion:
        """Makes the recorded version of a view its latest one, which refuses all that older writers have in flight.

        Call it only after the head is won.

        Returns:
            The view with the new versions; they hold exactly the rows of the recorded ones.

        Raises:
            FencedError: a later term has fenced the view already.
            NotFoundError: the recorded version does not exist.
            StorageError: the place cannot be written.
        """
        ...

    def tag_committed(self, view: ViewVersion) -> None:
        """Moves the version that plain readers see to the recorded one; never back.

        Raises:
            NotFoundError: the recorded version does not exist.
            StorageError: the place cannot be written.
        """
        ...

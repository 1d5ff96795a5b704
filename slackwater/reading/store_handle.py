"""StoreHandle: a root with its tables, for the parts of a `Store` and for functions over it in other rooms."""

from __future__ import annotations

from state.clock import Clock
from state.errors import StoreNotFoundError
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.ownership.owner import Owner, read_owner
from state.tables.catalog import Catalog


class StoreHandle:
    """A root and its tables: at the latest epoch of each call, or at one epoch for a frozen store.

    Args:
        root: the root, with the options for its access.
        clock: the clock of the store.
        state: the tables as they were opened.
        is_frozen: whether every call sees `state`.

    Attributes:
        root: the root.
        clock: the clock.
        is_frozen: as above.
    """

    def __init__(self, root: Location, clock: Clock, state: LanceStateStore, *, is_frozen: bool = False) -> None:
        self.root, self.clock, self.is_frozen = root, clock, is_frozen
        self._state = state
        self._cataloged: tuple[LanceStateStore, Catalog] | None = None

    @classmethod
    def open(cls, root: Location, clock: Clock) -> StoreHandle:
        """Opens the tables of a root.

        Raises:
            StoreNotFoundError: no pipeline has written to the root.
            StorageError: the root cannot be read.
        """
        try:
            return cls(root, clock, LanceStateStore.open(root, clock, read_only=True))
        except StoreNotFoundError:
            owner = read_owner(root)
            if owner is None or owner.is_gone():
                raise
            raise StoreNotFoundError(
                f"{root} has no store yet: process {owner.pid} on {owner.host} is {owner.phase}, "
                "and has not created it; ask again in a moment"
            ) from None

    def frozen(self) -> StoreHandle:
        """The tables at the epoch that is the latest at this call."""
        frozen = StoreHandle(self.root, self.clock, self.latest(), is_frozen=True)
        frozen._cataloged = self._cataloged
        return frozen

    def latest(self) -> LanceStateStore:
        """The tables at the latest epoch."""
        if not self.is_frozen:
            self._state = self._state.reopen()
        return self._state

    def cataloged(self) -> tuple[LanceStateStore, Catalog]:
        """The tables at the latest epoch, and their catalog, which is read once for each epoch."""
        state, cataloged = self.latest(), self._cataloged
        if cataloged is None or cataloged[0] is not state:
            cataloged = self._cataloged = (state, Catalog.of(state.scan("catalog")))
        return cataloged

    def owner(self) -> Owner | None:
        """The process that runs on the root or ran last; None before the first run."""
        return read_owner(self.root)

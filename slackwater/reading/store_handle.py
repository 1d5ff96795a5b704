"""StoreHandle: a root with its tables, for functions over a `Store` in other rooms."""

from __future__ import annotations

from dataclasses import dataclass

from state.clock import Clock
from state.lance.lance_store import LanceStateStore
from state.location import Location


@dataclass(frozen=True)
class StoreHandle:
    """What `publish`, `verify` and other functions over a `Store` read.

    Args:
        root: the root, with the options for its access.
        state: the tables at the latest epoch, or at the epoch of a frozen store.
        clock: the clock of the store.
    """

    root: Location
    state: LanceStateStore
    clock: Clock

"""The root on Lance, loaded when it is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from state.clock import Clock
from state.location import Location

if TYPE_CHECKING:
    from state.lance.lance_root import LanceRoot


def lazy_root(root: Location, clock: Clock) -> Callable[[], LanceRoot]:
    """Opens a root when it is called: Lance takes half a second to load, and few actors need it."""

    def open_root() -> LanceRoot:
        from state.lance.lance_root import LanceRoot

        return LanceRoot(root, clock)

    return open_root

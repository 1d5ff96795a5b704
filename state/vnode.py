"""Virtual nodes: the unit in which files are owned by fetch actors."""

from __future__ import annotations

import zlib

from state.errors import UsageError

VNODES = 256


def vnode_of(path: str) -> int:
    """The vnode of a path.  Stable for ever: it is written into the store."""
    return zlib.crc32(path.encode()) % VNODES


def fetcher_bounds(fetchers: object) -> tuple[int, int]:
    """The fewest and the most fetch actors that one number, or two, stand for.

    Raises:
        UsageError: they stand for none.
    """
    given = fetchers if isinstance(fetchers, (tuple, list)) else (fetchers, fetchers)
    if len(given) == 2:
        fewest, most = given
        if all(type(each) is int for each in given) and 1 <= fewest <= most <= VNODES:
            return fewest, most
    raise UsageError(f"fetchers={fetchers!r}: give a whole number from 1 to {VNODES}, or the fewest and the most")

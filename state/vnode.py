"""Virtual nodes: a path belongs to one of 256, and each belongs to one fetch actor."""

from __future__ import annotations

import zlib

from state.errors import UsageError

VNODES = 256


def vnode_of(path: str) -> int:
    """The vnode of a path.  The store keeps it, so this function never changes."""
    return zlib.crc32(path.encode()) % VNODES


def fetcher_bounds(fetchers: object) -> tuple[int, int]:
    """The fewest and the most fetch actors, as a pair of numbers.

    Args:
        fetchers: one whole number, or a pair of the fewest and the most.

    Raises:
        UsageError: the value is neither.
    """
    given = fetchers if isinstance(fetchers, (tuple, list)) else (fetchers, fetchers)
    if len(given) == 2:
        fewest, most = given
        if all(type(each) is int for each in given) and 1 <= fewest <= most <= VNODES:
            return fewest, most
    raise UsageError(f"fetchers={fetchers!r}: give a whole number from 1 to {VNODES}, or the fewest and the most")

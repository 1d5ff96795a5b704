"""Virtual nodes: the unit in which files are owned by fetch actors."""

from __future__ import annotations

import zlib

VNODES = 256


def vnode_of(path: str) -> int:
    """The vnode of a path.  Stable for ever: it is written into the store."""
    return zlib.crc32(path.encode()) % VNODES

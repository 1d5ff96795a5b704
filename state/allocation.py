"""The allocators of a process that owns a store, or follows one for long.

Its memory follows what it holds, not the most that it ever held.

A fold takes tens of megabytes for a moment, in its own thread and in those of Lance and Arrow.  glibc has eight arenas
for each core, and each keeps what its threads once needed.  Arrow's own allocator keeps the pages of threads that have
ended.
"""

from __future__ import annotations

import ctypes

import pyarrow as pa

_M_ARENA_MAX = -8  # of <malloc.h>
_ARENAS = 2


def share_arenas() -> None:
    """Lets all threads of this process share two arenas, for Arrow's memory too; without glibc only the latter.

    Arenas that exist stay: call it before the process has many threads.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, _ARENAS)
    pa.set_memory_pool(pa.system_memory_pool())


def return_memory() -> None:
    """Returns free memory to the system, in some milliseconds."""
    pa.default_memory_pool().release_unused()  # of the system's pool: `malloc_trim`

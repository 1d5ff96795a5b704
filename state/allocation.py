"""The allocators of a process that owns a store, or follows one for long.

Its memory follows the present data, not the largest data that it ever held.

A fold takes tens of megabytes for a moment, in its own thread and in the threads of Lance and Arrow.  glibc has eight
arenas for each core, and each keeps what its threads once needed.  Arrow's own allocator keeps the pages of threads
that have ended.
"""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import pyarrow as pa

_M_ARENA_MAX = -8  # of <malloc.h>
_ARENAS = 2
_MADV_DONTNEED = 4  # of <sys/mman.h>
# A mapping of a file in smaps: addresses, permissions, offset, device, inode; without changed pages, swapped ones too.
_NUMBERS = r"(?:[A-Z]\w+:.*\n)*?"
_CLEAN = re.compile(
    r"^([0-9a-f]+)-([0-9a-f]+) r-[x-]p \S+ \S+ [1-9]\d* .*\n"
    rf"(?={_NUMBERS}Anonymous: +0 kB\n)(?={_NUMBERS}Swap: +0 kB\n)",
    re.MULTILINE,
)


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


def unmap_clean_files() -> None:
    """Unmaps the pages of libraries and other files that this process has not changed, in some milliseconds.

    Starting touches some 150 MiB of code that is not run again.  A page that is needed later is mapped again from the
    system's cache of files.  Only on Linux.  Call it while no other thread loads a library.
    """
    mappings = Path("/proc/self/smaps")
    madvise = getattr(ctypes.CDLL(None), "madvise", None)
    if madvise is None or not mappings.exists():
        return
    # A mapping with a changed page stays: the changes, for example by the linker, are not in the file.
    for start, end in _CLEAN.findall(mappings.read_text()):
        first = int(start, 16)
        madvise(ctypes.c_void_p(first), ctypes.c_size_t(int(end, 16) - first), _MADV_DONTNEED)

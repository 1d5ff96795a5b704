"""Identity of a local file: inode, modification time, size, and the time when the inode was created.

A file system gives the inode of a deleted file to the next new file: on ext4, 196 of 200 files that replaced one
another had the same inode.  Together with a restored modification time (`rsync -t`) the new file would be the old
version.  The birth time distinguishes them; it never changes with the name, the permissions or the content.

Python returns no birth time on Linux, so the file is examined by `statx`.
"""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any

_STATX = struct.Struct("=IIQIIIHHQQQQqIiqIiqIiqIiIIII")  # linux/stat.h, up to the device
_BUFFER_BYTES = 256
_AT_SYMLINK_NOFOLLOW, _AT_EMPTY_PATH = 0x100, 0x1000
_BASIC_STATS, _BIRTH = 0x7FF, 0x800
_MOUNTS = Path("/proc/self/mountinfo")
_KEEP_BIRTH_TIMES = frozenset({"btrfs", "tmpfs"})
"""File systems without a block device that keep birth times, and that no other machine mounts.

Two kernels disagree about the birth times of a network file system, and a later kernel may begin to return them: all
of its files would become other versions.  overlayfs gives a file of a lower layer another birth time when its
permissions or its owner change: `chown -R` at the start of a container would make all files other versions."""


@dataclass(frozen=True)
class LocalFile:
    """A directory entry, as it was when it was examined.  Times are in microseconds since 1970.

    Args:
        mode: the type of the entry and its permissions.
        inode: the number of the inode.
        size: bytes.
        modified_us: the time of the last change of the content.
        born_us: the time when the inode was created; 0 if the file system does not keep it.
    """

    mode: int
    inode: int
    size: int
    modified_us: int
    born_us: int = 0

    @property
    def is_regular(self) -> bool:
        """True for a regular file; False for a link, a directory or a pipe."""
        return S_ISREG(self.mode)

    @property
    def is_directory(self) -> bool:
        return S_ISDIR(self.mode)

    @property
    def etag(self) -> str:
        """The etag of this version of the file."""
        born = f"-{self.born_us:x}" if self.born_us else ""
        return f'"{self.inode:x}-{self.modified_us:x}-{self.size:x}{born}"'

    @property
    def etag_of_obstore(self) -> str:
        """The etag that obstore's LocalStore gives the file: without the birth time."""
        # obstore takes a time before 1970 as 1970.
        return f'"{self.inode:x}-{max(self.modified_us, 0):x}-{self.size:x}"'

    def has_etag(self, etag: str) -> bool:
        """True if an etag from a listing names this version.

        A machine that exports a directory lists its files with birth times, and one that mounts it reads them without.
        """
        if etag in (self.etag, self.etag_of_obstore):
            return True
        return not self.born_us and etag.count("-") == 3 and f'{etag.rpartition("-")[0]}"' == self.etag


def file_at(directory: int, name: str) -> LocalFile:
    """Examines an entry of an open directory; a link itself, not its target.

    Args:
        directory: the descriptor of the directory.
        name: the name in it, one part.

    Raises:
        OSError: the entry does not exist, or cannot be examined.
    """
    if _statx is None:
        return _of_stat(os.stat(name, dir_fd=directory, follow_symlinks=False))
    return _examined(directory, os.fsencode(name), _AT_SYMLINK_NOFOLLOW)


def open_file(descriptor: int) -> LocalFile:
    """Examines an open file.

    Raises:
        OSError: the file cannot be examined.
    """
    if _statx is None:
        return _of_stat(os.fstat(descriptor))
    return _examined(descriptor, b"", _AT_EMPTY_PATH)


def _found_statx() -> Callable[..., int] | None:
    function: Any = getattr(ctypes.CDLL(None, use_errno=True), "statx", None)
    if function is not None:
        function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p]
    return function  # type: ignore[no-any-return]


_statx = _found_statx()
_buffers = threading.local()


def _examined(directory: int, name: bytes, flags: int) -> LocalFile:
    if (buffer := getattr(_buffers, "one", None)) is None:
        buffer = _buffers.one = ctypes.create_string_buffer(_BUFFER_BYTES)
    assert _statx is not None, "the callers check"
    if _statx(directory, name, flags, _BASIC_STATS | _BIRTH, ctypes.addressof(buffer)) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), os.fsdecode(name))
    found = _STATX.unpack_from(buffer)
    mask, mode, inode, size = found[0], found[6], found[8], found[9]
    born_s, born_ns, modified_s, modified_ns = found[15], found[16], found[21], found[22]
    major, minor = found[26], found[27]
    is_born = mask & _BIRTH and _keeps_birth_times(major, minor)
    born_us = born_s * 1_000_000 + born_ns // 1_000 if is_born else 0
    return LocalFile(mode, inode, size, modified_s * 1_000_000 + modified_ns // 1_000, born_us)


@lru_cache(maxsize=256)
def _keeps_birth_times(major: int, minor: int) -> bool:
    """True if the birth times of a file system are the same for every reader, now and later."""
    if major:
        return True  # a block device of this machine
    try:
        mounts = _MOUNTS.read_text(errors="replace").splitlines()
    except OSError:
        return False
    device = f"{major}:{minor}"
    kinds = {line.partition(" - ")[2].split(" ")[0] for line in mounts if line.split(" ")[2] == device}
    return bool(kinds) and kinds <= _KEEP_BIRTH_TIMES


def _of_stat(found: os.stat_result) -> LocalFile:
    return LocalFile(found.st_mode, found.st_ino, found.st_size, found.st_mtime_ns // 1_000)

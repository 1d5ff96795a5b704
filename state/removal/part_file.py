"""PartFile: a new file in an open directory, which gets its name when it is complete, and replaces no other file."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from stat import S_ISREG

from state.errors import RemovalRefusedError
from state.removal.local_path import stat_at
from state.removal.names import PART_FILES

_RENAME_NOREPLACE = 1
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_TRIES = 3
_renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


class PartFileInUseError(OSError):
    """Another process or thread writes the same part file."""


class PartFile:
    """A file under a name of its own.  Its lock shows that a process writes it, and ends with the process.

    Args:
        directory: the descriptor of the directory.
        part: the name of the file in it, see `PART_FILES`.
    """

    def __init__(self, directory: int, part: str, descriptor: int) -> None:
        self._directory, self._part = directory, part
        self.descriptor = descriptor

    @classmethod
    @contextmanager
    def create(cls, directory: int, part: str) -> Iterator[PartFile]:
        """A new part file.  One of the same name that a killed process has left is deleted before.

        The file is deleted at the end of the block, unless it has its final name by then.

        Raises:
            PartFileInUseError: another process or thread writes it.
            RemovalRefusedError: the name is not one of a part file, or is not a regular file.
            OSError: the disk refuses.
        """
        if not PART_FILES.covers(part):
            raise RemovalRefusedError(f"{part!r} is not one of {PART_FILES.about}; nothing was changed")
        made = cls(directory, part, _opened(directory, part))
        try:
            yield made
        finally:
            with suppress(OSError):
                if made._is_there(part):
                    os.unlink(part, dir_fd=directory)
            os.close(made.descriptor)

    def finish(self, name: str) -> None:
        """Gives the file its final name.

        Raises:
            FileExistsError: the name exists; nothing was changed.
            OSError: the disk refuses, or its file system has neither hard links nor RENAME_NOREPLACE.
        """
        if not self._is_there(self._part):
            raise PartFileInUseError(errno.EBUSY, "another process has taken the part file")
        try:
            os.link(
                self._part,
                name,
                src_dir_fd=self._directory,
                dst_dir_fd=self._directory,
                follow_symlinks=False,
            )
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            rename_without_replacing(self._directory, self._part, name)
        if not self._is_there(name):
            raise PartFileInUseError(errno.EBUSY, "another file has the name now")

    def _is_there(self, name: str) -> bool:
        found = stat_at(self._directory, name)
        return found is not None and os.path.samestat(found, os.fstat(self.descriptor))


def _opened(directory: int, part: str) -> int:
    """A new file with a lock."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    for _ in range(_TRIES):
        try:
            descriptor = os.open(part, flags, 0o666, dir_fd=directory)
        except FileExistsError:
            _remove_left_over(directory, part)
            continue
        try:
            _lock(descriptor)
            found = stat_at(directory, part)
            if found is not None and os.path.samestat(found, os.fstat(descriptor)):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    raise PartFileInUseError(errno.EBUSY, "another process writes the part file")


def _remove_left_over(directory: int, part: str) -> None:
    """Deletes a part file that no process writes."""
    found = stat_at(directory, part)
    if found is None:
        return
    if not S_ISREG(found.st_mode):
        raise RemovalRefusedError(f"{part!r} is not a regular file; nothing was changed: remove it yourself")
    with suppress(FileNotFoundError):
        descriptor = os.open(part, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
        try:
            _lock(descriptor)
            found = stat_at(directory, part)
            if found is not None and os.path.samestat(found, os.fstat(descriptor)):
                os.unlink(part, dir_fd=directory)
        finally:
            os.close(descriptor)


def _lock(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise PartFileInUseError(errno.EBUSY, "another process writes the part file") from None
    except OSError:
        pass  # a file system without locks: `finish` compares inodes


def rename_without_replacing(directory: int, part: str, name: str) -> None:
    """Renames an entry of an open directory by renameat2(2).

    Raises:
        FileExistsError: the new name exists; nothing was changed.
        OSError: the old name does not exist; or the system, or the file system, has no such request (ENOTSUP, EINVAL).
    """
    if _renameat2 is None:
        raise OSError(errno.ENOTSUP, "the system cannot rename without replacing")
    if _renameat2(directory, os.fsencode(part), directory, os.fsencode(name), _RENAME_NOREPLACE) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))

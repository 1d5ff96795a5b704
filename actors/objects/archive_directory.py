"""ArchiveDirectory: a local directory that gets copies of files: complete, synced, and never in the place of others."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from stat import S_ISREG

from actors.file_errors import UnreadableFile
from actors.objects.store_errors import INVALID_NAME
from state.errors import AccessDeniedError, SlackwaterError, StorageUnavailableError, UsageError
from state.location import Location
from state.removal.local_path import stat_at
from state.removal.part_file import PartFile, PartFileInUseError

_READ_BYTES = 8 << 20
# With O_PATH a directory need not be readable to be passed through.
_PASS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FULL = (errno.ENOSPC, errno.EDQUOT)
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)


@dataclass(frozen=True)
class Original:
    """A file to be copied.

    Args:
        path: of the file, and of the copy, relative to their locations.
        part: the name of the incomplete copy, in the directory of the copy.
        content: returns its bytes, part by part.
        is_at: whether a name in an open directory is the file itself, or a part file in the file's own directory.
    """

    path: str
    part: str
    size: int
    content: Callable[[], Iterable[bytes]]
    is_at: Callable[[int, str], bool]


class ArchiveDirectory:
    """Safe to use from many threads.

    Links on the way to the directory are resolved once, when the object is made.  From then on every directory is
    opened from the one above it, and a link in the place of any of them is refused.

    Args:
        location: a local directory, which need not exist.
    """

    def __init__(self, location: Location) -> None:
        self._location = location
        self._parts = Path(os.path.realpath(location.path)).parts[1:]
        self._lock = threading.Lock()
        self._synced: set[tuple[int, int]] = set()

    def put(self, original: Original) -> None:
        """Writes a copy, or accepts an existing copy with the same bytes.  The copy is durable when this returns.

        Raises:
            UsageError: the name has other content, is the original itself, or is not a regular file.
            UnreadableFile: the path is not valid.
            AccessDeniedError, StorageUnavailableError: the disk refuses or is full, or another process writes the copy.
            SlackwaterError: as `Original.content`.
        """
        place = f"{self._location}/{original.path}"
        try:
            with self._directory_of(original.path) as (directory, name):
                if stat_at(directory, name) is None:
                    try:
                        self._write(directory, name, original)
                        return
                    except FileExistsError:
                        pass  # another process was first
                self._take(directory, name, original)
        except PartFileInUseError:
            raise StorageUnavailableError(f"{place}: another process moves the file; it is tried again") from None
        except OSError as error:
            raise _translated(error, place) from None

    def _write(self, directory: int, name: str, original: Original) -> None:
        with PartFile.create(directory, original.part) as file:
            self._require_other_file(directory, original.part, original)
            copied = blake2b()
            for each in original.content():
                copied.update(each)
                _write_all(file.descriptor, each)
            os.fsync(file.descriptor)
            if os.fstat(file.descriptor).st_size != original.size or _hash_of(file.descriptor) != copied.digest():
                raise StorageUnavailableError(
                    f"{self._location}/{original.path}: the disk returned other bytes than were written; the original "
                    "stays"
                )
            file.finish(name)
        os.fsync(directory)

    def _take(self, directory: int, name: str, original: Original) -> None:
        """Takes a copy that an earlier try has left, if it provably is another file with the same bytes."""
        place = f"{self._location}/{original.path}"
        try:
            file = os.open(name, _READ, dir_fd=directory)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise UsageError(f"{place} is a link, which is not followed: rename it; the original stays") from None
            raise
        try:
            self._require_other_file(directory, name, original)
            with PartFile.create(directory, original.part):
                self._require_other_file(directory, original.part, original)
            copied = blake2b()
            for each in original.content():
                copied.update(each)
            if not S_ISREG(os.fstat(file).st_mode) or _hash_of(file) != copied.digest():
                raise UsageError(
                    f"{place} has other content than the file to be moved, which stays: rename one of them"
                )
            os.fsync(file)
        finally:
            os.close(file)
        os.fsync(directory)

    def _require_other_file(self, directory: int, name: str, original: Original) -> None:
        if original.is_at(directory, name):
            raise UsageError(
                f"{self._location} is the place of {original.path} itself: move files to another directory; the file "
                "stays"
            )

    @contextmanager
    def _directory_of(self, path: str) -> Iterator[tuple[int, str]]:
        """The descriptor of the directory of a file, which is made if it does not exist, and the file's name in it."""
        *below, name = path.split("/")
        if not {"", ".", ".."}.isdisjoint((*below, name)) or "\0" in path:
            raise UnreadableFile(INVALID_NAME)
        directory = os.open("/", _PASS)
        try:
            for part in (*self._parts, *below):
                next_directory = self._open_below(directory, part)
                os.close(directory)
                directory = next_directory
            readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
        finally:
            os.close(directory)
        try:
            yield readable, name
        finally:
            os.close(readable)

    def _open_below(self, directory: int, part: str) -> int:
        """The descriptor of a subdirectory.  A new subdirectory is synced before it is used."""
        is_new = False
        try:
            found = self._opened(directory, part)
        except FileNotFoundError:
            is_new = True
            try:
                os.mkdir(part, dir_fd=directory)
            except FileExistsError:
                pass  # another thread was first
            found = self._opened(directory, part)
        try:
            status = os.fstat(found)
            identity = status.st_dev, status.st_ino
            # A process that was killed may have made the directory, and not have synced it.
            if identity not in self._synced:
                _sync(directory, must=is_new)
                with self._lock:
                    self._synced.add(identity)
        except BaseException:
            os.close(found)
            raise
        return found

    def _opened(self, directory: int, part: str) -> int:
        try:
            return os.open(part, _PASS, dir_fd=directory)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise UsageError(
                    f"{self._location}: {part!r} on the way to the archive is a link or not a directory, and links "
                    "are not followed: remove it; the original stays"
                ) from None
            raise


def _write_all(file: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]


def _hash_of(file: int) -> bytes:
    """The hash of a file's content, read from the disk instead of the page cache if the system supports that."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    content, at = blake2b(), 0
    while part := os.pread(file, _READ_BYTES, at):
        content.update(part)
        at += len(part)
    return content.digest()


def _sync(directory: int, *, must: bool) -> None:
    """Syncs the entries of a directory.

    Args:
        directory: the descriptor, which may be one that cannot be read.
        must: whether it has a new entry; else a directory that cannot be synced is left out.
    """
    try:
        readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
        try:
            os.fsync(readable)
        finally:
            os.close(readable)
    except OSError:
        if must:
            raise


def _translated(error: OSError, place: str) -> SlackwaterError:
    if error.errno in _DENIED:
        return AccessDeniedError(f"{place}: access is denied ({error.strerror}); check the permissions")
    if error.errno in _FULL:
        return StorageUnavailableError(f"{place}: the disk is full; make room, it is tried again")
    return StorageUnavailableError(f"{place}: the copy cannot be written ({error.strerror}); it is tried again")

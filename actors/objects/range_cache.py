"""Cache of ranges of objects on a local disk."""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from stat import S_ISREG

import pyarrow as pa

from actors.objects.ranges import Range
from state.errors import RemovalRefusedError
from state.private_directory import open_private
from state.removal.local_files import delete_at, replace_at
from state.removal.names import CACHED_RANGES

_DIGEST_BYTES = 20
_PARTIAL = ".partial"


class RangeCache:
    """Keeps the ranges that were used last, up to a limit.  For one process and any number of threads.

    A version of an object never changes, so an entry is never out of date.  An entry that cannot be written or read
    counts as not kept.  Only regular files with the names of entries are counted and deleted: other files in the
    directory stay.

    Args:
        directory: its private directory, made if it does not exist; entries of an earlier process are used again.
        max_bytes: the limit, in bytes of content.

    Raises:
        SettingsError: the directory is a link, or not this user's alone.
    """

    def __init__(self, directory: Path, max_bytes: int) -> None:
        # Every entry is reached by this descriptor: another user may be able to replace a directory above it.
        self._directory, self._max_bytes = open_private(directory), max_bytes
        weakref.finalize(self, os.close, self._directory)
        self._lock = threading.Lock()
        self._sizes: OrderedDict[str, int] = OrderedDict()
        self._nbytes = 0
        found = []
        for name in filter(CACHED_RANGES.covers, os.listdir(self._directory)):
            status = os.stat(name, dir_fd=self._directory, follow_symlinks=False)
            if not S_ISREG(status.st_mode):
                continue
            if name.endswith(_PARTIAL):
                self._unlink(name)
            else:
                found.append((status.st_mtime_ns, name, status.st_size))
        for _, name, nbytes in sorted(found):
            self._note(name, nbytes)
        self._make_room()

    @property
    def nbytes(self) -> int:
        """Bytes of content in the cache."""
        return self._nbytes

    def resize(self, max_bytes: int) -> None:
        """Changes the limit."""
        with self._lock:
            self._max_bytes = max_bytes
            self._make_room()

    def get(self, url: str, etag: str, wanted: Range) -> pa.Buffer | None:
        """A range of a version of an object; None if the cache does not have it.

        Args:
            url: the URL of the object.
            etag: the etag of the version.
            wanted: the range, exactly as it was put.
        """
        name = _name(url, etag, wanted)
        with self._lock:
            if name not in self._sizes:
                return None
            self._sizes.move_to_end(name)
        try:
            with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=self._directory), "rb") as file:
                content = file.read()
            os.utime(name, dir_fd=self._directory)
        except OSError:
            content = b""
        if len(content) == wanted[1] - wanted[0]:
            return pa.py_buffer(content)
        with self._lock:
            self._drop(name)
        return None

    def put(self, url: str, etag: str, wanted: Range, content: pa.Buffer) -> None:
        """Keeps a range; drops the ranges that were not used for longest."""
        name = _name(url, etag, wanted)
        if content.size > self._max_bytes:
            return
        partial = f"{name}-{threading.get_ident()}{_PARTIAL}"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            with open(os.open(partial, flags, 0o600, dir_fd=self._directory), "wb") as file:
                file.write(content)
            replace_at(self._directory, partial, name, CACHED_RANGES)
        except (OSError, RemovalRefusedError):
            self._unlink(partial)
            return
        with self._lock:
            self._note(name, content.size)
            self._make_room()

    def _note(self, name: str, nbytes: int) -> None:
        self._nbytes += nbytes - self._sizes.pop(name, 0)
        self._sizes[name] = nbytes

    def _make_room(self) -> None:
        while self._nbytes > self._max_bytes:
            self._drop(next(iter(self._sizes)))

    def _drop(self, name: str) -> None:
        self._nbytes -= self._sizes.pop(name, 0)
        self._unlink(name)

    def _unlink(self, name: str) -> None:
        with suppress(RemovalRefusedError):  # no file any more
            delete_at(self._directory, name, CACHED_RANGES)


def _name(url: str, etag: str, wanted: Range) -> str:
    key = "\0".join((url, etag, *map(str, wanted)))
    digest = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()
    return f"{digest}.range"

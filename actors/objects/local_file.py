"""Content of one version of a local file, reached from the directory of its source without following a link."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISLNK

from actors.file_errors import ObjectChanged, UnreadableFile
from actors.objects.ranges import Range
from actors.objects.store_errors import INVALID_NAME
from state.objects.local_identity import open_file

_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
# Without O_NONBLOCK a pipe in the place of a file would keep its reader waiting.
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
LINK_REFUSED = (
    "it is a symbolic link, or below one, and links are not followed; put the file itself there, or give the source "
    "the directory that the link leads to"
)


def read_local(root: Path, path: str, etag: str, wanted: Range) -> bytes:
    """A range of a file; it may end early if the file has become shorter.

    The identity of the file is compared before and after reading: a file that is written meanwhile gives no bytes.

    Args:
        root: the directory of the source.
        path: the path of the file, relative to it.
        etag: the etag of the listed version; empty for the version that is there.

    Raises:
        UnreadableFile: the path leads over a link, or has a part that is empty, `.` or `..`.
        ObjectChanged: the file has another version now, or was written while it was read.
        OSError: the file or a directory of its path does not exist, or cannot be read.
    """
    with directory_of(root, path) as (directory, name):
        try:
            file = os.open(name, _OPEN_FILE, dir_fd=directory)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise UnreadableFile(LINK_REFUSED) from None
            raise
    try:
        before = open_file(file)
        is_listed = before.is_regular and (not etag or before.has_etag(etag))
        content = _read(file, wanted) if is_listed else b""
        if not is_listed or open_file(file).etag != before.etag:
            raise ObjectChanged(f"{root / path} has changed since it was listed")
        return content
    finally:
        os.close(file)


@contextmanager
def directory_of(root: Path, path: str) -> Iterator[tuple[int, str]]:
    """The descriptor of the directory of a file, and the name of the file in it.

    Every directory is opened from the one above it, so that a link in the place of one of them leads nowhere.

    Raises:
        UnreadableFile, OSError: as `read_local`.
    """
    *above, name = path.split("/")
    if not {"", ".", ".."}.isdisjoint((*above, name)) or "\0" in path:
        raise UnreadableFile(INVALID_NAME)
    directory = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in above:
            below = open_below(directory, part)
            os.close(directory)
            directory = below
        yield directory, name
    finally:
        os.close(directory)


def open_below(directory: int, name: str) -> int:
    """The descriptor of a directory in an open one.

    Raises:
        UnreadableFile: it is a link.
        OSError: it does not exist, or cannot be read.
    """
    try:
        return os.open(name, _OPEN_DIRECTORY, dir_fd=directory)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR) and _is_link(directory, name):
            raise UnreadableFile(LINK_REFUSED) from None
        raise


def _is_link(directory: int, name: str) -> bool:
    return S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)


def _read(file: int, wanted: Range) -> bytes:
    start, end = wanted
    parts: list[bytes] = []
    while start < end and (part := os.pread(file, end - start, start)):
        parts.append(part)
        start += len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)

"""One object of a place, read as a whole.  On a disk only regular files are read, and no open waits."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from stat import S_IFMT, filemode

import obstore
from obstore.store import LocalStore, ObjectStore

from state.location import Location
from state.objects.etag import normal_etag
from state.objects.local_identity import LocalFile, open_file

_KINDS = {"p": "a named pipe", "s": "a socket", "d": "a directory", "c": "a device", "b": "a device"}

MOST_BYTES = 1 << 31
"""The limit of an object that is read as a whole: a larger one is not ours, or damaged."""


class UnfitObjectError(OSError):
    """Something has the name of an object that cannot be this object."""


class NotARegularFileError(UnfitObjectError):
    """A pipe, a socket, a device or a directory has the name of a file."""


class ObjectTooLargeError(UnfitObjectError):
    """An object has more than `MOST_BYTES`."""


@dataclass(frozen=True)
class StoredObject:
    """The content of an object.

    Args:
        version: the version of the object, as the store names it: `e_tag` and `version`.
    """

    content: bytes
    version: Mapping[str, str | None]


def read_object(client: ObjectStore, place: Location, name: str) -> StoredObject:
    """Reads an object.

    Args:
        client: reaches the objects of the place.
        place: the location that the name is relative to.

    Raises:
        UnfitObjectError: a pipe, a socket, a device or a directory has the name, or the object is too large.
        ValueError: the name is absolute, or has a part `..`, as obstore refuses it.
        FileNotFoundError, obstore.exceptions.NotFoundError: the object does not exist.
        obstore.exceptions.BaseError, OSError: the object cannot be read.
    """
    # The simulator keeps the objects of a local place in memory.
    if place.is_local and isinstance(client, LocalStore):
        if name.startswith("/") or ".." in name.split("/"):
            raise ValueError(f"{name!r} is not a name below {place}")
        content, file = _read(place.path / name)
        return StoredObject(content, {"e_tag": normal_etag(file.etag_of_obstore) or None, "version": None})
    found = obstore.get(client, name)  # noqa: TID251 - not on a disk
    _require_size(found.meta["size"], f"{place}/{name}")
    version = {"e_tag": normal_etag(found.meta.get("e_tag")) or None, "version": found.meta.get("version")}
    return StoredObject(bytes(found.bytes()), version)


def read_regular(path: Path) -> bytes:
    """The content of a local file, which may be reached by a link.

    Raises:
        UnfitObjectError: it is a pipe, a socket, a device or a directory, or too large.
        OSError: it does not exist, or cannot be read.
    """
    return _read(path)[0]


def _read(path: Path) -> tuple[bytes, LocalFile]:
    descriptor = _opened(path)
    try:
        file = open_file(descriptor)
        if not file.is_regular:
            raise _not_regular(path, file.mode)
        _require_size(file.size, str(path))
        with os.fdopen(descriptor, "rb", closefd=False) as opened:
            return opened.read(), file
    finally:
        os.close(descriptor)


def _opened(path: Path) -> int:
    try:
        # Without O_NONBLOCK, the open of a pipe waits for a writer.
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except BlockingIOError:
        return _opened_after_lease(path)
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise FileNotFoundError(errno.ENOENT, "not found", str(path)) from None  # as `storage_error` knows it
        if error.errno == errno.ENXIO:  # a socket
            raise _not_regular(path, os.stat(path).st_mode) from None
        raise


def _opened_after_lease(path: Path) -> int:
    """Opens a file that a file server (Samba, NFS) has leased; the system takes the lease back within 45 seconds."""
    # The entry cannot become a pipe between the two opens.
    entry = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        file = open_file(entry)
        if not file.is_regular:
            raise _not_regular(path, file.mode)
        return os.open(f"/proc/self/fd/{entry}", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(entry)


def _not_regular(path: Path, mode: int) -> NotARegularFileError:
    kind = _KINDS.get(filemode(S_IFMT(mode))[0], "not a file")
    return NotARegularFileError(f"{path} is {kind}, not a regular file")


def _require_size(size: int, name: str) -> None:
    if size > MOST_BYTES:
        raise ObjectTooLargeError(f"{name} has {size:,} bytes, more than {MOST_BYTES:,}, and is no file of this kind")

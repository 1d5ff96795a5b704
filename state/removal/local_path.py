"""Paths below a directory, opened part by part without following links."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISLNK

from state.errors import RemovalRefusedError

_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def parts_of(name: str) -> list[str]:
    """The parts of a relative name.

    Raises:
        RemovalRefusedError: the name is absolute, or has a part that is empty, `.` or `..`, or a NUL.
    """
    parts = name.split("/")
    if not {"", ".", ".."}.isdisjoint(parts) or "\0" in name:
        raise RemovalRefusedError(f"{name!r} is not a name below a directory; nothing was changed")
    return parts


@contextmanager
def directory_of(place: Path, name: str) -> Iterator[tuple[int, str]]:
    """The descriptor of the directory that holds a file, and the last part of the file's name.

    The place itself may be reached through links: its user named it.  No part below it may be a link.

    Args:
        name: of a file, relative to the place.

    Raises:
        RemovalRefusedError: a part is a link, or the name is not valid, see `parts_of`.
        FileNotFoundError: the place or a directory does not exist.
        OSError: a directory cannot be opened.
    """
    *above, last = parts_of(name)
    directory = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in above:
            below = open_below(directory, part, place / name)
            os.close(directory)
            directory = below
        yield directory, last
    finally:
        os.close(directory)


def require_no_links(place: Path, name: str = "") -> None:
    """Checks a directory whose files a library deletes by their paths: it would follow links to files elsewhere.

    Args:
        place: a directory, which itself may be reached through links.
        name: of the directory to check, relative to the place; empty for the place.

    Raises:
        RemovalRefusedError: the directory or one below it is a link, or the name is not valid, see `parts_of`.
        OSError: a directory does not exist or cannot be read.
    """
    path = place / name
    with directory_of(place, f"{name}/x" if name else "x") as (directory, _):
        for above, directories, _, descriptor in os.fwalk(".", dir_fd=directory, follow_symlinks=False):
            for each in directories:
                found = stat_at(descriptor, each)
                if found is not None and S_ISLNK(found.st_mode):
                    raise RemovalRefusedError(
                        f"{path / above / each} is a link to a directory, whose files may belong to others; nothing "
                        "was deleted: replace the link by the directory itself"
                    )


def open_below(directory: int, part: str, path: Path) -> int:
    """The descriptor of a directory in an open one.

    Args:
        directory: the open one.
        part: the name of the directory.
        path: for the message.

    Raises:
        RemovalRefusedError: it is a link, or no directory.
        OSError: it does not exist, or cannot be opened.
    """
    try:
        return os.open(part, _OPEN_DIRECTORY, dir_fd=directory)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise RemovalRefusedError(
                f"{path} is below {part!r}, which is a link or not a directory; nothing was changed: remove the link"
            ) from None
        raise


def stat_at(directory: int, name: str) -> os.stat_result | None:
    """The status of an entry, without following a link; None if it does not exist."""
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None

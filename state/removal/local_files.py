"""Files of one directory on a disk: replaced, set aside and deleted by the directory's descriptor."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

from state.errors import RemovalRefusedError
from state.removal.evidence import Evidence, require_covered
from state.removal.local_path import directory_of, stat_at
from state.removal.names import ReservedForm


def delete_at(directory: int, name: str, form: ReservedForm) -> bool:
    """Deletes a regular file of a directory of Slackwater's own; returns False if the file does not exist.

    Args:
        directory: the descriptor of the directory.
        name: the name in it, one part.
        form: the form of the names that only Slackwater writes there.

    Raises:
        RemovalRefusedError: the name has another form, or the entry is not a regular file.
        OSError: the disk refuses.
    """
    _require_form(name, form)
    found = stat_at(directory, name)
    if found is None:
        return False
    if not S_ISREG(found.st_mode):
        raise RemovalRefusedError(f"{name!r} is not a regular file; nothing was changed: remove it yourself")
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=directory)
        return True
    return False


def replace_at(directory: int, part: str, name: str, form: ReservedForm) -> None:
    """Gives a complete file its name, in the place of an earlier file of ours with this name.

    Args:
        directory: the descriptor of the directory.
        part: the present name of the complete file.
        name: its new name.
        form: the form of both names.

    Raises:
        RemovalRefusedError: a name has another form, or the replaced entry is not a regular file.
        OSError: the disk refuses.
    """
    _require_form(part, form)
    _require_form(name, form)
    found = stat_at(directory, name)
    if found is not None and not S_ISREG(found.st_mode):
        raise RemovalRefusedError(f"{name!r} is not a regular file; nothing was changed: remove it yourself")
    os.replace(part, name, src_dir_fd=directory, dst_dir_fd=directory)


def set_aside(evidence: Evidence, name: str, ending: str) -> str:
    """Renames a file that its evidence shows to be torn: `NAME` becomes `NAME` + `ending`.

    An earlier file of that name stays: then the new name has a number, too.  The caller excludes other processes.

    Returns:
        The new name.

    Raises:
        RemovalRefusedError: the evidence does not cover the name, or a directory of its path is a link.
        FileNotFoundError: the file does not exist.
        OSError: the disk refuses.
    """
    require_covered(evidence, name)
    with directory_of(evidence.place.path, name) as (directory, last):
        endings = (ending if not number else f"{ending}.{number}" for number in count())
        aside = next(each for each in (last + ending for ending in endings) if stat_at(directory, each) is None)
        os.rename(last, aside, src_dir_fd=directory, dst_dir_fd=directory)
    return f"{name.removesuffix(last)}{aside}"


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A new file, which is deleted again if the block raises.

    Only the file that this call created is deleted: a file that took its name meanwhile stays.

    Args:
        path: a path that does not exist.

    Raises:
        FileExistsError: it exists, and was not changed.
        OSError: the disk refuses.
    """
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(path.name, flags, 0o666, dir_fd=directory), "w+b") as file:
            created = os.fstat(file.fileno())
            try:
                yield file
            except BaseException:
                found = stat_at(directory, path.name)
                if found is not None and os.path.samestat(found, created):
                    os.unlink(path.name, dir_fd=directory)
                raise
    finally:
        os.close(directory)


def _require_form(name: str, form: ReservedForm) -> None:
    if "/" in name or not form.covers(name):
        raise RemovalRefusedError(f"{name!r} is not one of {form.about}; nothing was changed")

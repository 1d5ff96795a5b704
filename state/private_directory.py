"""Directories of one user on a machine with several: checked before use, or held by a descriptor."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from state.errors import SettingsError

_GROUP_WRITES, _OTHERS_WRITE = stat.S_IWGRP, stat.S_IWOTH


def open_private(path: Path) -> int:
    """Opens a directory that only this user may enter; makes it, and missing parents.

    The descriptor stays on this directory even if another user gives its name to another directory.

    Returns:
        The descriptor, for `dir_fd`; the caller closes it.

    Raises:
        SettingsError: it is a link, belongs to another user, or other users can write into it.
        OSError: it cannot be made or opened.
    """
    if path.is_symlink():
        raise SettingsError(f"{path} is a link: remove it, or name the directory itself")
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid():
            raise SettingsError(f"{path} belongs to user {status.st_uid}: remove it, or name another directory")
        if status.st_mode & (_GROUP_WRITES | _OTHERS_WRITE):
            raise SettingsError(f"{path} can be written by other users: remove it, or name another directory")
        if stat.S_IMODE(status.st_mode) != 0o700:
            os.fchmod(descriptor, 0o700)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def private_directory(path: Path) -> Path:
    """Makes a directory that only this user may enter, at a path that no other user can change.

    Root and the members of this process's group count as this user for the directories above it.

    Args:
        path: the directory; missing parents are made.

    Returns:
        The path.

    Raises:
        SettingsError: as `open_private`, or another user can rename the directory or one above it.
        OSError: it cannot be made or opened.
    """
    os.close(open_private(path))
    for above in (*path.absolute().parents, *path.resolve().parents):
        if _can_be_renamed_below(above.lstat()):
            raise SettingsError(f"{path} is below {above}, whose entries other users can rename: name another one")
    return path


def _can_be_renamed_below(status: os.stat_result) -> bool:
    if status.st_uid not in (0, os.geteuid()):
        return True
    if stat.S_ISLNK(status.st_mode) or status.st_mode & stat.S_ISVTX:
        return False
    group_writes = status.st_mode & _GROUP_WRITES and status.st_gid not in (0, os.getegid())
    return bool(status.st_mode & _OTHERS_WRITE or group_writes)

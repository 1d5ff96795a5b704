"""Identity of a directory on a disk: its path without links, its mount, and the inodes on the way to it."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

Inode: TypeAlias = tuple[int, int]
Region: TypeAlias = tuple[str, tuple[str, ...]]
"""A file system, and the parts of a path within it."""

_MOUNTS = "/proc/self/mountinfo"
_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class DirectoryPlace:
    """A directory, or a path where one can be made.

    Three facts show that two paths lead to one directory. Each of them finds other cases:

    * the path without links and `..`: a file system that is mounted below a directory belongs to it;
    * the inodes of all existing directories on the way: other spellings, also on file systems that ignore case;
    * the file system of a mount and the path within it: a bind mount of a part of a tree, seen from above.

    Args:
        parts: the parts of the path, without links, `.` and `..`.
        inodes: device and inode of `/` and of each existing directory on the way; not of names that do not exist.
        ignores_case: whether the file system takes `A` and `a` for one name.
        region: the place within its file system; None if it is not known.
        mounted: the mounts below the directory: the names of the mount point below it, and the region of the mount.
    """

    parts: tuple[str, ...]
    inodes: tuple[Inode, ...]
    ignores_case: bool
    region: Region | None
    mounted: tuple[tuple[tuple[str, ...], Region], ...]

    @classmethod
    def of(cls, path: str) -> DirectoryPlace:
        """The place of an absolute path, which need not exist."""
        parts = _split(os.path.realpath(path))
        inodes = tuple(_inodes(parts))
        existing = parts[: max(len(inodes) - 1, 0)]
        region, mounted = _regions(parts, existing)
        return cls(parts, inodes, _ignores_case(existing), region, mounted)

    @property
    def address(self) -> str:
        """The path without links."""
        return _joined(self.parts)

    def names_to(self, other: DirectoryPlace) -> tuple[str, ...] | None:
        """The names from this directory down to the other directory; None if that is not below this one."""
        if self._folded(other.parts[: len(self.parts)]) == self._folded(self.parts):
            return other.parts[len(self.parts) :]
        for point, region in self._shown:
            if other.region is not None and _holds(region, other.region):
                return point + other.region[1][len(region[1]) :]
        if not self.inodes:
            return None
        missing = self._folded(self.parts[len(self.inodes) - 1 :])
        for level, inode in enumerate(other.inodes):
            if inode == self.inodes[-1] and self._folded(other.parts[level : level + len(missing)]) == missing:
                return other.parts[level + len(missing) :]
        return None

    def crosses(self, other: DirectoryPlace) -> bool:
        """True if a mount below one directory shows a part of the other, although neither contains the other."""
        return any(
            _holds(one, another) or _holds(another, one) for _, one in self._shown for _, another in other._shown
        )

    @property
    def _shown(self) -> tuple[tuple[tuple[str, ...], Region], ...]:
        """The regions that a listing of the directory shows, with the names down to each."""
        return self.mounted if self.region is None else (((), self.region), *self.mounted)

    def _folded(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        if not self.ignores_case:
            return parts
        return tuple(unicodedata.normalize("NFC", part).casefold() for part in parts)


def _holds(region: Region, other: Region) -> bool:
    return region[0] == other[0] and other[1][: len(region[1])] == region[1]


def _split(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part)


def _joined(parts: tuple[str, ...]) -> str:
    return "/" + "/".join(parts)


def _inodes(parts: tuple[str, ...]) -> Iterator[Inode]:
    """Device and inode of each directory on a path, as far as it exists and can be looked at."""
    for level in range(len(parts) + 1):
        try:
            status = os.lstat(_joined(parts[:level]))
        except OSError:
            return
        yield status.st_dev, status.st_ino


def _ignores_case(existing: tuple[str, ...]) -> bool:
    """True if the deepest existing directory with a letter in its name is also found with the case swapped."""
    for level in range(len(existing), 0, -1):
        swapped = existing[level - 1].swapcase()
        if swapped != existing[level - 1]:
            try:
                here, there = (
                    os.lstat(_joined((*existing[: level - 1], name))) for name in (existing[level - 1], swapped)
                )
            except OSError:
                return False
            return os.path.samestat(here, there)
    return False


def _regions(
    parts: tuple[str, ...], existing: tuple[str, ...]
) -> tuple[Region | None, tuple[tuple[tuple[str, ...], Region], ...]]:
    """The region of a path, and the regions of the mounts below it."""
    mounts = {number: (device, root, point) for number, device, root, point in _mounts()}
    found = mounts.get(_mount_of(_joined(existing)))
    region = None
    if found is not None:
        device, root, point = found
        if parts[: len(point)] == point:
            region = device, root + parts[len(point) :]
    below = {
        (point[len(parts) :], (device, root))
        for device, root, point in mounts.values()
        if len(point) > len(parts) and point[: len(parts)] == parts
    }
    return region, tuple(sorted(below))


def _mounts() -> Iterator[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
    """Number, device, path within the file system, and mount point of each mount; nothing where the system has no list.

    proc(5) describes the columns.
    """
    try:
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                number, _, device, root, point = line.split(" ")[:5]
                kind = line.partition(" - ")[2].partition(" ")[0]
                # NFS shows `/` as the path of every mount, so its mounts of two directories of a server look equal.
                if not kind.startswith("nfs"):
                    yield number, device, _split(_unescaped(root)), _split(_unescaped(point))
    except OSError:
        return


def _mount_of(path: str) -> str:
    """The number of the mount that a path is on, which also counts mounts that hide others; empty if it is unknown."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (AttributeError, OSError):
        return ""
    try:
        with open(f"/proc/self/fdinfo/{descriptor}") as lines:
            return next((line.split()[1] for line in lines if line.startswith("mnt_id:")), "")
    except OSError:
        return ""
    finally:
        os.close(descriptor)


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)

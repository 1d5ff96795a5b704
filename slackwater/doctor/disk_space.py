"""Room on the disks that a run writes to."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from slackwater.doctor.finding import Finding
from state.location import Location

_GIB = 1 << 30
_LEAST_BYTES = _GIB // 4
_ENOUGH_BYTES = 5 * _GIB
# Ray writes no more objects to a disk that is fuller.
_RAY_FULL = 0.95


class DiskSpaceCheck:
    """The temporary directory, Ray's, and the root's disk.

    Args:
        root: None if nobody asks about one.
    """

    name = "disk"

    def __init__(self, root: Location | None) -> None:
        self._root = root

    def findings(self) -> Iterator[Finding]:
        temporary = Path(tempfile.gettempdir())
        yield _finding("temporary files", temporary, "set TMPDIR to a directory on another disk")
        ray = Path(os.environ.get("RAY_TMPDIR") or "/tmp") / "ray"
        yield _finding("ray's files", ray, "set RAY_TMPDIR to a directory on another disk", full=_RAY_FULL)
        if self._root is not None and self._root.is_local:
            yield _finding("root's disk", self._root.path, "take another root")


def _finding(name: str, directory: Path, remedy: str, full: float = 1.0) -> Finding:
    """How much room there is for a directory, which need not exist yet."""
    existing = next(each for each in (directory, *directory.parents) if each.exists())
    if not existing.is_dir():
        return Finding.wrong(name, f"{existing} is no directory", remedy)
    if not os.access(existing, os.W_OK | os.X_OK):
        return Finding.wrong(name, f"{existing} cannot be written by this user", remedy)
    usage = shutil.disk_usage(existing)
    found = f"{usage.free / _GIB:,.1f} GiB are free for {directory}"
    if usage.free < _LEAST_BYTES:
        return Finding.wrong(name, found, f"make room, or {remedy}")
    if usage.total - usage.free > usage.total * full:
        said = f"{found}, less than {1 - full:.0%} of the disk: Ray spills no objects there"
        return Finding.warning(name, said, f"make room, or {remedy}")
    if usage.free < _ENOUGH_BYTES:
        return Finding.warning(name, found, f"make room, or {remedy}")
    return Finding.ok(name, found)

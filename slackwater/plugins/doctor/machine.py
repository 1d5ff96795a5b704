"""Checks of the machine: memory, shared memory, open files, and disk space."""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil

from slackwater.plugins.doctor.finding import Finding
from state.location import Location

_GIB = 1 << 30
_ENOUGH_BYTES = 4 * _GIB
_LEAST_BYTES = 2 * _GIB
_ENOUGH_FILES = 8_192
_LEAST_FILES = 1_024
# Ray's default share of the memory for objects.
_OBJECT_SHARE = 0.3
_SHARED = Path("/dev/shm")
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_USES = (Path("/sys/fs/cgroup/memory.current"), Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"))


class MachineCheck:
    """Memory, shared memory and open files for Ray and Spark; the limits of a container count."""

    name = "machine"

    def findings(self) -> Iterator[Finding]:
        total, available = _memory()
        yield _memory_finding(total, available)
        if _SHARED.is_dir():
            yield _shared_finding(total, shutil.disk_usage(_SHARED).free)
        yield _files_finding(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def _memory_finding(total: int, available: int) -> Finding:
    found = f"{available / _GIB:,.1f} of {total / _GIB:,.1f} GiB are available"
    remedy = "end other programs, use a larger machine, or give Spark less: SparkSettings(executor_memory=...)"
    if available < _LEAST_BYTES:
        return Finding.wrong("memory", found, f"Ray and Spark need at least {_LEAST_BYTES // _GIB} GiB: {remedy}")
    if available < _ENOUGH_BYTES:
        return Finding.warning("memory", found, remedy)
    return Finding.ok("memory", found)


def _shared_finding(total: int, free: int) -> Finding:
    found = f"{free / _GIB:,.1f} GiB are free in {_SHARED}"
    if free >= total * _OBJECT_SHARE:
        return Finding.ok("shared memory", found)
    wanted = total * _OBJECT_SHARE / _GIB
    return Finding.warning(
        "shared memory",
        f"{found}; Ray needs {wanted:,.1f} GiB, and uses files in its temporary directory instead",
        f"start the container with --shm-size={wanted:,.0f}g",
    )


def _files_finding(limit: int) -> Finding:
    if limit == resource.RLIM_INFINITY or limit >= _ENOUGH_FILES:
        shown = "no limit" if limit == resource.RLIM_INFINITY else f"up to {limit:,}"
        return Finding.ok("open files", shown)
    remedy = f"ulimit -n {_ENOUGH_FILES}"
    if limit < _LEAST_FILES:
        return Finding.wrong("open files", f"up to {limit:,}, too few for Ray", remedy)
    return Finding.warning("open files", f"up to {limit:,}; many actors need more", remedy)


def _memory() -> tuple[int, int]:
    """Total and available bytes of the machine, or of the container of this process."""
    memory = psutil.virtual_memory()
    limit, used = _first_number(_LIMITS), _first_number(_USES)
    if limit is None or used is None or limit >= memory.total:
        return memory.total, memory.available
    return limit, min(memory.available, max(0, limit - used))


def _first_number(files: tuple[Path, ...]) -> int | None:
    for file in files:
        if file.is_file():
            text = file.read_text().strip()
            return int(text) if text.isdigit() else None
    return None


_LEAST_DISK_BYTES = (1 << 30) // 4
_ENOUGH_DISK_BYTES = 5 * _GIB
# Ray spills no objects to a disk above this share.
_RAY_FULL = 0.95
# Ray's library for Java is loaded from there, for any `RAY_TMPDIR`.
_RAY_JAVA = Path("/tmp/ray")


class DiskSpaceCheck:
    """Free space for temporary files, for Ray's files, and for a local root.

    Args:
        root: the root to check; None for none.
    """

    name = "disk"

    def __init__(self, root: Location | None) -> None:
        self._root = root

    def findings(self) -> Iterator[Finding]:
        temporary = Path(tempfile.gettempdir())
        yield _finding("temporary files", temporary, "set TMPDIR to a directory on another disk")
        ray = Path(os.environ.get("RAY_TMPDIR") or "/tmp") / "ray"
        yield _finding("ray's files", ray, "set RAY_TMPDIR to a directory on another disk", full=_RAY_FULL)
        yield from _foreign({ray, _RAY_JAVA})
        if self._root is not None and self._root.is_local:
            yield _finding("root's disk", self._root.path, "use another root")


def _foreign(directories: Iterable[Path]) -> Iterator[Finding]:
    """Warnings of directories that another user owns, except root: their owner can replace the code that Ray loads."""
    for directory in sorted(directories):
        owner = directory.stat().st_uid if directory.exists() else 0
        if owner not in (0, os.geteuid()):
            found = f"{directory} belongs to user {owner}, who can replace code that Ray loads from there"
            yield Finding.warning("ray's owner", found, "trust that user, or run where /tmp is private (a container)")


def _finding(name: str, directory: Path, remedy: str, full: float = 1.0) -> Finding:
    """The free space for a directory, which need not exist yet."""
    existing = next(each for each in (directory, *directory.parents) if each.exists())
    if not existing.is_dir():
        return Finding.wrong(name, f"{existing} is not a directory", remedy)
    if not os.access(existing, os.W_OK | os.X_OK):
        return Finding.wrong(name, f"{existing} cannot be written by this user", remedy)
    usage = shutil.disk_usage(existing)
    if not usage.total:
        return Finding.wrong(name, f"the file system of {existing} keeps no files", remedy)
    found = f"{usage.free / _GIB:,.1f} GiB are free for {directory}"
    if usage.free < _LEAST_DISK_BYTES:
        return Finding.wrong(name, found, f"make room, or {remedy}")
    if usage.total - usage.free > usage.total * full:
        said = f"{found}, less than {1 - full:.0%} of the disk: Ray spills no objects there"
        return Finding.warning(name, said, f"make room, or {remedy}")
    if usage.free < _ENOUGH_DISK_BYTES:
        return Finding.warning(name, found, f"make room, or {remedy}")
    return Finding.ok(name, found)

"""Memory, shared memory and open files of this machine or container."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Iterator
from pathlib import Path

import psutil

from slackwater.doctor.finding import Finding

_GIB = 1 << 30
_ENOUGH_BYTES = 4 * _GIB
_LEAST_BYTES = 2 * _GIB
_ENOUGH_FILES = 8_192
_LEAST_FILES = 1_024
# What Ray takes of the memory for objects, unless it is told.
_OBJECT_SHARE = 0.3
_SHARED = Path("/dev/shm")
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_USES = (Path("/sys/fs/cgroup/memory.current"), Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"))


class MachineCheck:
    """What Ray and Spark need of the machine; the limits of a container count."""

    name = "machine"

    def findings(self) -> Iterator[Finding]:
        total, available = _memory()
        yield _memory_finding(total, available)
        if _SHARED.is_dir():
            yield _shared_finding(total, shutil.disk_usage(_SHARED).free)
        yield _files_finding(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def _memory_finding(total: int, available: int) -> Finding:
    found = f"{available / _GIB:,.1f} of {total / _GIB:,.1f} GiB are available"
    remedy = "end other programs, or take a larger machine; less for Spark: SparkSettings(executor_memory=...)"
    if available < _LEAST_BYTES:
        return Finding.wrong("memory", found, f"Ray and Spark need {_LEAST_BYTES // _GIB} GiB at least: {remedy}")
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
        f"{found}; Ray would take {wanted:,.1f} GiB, and uses files in its temporary directory instead",
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
    """All and available bytes, of the machine or of the container in which this runs."""
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

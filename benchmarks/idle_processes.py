"""CPU time, wakeups and memory of a process and its descendants over a while, from `/proc`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

# A mark of a command line → the kind of its process; the first one counts.
_KINDS = (
    ("ray::DashboardAgent", "Ray's agent"),
    ("dashboard/agent.py", "Ray's agent"),
    ("ray::RuntimeEnvAgent", "Ray's runtime environment agent"),
    ("runtime_env/agent/main.py", "Ray's runtime environment agent"),
    ("ray::", "actors"),
    ("fork_server", "fork server"),
    ("SparkSubmit", "driver's JVM"),
    ("DefaultWorker", "executor's JVM"),
    ("raylet/raylet", "Ray's raylet"),
    ("gcs_server", "Ray's GCS"),
)
_CLASS = re.compile(r"ray::(?:.*:)?(\w+)")


@dataclass(frozen=True)
class ProcessUse:
    """The use of one kind of process.

    Args:
        processes: the number of processes.
        cpu_s: seconds on a core.
        wakeups: the number of times that a living thread has given its core away.
        pss_mib: memory, with a share of every page that processes have in common.
    """

    processes: int
    cpu_s: float
    wakeups: int
    pss_mib: float


@dataclass(frozen=True)
class _Process:
    kind: str
    cpu_s: float
    wakeups: Mapping[str, int]
    pss_mib: float


class ProcessUses:
    """Samples from its making on.

    Args:
        pid: of the process whose descendants are sampled with it.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._before = _processes(pid)

    def since(self) -> dict[str, ProcessUse]:
        """Kind → its use since the making, the largest CPU time first; of processes that still live."""
        uses: dict[str, ProcessUse] = defaultdict(lambda: ProcessUse(0, 0.0, 0, 0.0))
        for pid, now in _processes(self._pid).items():
            before = self._before.get(pid, _Process(now.kind, 0.0, {}, 0.0))
            use = uses[now.kind]
            wakeups = sum(count - before.wakeups.get(thread, 0) for thread, count in now.wakeups.items())
            uses[now.kind] = ProcessUse(
                use.processes + 1,
                use.cpu_s + now.cpu_s - before.cpu_s,
                use.wakeups + wakeups,
                use.pss_mib + now.pss_mib,
            )
        return dict(sorted(uses.items(), key=lambda each: -each[1].cpu_s))


def _processes(pid: int) -> dict[int, _Process]:
    processes = {}
    top = psutil.Process(pid)
    for each in (top, *top.children(recursive=True)):
        try:
            kind = "driver" if each.pid == pid else kind_of(" ".join(each.cmdline()))
            times = each.cpu_times()
            processes[each.pid] = _Process(kind, times.user + times.system, _wakeups(each.pid), _pss_mib(each.pid))
        except (psutil.Error, OSError):  # it has ended
            continue
    return processes


def kind_of(command: str) -> str:
    """The kind of a process, from its command line."""
    kind = next((kind for mark, kind in _KINDS if mark in command), "others")
    named = _CLASS.match(command)
    return f"actor {named[1]}" if kind == "actors" and named is not None else kind


def _wakeups(pid: int) -> dict[str, int]:
    """Thread → its voluntary switches, of the living threads."""
    wakeups = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            wakeups[task.name] = int(_value(task / "status", "voluntary_ctxt_switches"))
    return wakeups


def _pss_mib(pid: int) -> float:
    return int(_value(Path(f"/proc/{pid}/smaps_rollup"), "Pss")) / 1024


def _value(path: Path, name: str) -> str:
    for line in path.read_text().splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return value.split()[0]
    raise OSError(f"{path} has no {name}")

"""CPU seconds of this process and its descendants, by kind of process."""

from __future__ import annotations

from collections.abc import Callable

import psutil

THE_SERVER = "the S3 server"


def kind_of(command: list[str]) -> str:
    """The kind of a process, from its command line."""
    program = command[0] if command else ""
    if program.startswith("ray::FetchActor"):
        return "the fetch actors"
    if program.startswith("ray::") and "IDLE" not in program:
        return "our other actors"
    if program.endswith("java"):
        return "Spark"
    if program.endswith("weed"):
        return THE_SERVER
    return "Ray and the rest"


class CpuMeter:
    """From its making on.

    Args:
        kind: the kind of a process, from its command line.
    """

    def __init__(self, kind: Callable[[list[str]], str] = kind_of) -> None:
        self._kind = kind
        self._before = self._spent()

    def seconds(self) -> dict[str, float]:
        """Of each kind of process, the largest first; of processes that still live."""
        spent: dict[str, float] = {}
        for (pid, kind), now in self._spent().items():
            spent[kind] = spent.get(kind, 0.0) + now - self._before.get((pid, kind), 0.0)
        return dict(sorted(spent.items(), key=lambda each: -each[1]))

    def _spent(self) -> dict[tuple[int, str], float]:
        own = psutil.Process()
        found: dict[tuple[int, str], float] = {(own.pid, "the driver"): _of(own)}
        for process in own.children(recursive=True):
            try:
                found[process.pid, self._kind(process.cmdline())] = _of(process)
            except psutil.Error:
                continue
        return found


def _of(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)

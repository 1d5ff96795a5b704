"""CPU seconds of this process and its descendants, by kind of process."""

from __future__ import annotations

import psutil

THE_SERVER = "the S3 server"


class CpuMeter:
    """From its making on."""

    def __init__(self) -> None:
        self._before = _seconds()

    def seconds(self) -> dict[str, float]:
        """Of each kind of process, the largest first; of processes that still live."""
        spent: dict[str, float] = {}
        for (pid, kind), now in _seconds().items():
            spent[kind] = spent.get(kind, 0.0) + now - self._before.get((pid, kind), 0.0)
        return dict(sorted(spent.items(), key=lambda each: -each[1]))


def _seconds() -> dict[tuple[int, str], float]:
    own = psutil.Process()
    found: dict[tuple[int, str], float] = {(own.pid, "the driver"): _of(own)}
    for process in own.children(recursive=True):
        try:
            found[process.pid, kind_of(process.cmdline())] = _of(process)
        except psutil.Error:
            continue
    return found


def _of(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


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

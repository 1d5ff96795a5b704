"""Memory of this process and its descendants, by kind of process."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import psutil

DRIVER = "the driver"
JAVA = "Spark's JVMs"


class MemoryMeter:
    """Samples in a thread, from its making until `close`, what processes hold without sharing it.

    Args:
        every_s: the seconds between two samples.

    Attributes:
        lines: kind of process → (seconds since the making, MiB of the largest one).  An actor's kind is its class.
    """

    def __init__(self, every_s: float) -> None:
        self.lines: dict[str, list[tuple[float, float]]] = {}
        self._every_s = every_s
        self._over = threading.Event()
        self._started = time.perf_counter()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join()

    @property
    def most(self) -> dict[str, float]:
        """Kind of process → the most that one held, in MiB; the largest first."""
        most = {kind: max(mib for _, mib in line) for kind, line in self.lines.items()}
        return dict(sorted(most.items(), key=lambda each: -each[1]))

    def _sample(self) -> None:
        own = psutil.Process()
        while not self._over.wait(self._every_s):
            held: dict[str, float] = {}
            for process in (own, *own.children(recursive=True)):
                try:
                    kind = DRIVER if process == own else _kind(process.cmdline())
                    memory = process.memory_info()
                except psutil.Error:
                    continue
                held[kind] = max(held.get(kind, 0.0), (memory.rss - memory.shared) / 2**20)
            at = time.perf_counter() - self._started
            for kind, mib in held.items():
                self.lines.setdefault(kind, []).append((at, mib))


def _kind(command: list[str]) -> str:
    program = command[0] if command else ""
    if program.startswith("ray::"):
        # "ray::Class", "ray::Class.method" or "ray::name of the actor:Class.method".
        return program.rpartition(":")[2].partition(".")[0]
    if Path(program).name == "java":
        return JAVA
    return "`slackwater`" if "slackwater" in command else "Ray and the rest"

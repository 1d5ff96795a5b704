"""The load of this machine, for messages about starts that took too long."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def machine_load() -> str:
    """The load of this machine, and its processors."""
    processors = str(os.cpu_count())
    with suppress(OSError, ValueError):  # "max" is not a number
        quota, period = _CPU_QUOTA.read_text(encoding="ascii").split()
        processors = f"{int(quota) / int(period):g} of {processors}"
    return f"load {os.getloadavg()[0]:.1f}, processors: {processors}"

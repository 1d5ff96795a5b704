"""Machine of a measurement."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version

import psutil

_PACKAGES = ("ray", "raydp", "pyspark", "pyarrow", "pylance", "obstore")


def today() -> str:
    """In UTC."""
    return datetime.now(UTC).date().isoformat()


def this_machine() -> str:
    """Cores, memory, Python and the packages that matter."""
    memory = psutil.virtual_memory().total / 2**30
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    return f"{os.cpu_count()} cores, {memory:.0f} GiB, Python {platform.python_version()}, {packages}"


def describe_machine() -> str:
    """One line: the day and the machine."""
    return f"{today()}: {this_machine()}"

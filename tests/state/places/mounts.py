"""Bind mounts for tests."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def bind_mount(source: Path, point: Path) -> Iterator[None]:
    """Mounts `source` at `point`; the test is skipped where mounts are not permitted."""
    point.mkdir(parents=True, exist_ok=True)
    try:
        mounted = subprocess.run(["mount", "--bind", source, point], capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("this machine has no command `mount`")
    if mounted.returncode:
        pytest.skip(f"this user may not mount: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", point], check=True)

"""Size of a directory: its files and their bytes."""

from __future__ import annotations

from pathlib import Path


def directory_size(directory: Path) -> int:
    """Bytes of all files below a directory; 0 if there is none."""
    return sum(each.stat().st_size for each in directory.rglob("*") if each.is_file())

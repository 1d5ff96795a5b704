"""Numbers of files in the plan of a run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Files:
    """A number of files, and their bytes in the store."""

    files: int = 0
    bytes: int = 0

    def __add__(self, other: Files) -> Files:
        return Files(self.files + other.files, self.bytes + other.bytes)


NO_FILES = Files()

"""Files that were found and are not handed on yet."""

from __future__ import annotations

from heapq import nsmallest
from itertools import islice

from actors.messages import FileVersion
from actors.reading_order import place


class HeldFiles:
    """Each path once, in its latest version.

    Args:
        order: in which they are handed on, see `SourceDefinition`; None for that in which they were found.
    """

    def __init__(self, order: str | None) -> None:
        self._order = order
        self._files: dict[str, FileVersion] = {}

    def __len__(self) -> int:
        return len(self._files)

    def __contains__(self, path: str) -> bool:
        return path in self._files

    def add(self, file: FileVersion) -> None:
        """A file was found."""
        self._files[file.path] = file

    def take(self, count: int) -> tuple[FileVersion, ...]:
        """The next ones, up to so many."""
        order = self._order
        if order is None:
            files = tuple(islice(self._files.values(), count))
        else:
            files = tuple(nsmallest(count, self._files.values(), key=lambda each: place(each, order)))
        for each in files:
            del self._files[each.path]
        return files

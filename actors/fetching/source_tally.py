"""Running counts of one source in one fetch actor."""

from __future__ import annotations

from dataclasses import fields

from actors.fetching.file_progress import FileStatus
from actors.protocol.counters import SourceProgress


class SourceTally:
    """Counts of a source since the start of the actor; `waiting` and `reading` are the present numbers of files."""

    def __init__(self) -> None:
        self._counts = {each.name: 0 for each in fields(SourceProgress)}

    def add(self, **counts: int) -> None:
        """Adds to counters of `SourceProgress`, by their names."""
        for name, number in counts.items():
            self._counts[name] += number

    def begin_reading(self) -> None:
        """Counts a file that waited and is read now."""
        self.add(waiting=-1, reading=1)

    def end_reading(self) -> None:
        """Counts a file that is not read any more, and is not finished yet."""
        self.add(waiting=1, reading=-1)

    def finish(self, status: FileStatus) -> None:
        """Counts the end of a file that is not being read."""
        self.add(waiting=-1)
        if status != "forgotten":
            self.add(**{status: 1})

    def as_progress(self) -> SourceProgress:
        """The counts, as the fetch actor reports them."""
        return SourceProgress(**self._counts)

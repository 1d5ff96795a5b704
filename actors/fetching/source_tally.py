"""Running counts of one source in one fetch actor."""

from __future__ import annotations

from dataclasses import dataclass

from actors.fetching.file_progress import FileStatus
from actors.protocol.reports import SourceProgress


@dataclass
class SourceTally:
    """Counts of a source's files since the start of the actor; `unfinished` and `reading` are as of now."""

    unfinished: int = 0
    reading: int = 0
    done: int = 0
    quarantined: int = 0
    vanished: int = 0
    rows: int = 0
    rows_bad: int = 0
    bytes: int = 0
    requests: int = 0
    changes_ignored: int = 0

    def finish(self, status: FileStatus) -> None:
        """Counts the end of one file."""
        self.unfinished -= 1
        match status:
            case "done":
                self.done += 1
            case "quarantined":
                self.quarantined += 1
            case "vanished":
                self.vanished += 1
            case "forgotten":
                pass

    def as_progress(self) -> SourceProgress:
        """The counts, as the fetch actor reports them."""
        return SourceProgress(
            waiting=self.unfinished - self.reading,
            reading=self.reading,
            done=self.done,
            quarantined=self.quarantined,
            vanished=self.vanished,
            rows=self.rows,
            rows_bad=self.rows_bad,
            bytes=self.bytes,
            requests=self.requests,
            changes_ignored=self.changes_ignored,
        )

"""Running counts of one source in one fetch actor."""

from __future__ import annotations

from dataclasses import dataclass

from actors.fetching.file_progress import FileProgress
from actors.protocol.reports import SourceProgress


@dataclass
class SourceTally:
    """What happened to a source's files since the actor's start; `unfinished` and `reading` are as of now."""

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

    def finish(self, status: str) -> None:
        """One file has ended with the ledger's `status`."""
        self.unfinished -= 1
        if status == "forgotten":
            return
        setattr(self, status, getattr(self, status) + 1)

    def leave(self, progress: FileProgress) -> None:
        """One unfinished file goes to another fetch actor."""
        self.unfinished -= 1
        self.reading -= progress.is_reading

    def as_progress(self) -> SourceProgress:
        """The counts as they are reported."""
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

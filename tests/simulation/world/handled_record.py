"""The record of handled files, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from actors.listing.run_deletions import RunDeletion
from tests.simulation.world.simulated_root import Access

if TYPE_CHECKING:
    from state.lance.handled_files import ClockChange, CommitTime, HandledFile, Outcome


class HandledRows:
    """The rows of the record of one root, which outlive every process.

    Attributes:
        files: what was done, in its order.
        clock_changes: the changes of the clock that were noticed.
        commit_times: the recorded times of commits.
        done: source, action and epoch of each row that says that all files up to an epoch are done.
    """

    def __init__(self) -> None:
        self.files: list[HandledFile] = []
        self.clock_changes: list[ClockChange] = []
        self.commit_times: list[CommitTime] = []
        self.done: list[tuple[str, str, int]] = []


class SimulatedRecord:
    """See `HandledFiles`: the record by the way of one process, which may die before a row is written, or after it.

    Args:
        rows: of the root.
        access: the way of the process.
    """

    def __init__(self, rows: HandledRows, access: Access) -> None:
        self._rows, self._access = rows, access

    def append(self, files: Sequence[HandledFile], done: tuple[str, str, int, datetime] | None = None) -> None:
        self._access.before("note")
        self._rows.files += files
        if done is not None:
            self._rows.done.append(done[:3])
        self._access.after("note")

    def done_until(self, source: str, action: str) -> int:
        self._access.read()
        return max((epoch for *of, epoch in self._rows.done if of == [source, action]), default=0)

    def since(self, source: str, action: str, epoch: int) -> dict[tuple[str, bytes], Outcome]:
        self._access.read()
        return {(each.path, each.version): each.outcome for each in self._of(source, action) if each.epoch > epoch}

    def unfinished(self, source: str, action: str) -> dict[tuple[str, bytes], Outcome]:
        self._access.read()
        outcomes = {(each.path, each.version): each.outcome for each in self._of(source, action)}
        return {file: outcome for file, outcome in outcomes.items() if outcome in ("failed", "waits")}

    def append_clock_change(self, change: ClockChange) -> None:
        self._access.before("note")
        self._rows.clock_changes.append(change)
        self._access.after("note")

    def clock_change(self) -> ClockChange | None:
        self._access.read()
        return self._rows.clock_changes[-1] if self._rows.clock_changes else None

    def append_commit_time(self, commit: CommitTime) -> None:
        self._access.before("note")
        self._rows.commit_times.append(commit)
        self._access.after("note")

    def commit_times(self) -> list[CommitTime]:
        self._access.read()
        return sorted(self._rows.commit_times, key=lambda each: each.epoch)

    def _of(self, source: str, action: str) -> list[HandledFile]:
        return [each for each in self._rows.files if (each.source, each.action) == (source, action)]


class RecordedDeletions:
    """See `Deletions`: the record as a list actor reads it.

    Args:
        rows: of the root.
        access: the way of the actor.
        source: its source.
    """

    def __init__(self, rows: HandledRows, access: Access, source: str) -> None:
        self._rows, self._access, self._source = rows, access, source
        self._read = 0

    def news(self) -> list[RunDeletion]:
        self._access.read()
        new = self._rows.files[self._read :]
        self._read += len(new)
        return [
            RunDeletion(each.path, each.version, each.last_modified)
            for each in new
            if each.source == self._source and each.outcome in ("done", "absent") and each.last_modified is not None
        ]

"""FileAccess: the store that the work on files reads, the record that it keeps, and the objects that it changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Protocol

import structlog

from actors.files import FileVersion
from actors.objects.object_changes import ObjectChanges
from slackwater.plugins.after_commit.due_files import DueFile
from state.clock import Clock
from state.lance.handled_files import ClockChange, CommitTime, HandledFile, HandledFiles, Outcome
from state.lance.lance_access import open_dataset
from state.lance.lance_root import LanceRoot
from state.location import Location
from state.store.store import StateStore
from state.tables.records import ViewVersion
from state.tables.row_selection import quoted
from state.tables.stored_rows import PATH_COLUMN, VERSION_COLUMN

_AT_ONCE = 8


class Changes(Protocol):
    """See `ObjectChanges`."""

    def delete(self, file: FileVersion) -> None: ...

    def copy(self, file: FileVersion, target: Location) -> None: ...

    def tag(self, file: FileVersion, tags: Mapping[str, str]) -> None: ...


class FileRecord(Protocol):
    """See `HandledFiles`."""

    def append(self, files: Sequence[HandledFile], done: tuple[str, str, int, datetime] | None = None) -> None: ...

    def done_until(self, source: str, action: str) -> int: ...

    def since(self, source: str, action: str, epoch: int) -> dict[tuple[str, bytes], Outcome]: ...

    def unfinished(self, source: str, action: str) -> dict[tuple[str, bytes], Outcome]: ...

    def append_clock_change(self, change: ClockChange) -> None: ...

    def clock_change(self) -> ClockChange | None: ...

    def append_commit_time(self, commit: CommitTime) -> None: ...

    def commit_times(self) -> list[CommitTime]: ...


@dataclass(frozen=True)
class FileResult:
    """The result of the work on one file."""

    outcome: Outcome
    error: str | None = None


class Together(Protocol):
    """Handles some files, one or several at a time, and returns the results in their order."""

    def __call__(
        self, handle: Callable[[DueFile], FileResult | None], files: Sequence[DueFile], /
    ) -> Iterable[FileResult | None]: ...


@dataclass(frozen=True)
class FileAccess:
    """The parts of the world that `FileWork` uses.

    Args:
        open: opens the store of a root or of a branch to read it.
        changes: returns the changes to the objects of a location.
        together: see `Together`.
        stored_rows: returns the number of rows of each version of some paths, in a version of the stored rows of a
            source: (path, `version_number`) → rows.
        log: the log of the work.
    """

    open: Callable[[Location], StateStore]
    record: FileRecord
    changes: Callable[[Location], Changes]
    together: Together
    stored_rows: Callable[[ViewVersion, Sequence[str]], Mapping[tuple[str, int], int]]
    log: Any = field(default_factory=lambda: structlog.get_logger(actor="files"))

    @classmethod
    def of(cls, root: Location, clock: Clock) -> FileAccess:
        """The store and the record at a root, and objects as they are."""
        return cls(
            open=lambda location: LanceRoot(location, clock).open(read_only=True),
            record=HandledFiles(root),
            changes=ObjectChanges,
            together=_Threads(),
            stored_rows=partial(_stored_rows, root),
        )


class _Threads:
    """Eight files at a time.  The threads begin with the first files."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None

    def __call__(
        self, handle: Callable[[DueFile], FileResult | None], files: Sequence[DueFile], /
    ) -> Iterable[FileResult | None]:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="files")
        return self._threads.map(handle, files)


def _stored_rows(root: Location, version: ViewVersion, paths: Sequence[str]) -> dict[tuple[str, int], int]:
    names = [PATH_COLUMN, VERSION_COLUMN]
    where = f"{PATH_COLUMN} IN ({', '.join(map(quoted, paths))})"
    rows = open_dataset(root.child(version.path), version.version).to_table(columns=names, filter=where)
    found = rows.group_by(names).aggregate([([], "count_all")])
    keys = zip(*(found[name].to_pylist() for name in names), strict=True)
    return dict(zip(keys, found["count_all"].to_pylist(), strict=True))

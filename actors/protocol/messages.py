"""Messages between actors.  Barriers and file names travel whole; rows travel as references."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from actors.files import ChangedFile, DeletedFile, FileBatch, FileVersion, ForgottenFile, RetriedFile


class Message:
    """A message from actor to actor."""


@dataclass(frozen=True)
class RetriedFiles(Message):
    """The files of a `Retry` for one fetch actor; they follow the barrier."""

    files: tuple[RetriedFile, ...]


@dataclass(frozen=True)
class ForgottenFiles(Message):
    """The files of a `Forget` for one fetch actor; they follow the barrier."""

    files: tuple[ForgottenFile, ...]


@dataclass(frozen=True)
class _FileVersions(Message):
    """Versions to read, which travel as columns."""

    files: tuple[FileVersion, ...]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "files": FileBatch(self.files)}


@dataclass(frozen=True)
class RereadFiles(_FileVersions):
    """The files of a `Reread` for one fetch actor; they follow the barrier."""


@dataclass(frozen=True)
class NewFiles(_FileVersions):
    """Versions to read, in the order of the listing.

    Args:
        sample: number of files of their source that were sent ahead so far to show its schema; 0 if it has one.
    """

    sample: int = 0


@dataclass(frozen=True)
class ChangedFiles(Message):
    """Changed versions: noted in the ledger, and read only if no row of the earlier version was read."""

    files: tuple[ChangedFile, ...]


@dataclass(frozen=True)
class DeletedFiles(Message):
    """Deleted files: noted in the ledger.  With `on_change="replace"`, their rows are retracted from the views."""

    files: tuple[DeletedFile, ...]


@dataclass(frozen=True)
class Envelope:
    """One message on one edge.  `sequence` counts from 0 without gaps."""

    edge: str
    sequence: int
    message: Message

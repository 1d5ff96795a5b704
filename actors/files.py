"""Versions of objects, as the actors name them to each other."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

PathKey = tuple[str, str]
"""An object: its source, and its path relative to that."""
FileKey = tuple[str, str, bytes]
"""One version of an object: source, path, version."""


@dataclass(frozen=True)
class Vanished:
    """A version that was not there any more when it was to be read, and of which no row is in the views.

    `is_removed` says that some were, and have left them.
    """

    source: str
    path: str
    version: bytes
    is_removed: bool = False


@dataclass(frozen=True)
class FileVersion:
    """One version of one object.  `path` is relative to its source; `version` is the 8-byte fingerprint."""

    source: str
    path: str
    version: bytes
    etag: str
    size: int
    last_modified: datetime


@dataclass(frozen=True)
class RetriedFile:
    """A quarantined version, with what its row in the ledger says: it goes on behind the rows that were read."""

    file: FileVersion
    rows_read: int
    rows_bad: int
    listed_epoch: int
    first_epoch: int | None
    attempts: int
    requests: int
    bytes_read: int

    @property
    def source(self) -> str:
        return self.file.source

    @property
    def path(self) -> str:
        return self.file.path


@dataclass(frozen=True)
class ForgottenFile:
    """An object, in whatever version."""

    source: str
    path: str


@dataclass(frozen=True)
class ChangedFile:
    """An object that was handed on before, as `version`, is another one now; or the same, and had been gone."""

    version: bytes
    now: FileVersion

    @property
    def source(self) -> str:
        return self.now.source

    @property
    def path(self) -> str:
        return self.now.path


@dataclass(frozen=True)
class GoneFile:
    """A finished version whose object is not there any more."""

    source: str
    path: str
    version: bytes


_ANY_TIME = datetime.min.replace(tzinfo=UTC)


def place(file: FileVersion, order: str) -> tuple[datetime, str]:
    """What files are sorted by: their time, and then their name; or their name alone."""
    return (file.last_modified if order == "last_modified" else _ANY_TIME), file.path

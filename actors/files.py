"""Objects and their versions, as the actors name them in messages."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any, Literal, TypeAlias

from state.objects.etag import is_strong

PathKey = tuple[str, str]
"""An object: its source, and its path relative to that."""
FileKey = tuple[str, str, bytes]
"""One version of an object: source, path, version."""


@dataclass(frozen=True)
class Vanished:
    """A version that was deleted when it was to be read, and of which no row is in the views.

    Args:
        is_removed: whether rows of it have left the views.
        replaces: whether the views may still have the rows of an earlier version, which are retracted with the object.
    """

    source: str
    path: str
    version: bytes
    is_removed: bool = False
    replaces: bool = False


@dataclass(frozen=True)
class FileVersion:
    """One version of one object.  `path` is relative to its source; `version` is the 8-byte fingerprint."""

    source: str
    path: str
    version: bytes
    etag: str
    size: int
    last_modified: datetime


def is_same_object(found: FileVersion, known: FileVersion) -> bool:
    """True if an object is still the listed version: it has the same content, and was written at the same time.

    The fingerprint alone does not suffice: a version by content has no time.  For objects with a strong etag the
    times are compared in whole seconds, since stores round them in the answer to a HEAD.
    """
    if (found.etag, found.size) != (known.etag, known.size):
        return False
    unit_us = 1_000_000 if is_strong(known.etag) else 1
    return microseconds_of(found.last_modified) // unit_us == microseconds_of(known.last_modified) // unit_us


class FileBatch(tuple[FileVersion, ...]):
    """Versions of objects.  They travel as columns: an object for each costs many times as much."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        columns = [list(map(attrgetter(field.name), self)) for field in fields(FileVersion)]
        columns[-1] = list(map(microseconds_of, columns[-1]))
        return _batch_of, tuple(columns)


def _batch_of(*columns: list[Any]) -> FileBatch:
    return FileBatch(map(FileVersion, *columns[:-1], map(time_of, columns[-1])))


@dataclass(frozen=True)
class RetriedFile:
    """A quarantined version, with its row in the ledger: reading continues behind the rows that were read."""

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
    """An object, in every version."""

    source: str
    path: str


@dataclass(frozen=True)
class ChangedFile:
    """An object whose version has changed since it was handed on, or an object that is back after its deletion.

    Args:
        version: the version that was handed on.
        now: the current version; equal to `version` if the object is back.
    """

    version: bytes
    now: FileVersion

    @property
    def source(self) -> str:
        return self.now.source

    @property
    def path(self) -> str:
        return self.now.path


@dataclass(frozen=True)
class DeletedFile:
    """A finished version whose object is deleted."""

    source: str
    path: str
    version: bytes


_ANY_TIME = datetime.min.replace(tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def time_of(modified_us: int) -> datetime:
    """The time of a number of microseconds since 1970, in UTC."""
    return _EPOCH + timedelta(microseconds=modified_us)


def microseconds_of(time: datetime) -> int:
    """The number of microseconds from 1970 to a time; a time without a zone is UTC."""
    return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


ReadingOrder: TypeAlias = Literal["name", "last_modified"]
"""The order in which the files of a source are read one after the other."""


def place(file: FileVersion, order: ReadingOrder) -> tuple[datetime, str]:
    """The sort key of a file: its time and path, or its path alone.

    Args:
        order: `last_modified` or `name`.
    """
    return (file.last_modified if order == "last_modified" else _ANY_TIME), file.path

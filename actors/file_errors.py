"""Errors of one file, while the store as a whole works, and the refusals of a whole source."""

from __future__ import annotations

from typing import Final

from actors.files import FileVersion
from state.errors import (
    AccessDeniedError,
    BadInputError,
    BucketNotFoundError,
    QueueNotFoundError,
    SlackwaterError,
)

REFUSALS: Final = (AccessDeniedError, BucketNotFoundError, QueueNotFoundError)
"""The errors of a store or queue that pause a source until its owner grants access or restores the place."""


class ObjectVanished(SlackwaterError):
    """The listed object is no longer there."""


class ObjectChanged(SlackwaterError):
    """The object is there in another version than the listed one."""


class EmptyFile(SlackwaterError):
    """The file has no content to take a schema from; read with a schema it has no rows."""


class UnreadableFile(SlackwaterError):
    """The file's content cannot be read, or does not fit the schema of its source.

    Args:
        reason: the fault in one line, without the path.
        row: the first bad row of the file, counted from 1; None if no single row is to blame.
    """

    def __init__(self, reason: str, row: int | None = None) -> None:
        super().__init__(reason, row)
        self.reason = reason
        self.row = row

    def __str__(self) -> str:
        return self.reason if self.row is None else f"row {self.row}: {self.reason}"


class ReaderFailed(UnreadableFile):
    """An unexpected error of a reader, which is its cause.  The file counts as unreadable, and the run continues."""


class TooLargeToInfer(UnreadableFile):
    """The file's columns cannot be found within the limits; with a declared schema the file can be read."""


def one_line(text: object, limit: int = 300) -> str:
    """The text of an error, or of something from a file, in one line of at most about `limit` characters."""
    text = " ".join(str(text).split())
    return text if len(text) <= limit else f"{text[:limit]}…"


def bad_input(file: FileVersion, reason: str, option: str = "on_bad_record") -> BadInputError:
    """The error that ends the run if a source is declared to fail on bad input.

    Args:
        file: the bad file.
        reason: the fault in one line.
        option: the option of the source that says so.
    """
    return BadInputError(
        f"source {file.source}: {file.path}: {reason}; mend or remove the file, or declare the source without "
        f'{option}="fail"'
    )

"""What can be wrong with one file while the store as a whole is well.  The fetch step handles all of these."""

from __future__ import annotations

from actors.files import FileVersion
from state.errors import BadInputError, SlackwaterError


class ObjectVanished(SlackwaterError):
    """The object that was listed is no longer there."""


class ObjectChanged(SlackwaterError):
    """The object is there, in another version than the one that was listed."""


class EmptyFile(SlackwaterError):
    """The file has no content that a schema could be taken from; read with a schema it is a file of no rows."""


class UnreadableFile(SlackwaterError):
    """The file's content cannot be read, or does not fit the schema of its source.

    Args:
        reason: what is wrong, in one line, without the path.
        row: the first bad row of the file, counted from 1; None if no single row is to blame.
    """

    def __init__(self, reason: str, row: int | None = None) -> None:
        super().__init__(reason, row)
        self.reason = reason
        self.row = row

    def __str__(self) -> str:
        return self.reason if self.row is None else f"row {self.row}: {self.reason}"


def one_line(error: Exception, limit: int = 300) -> str:
    """An error's text in one line of at most about `limit` characters."""
    text = " ".join(str(error).split())
    return text if len(text) <= limit else f"{text[:limit]}…"


def bad_input(file: FileVersion, reason: str, option: str = "on_bad_record") -> BadInputError:
    """What ends the run if a source is not to go on with bad input."""
    return BadInputError(
        f"source {file.source}: {file.path}: {reason}; mend or remove the file, or declare the source without "
        f'{option}="fail"'
    )

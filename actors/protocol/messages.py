"""What travels between actors.  Barriers and file names travel whole; rows travel as references."""

from __future__ import annotations

from dataclasses import dataclass

from actors.files import ChangedFile, FileVersion, ForgottenFile, GoneFile, RetriedFile


class Message:
    """One thing that travels from actor to actor."""


@dataclass(frozen=True)
class RetriedFiles(Message):
    """What a `Retry` has for one fetch actor; it follows the barrier."""

    files: tuple[RetriedFile, ...]


@dataclass(frozen=True)
class ForgottenFiles(Message):
    """What a `Forget` has for one fetch actor; it follows the barrier."""

    files: tuple[ForgottenFile, ...]


@dataclass(frozen=True)
class RereadFiles(Message):
    """What a `Reread` has for one fetch actor; it follows the barrier."""

    files: tuple[FileVersion, ...]


@dataclass(frozen=True)
class NewFiles(Message):
    """Versions to read, in the order of the listing.

    `sample` is how many of their source have been sent ahead so far to show its schema; 0 when it has one.
    """

    files: tuple[FileVersion, ...]
    sample: int = 0


@dataclass(frozen=True)
class ChangedFiles(Message):
    """Noted in the ledger, and read only if no row of the earlier version was."""

    files: tuple[ChangedFile, ...]


@dataclass(frozen=True)
class GoneFiles(Message):
    """Noted in the ledger; where changed files replace, their rows leave the views."""

    files: tuple[GoneFile, ...]


@dataclass(frozen=True)
class Envelope:
    """One message on one edge.  `sequence` counts from 0 without gaps."""

    edge: str
    sequence: int
    message: Message

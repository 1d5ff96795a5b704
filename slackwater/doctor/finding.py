"""A finding of the doctor, and the check that makes it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from state.errors import (
    AccessDeniedError,
    BucketNotFoundError,
    QueueNotFoundError,
    SettingsError,
    SlackwaterError,
    StorageFullError,
)


class State(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    """A run works, but slower, or not for long."""
    WRONG = "wrong"
    """A run does not work."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Args:
        name: what.
        state: how it is.
        found: what was found, in one line.
        remedy: what to do; empty if nothing is to be done.
    """

    name: str
    state: State
    found: str
    remedy: str = ""

    @classmethod
    def ok(cls, name: str, found: str) -> Finding:
        """All is well."""
        return cls(name, State.OK, found)

    @classmethod
    def warning(cls, name: str, found: str, remedy: str) -> Finding:
        """A run works, but slower, or not for long."""
        return cls(name, State.WARNING, found, remedy)

    @classmethod
    def wrong(cls, name: str, found: str, remedy: str) -> Finding:
        """A run does not work."""
        return cls(name, State.WRONG, found, remedy)


class Check(Protocol):
    """Looks at one thing.  Changes nothing that stays."""

    @property
    def name(self) -> str:
        """What it looks at."""
        ...

    def findings(self) -> Iterable[Finding]:
        """What it finds.  Whatever it raises becomes a finding, too."""
        ...


_SKEWED = "RequestTimeTooSkewed"
_REMEDIES: tuple[tuple[type[SlackwaterError], str], ...] = (
    (BucketNotFoundError, "create it, or correct the URL"),
    (QueueNotFoundError, "create the queue, or correct its URL or region"),
    (
        AccessDeniedError,
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or take a role that may list, get, put and delete",
    ),
    (SettingsError, "correct the storage option that it names"),
    (StorageFullError, "make room, or raise the quota"),
)


def remedy_of(error: SlackwaterError) -> str:
    """What helps against it."""
    if _SKEWED in str(error):
        return "set this machine's clock; the store refuses requests of another time"
    found = (remedy for kind, remedy in _REMEDIES if isinstance(error, kind))
    return next(found, "check the endpoint, the network, and whether the store is up")

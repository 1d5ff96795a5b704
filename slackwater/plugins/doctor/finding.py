"""Finding of the doctor, and the protocol of its checks."""

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
    """The severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    """A run works, but more slowly, or not for long."""
    WRONG = "wrong"
    """A run does not work."""


@dataclass(frozen=True)
class Finding:
    """The result of a check for one thing.

    Args:
        state: its severity.
        found: the observation, in one line.
        remedy: the next step; empty for `ok`.
    """

    name: str
    state: State
    found: str
    remedy: str = ""

    @classmethod
    def ok(cls, name: str, found: str) -> Finding:
        """A finding without a fault."""
        return cls(name, State.OK, found)

    @classmethod
    def warning(cls, name: str, found: str, remedy: str) -> Finding:
        """A fault with which a run works, but more slowly, or not for long."""
        return cls(name, State.WARNING, found, remedy)

    @classmethod
    def wrong(cls, name: str, found: str, remedy: str) -> Finding:
        """A fault with which a run does not work."""
        return cls(name, State.WRONG, found, remedy)


class Check(Protocol):
    """A check of one thing; it leaves nothing changed."""

    @property
    def name(self) -> str: ...

    def findings(self) -> Iterable[Finding]:
        """Runs the check.  Any exception becomes a finding, too."""
        ...


_SKEWED = "RequestTimeTooSkewed"
_REMEDIES: tuple[tuple[type[SlackwaterError], str], ...] = (
    (BucketNotFoundError, "create it, or correct the URL"),
    (QueueNotFoundError, "create the queue, or correct its URL or region"),
    (
        AccessDeniedError,
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use a role that may list, get, put and delete",
    ),
    (SettingsError, "correct the named storage option"),
    (StorageFullError, "make room, or raise the quota"),
)


def remedy_of(error: SlackwaterError) -> str:
    """The next step after an error of the store."""
    if _SKEWED in str(error):
        return "set this machine's clock: the store refuses requests whose time differs from its own"
    found = (remedy for kind, remedy in _REMEDIES if isinstance(error, kind))
    return next(found, "check the endpoint, the network, and whether the store is up")

"""What a check finds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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

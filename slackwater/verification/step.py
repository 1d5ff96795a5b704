"""Step of a verification, for the display of its progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One step of a verification.

    Args:
        text: the step in words.
        done: the number of finished files.
        total: the number of files; 0 for a step without files.
    """

    text: str
    done: int = 0
    total: int = 0


OnStep = Callable[[Step], None]

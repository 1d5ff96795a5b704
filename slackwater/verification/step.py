"""What a verification is doing, for whoever waits for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One step; `done` of `total` files, if it is one of files.

    Args:
        text: for people.
    """

    text: str
    done: int = 0
    total: int = 0


OnStep = Callable[[Step], None]

"""Grouping of options by their class."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

_Option = TypeVar("_Option")


def by_class(options: Iterable[_Option]) -> dict[type[_Option], list[_Option]]:
    """The options of each class, in the order of their declaration: one object of the feature serves all of them."""
    grouped: dict[type[_Option], list[_Option]] = {}
    for option in options:
        grouped.setdefault(type(option), []).append(option)
    return grouped

"""Cases of a parametrised test: a few in `make test`, the others in `make test-more`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import pytest


def few(cases: Iterable[Any], *quick: Any) -> list[Any]:
    """All cases of one argument; `make test` runs those whose value, or whose `name`, is among `quick`."""
    return [
        each if getattr(each, "name", each) in quick else pytest.param(each, marks=pytest.mark.more) for each in cases
    ]


def one_of_each(cases: Iterable[tuple[Any, ...]], kind: Callable[[tuple[Any, ...]], Hashable]) -> list[Any]:
    """All cases of several arguments; `make test` runs the first case of each kind."""
    seen: set[Hashable] = set()
    marked = []
    for case in cases:
        marked.append(pytest.param(*case, marks=[pytest.mark.more] if kind(case) in seen else []))
        seen.add(kind(case))
    return marked

"""Cases of a parametrised test: a few in `make test`, the others in `make test-more`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def few(cases: Iterable[Any], *quick: Any) -> list[Any]:
    """All cases of one argument; `make test` runs those whose value, or whose `name`, is among `quick`."""
    return [
        each if getattr(each, "name", each) in quick else pytest.param(each, marks=pytest.mark.more) for each in cases
    ]

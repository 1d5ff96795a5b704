"""Every test of the list step is told twice: with the names in its own hands, and with three name steps."""

from __future__ import annotations

import pytest

from actors.listing.list_executor import ListExecutor
from tests.actors import flow
from tests.actors.listing.sharded_lister import sharded


@pytest.fixture(autouse=True, params=[1, 3], ids=["one index", "three shards"])
def _names(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "ListExecutor", ListExecutor if request.param == 1 else sharded(request.param))

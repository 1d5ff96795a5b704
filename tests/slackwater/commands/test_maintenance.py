"""Maintenance commands: one action, as the owner of the root."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from slackwater.commands.maintenance import run_as_owner
from state.clock import SystemClock
from state.errors import FencedError
from state.lance.lance_root import LanceRoot
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.ownership.owner import Ownership, read_owner


def test_a_command_whose_root_is_taken_before_it_reads_the_head_does_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Location(str(tmp_path / "root"))
    LanceRoot(place, SystemClock()).create_or_open()
    faster = Ownership(place, SystemClock(), run_id="faster", pipeline="flights")
    opened = LanceRoot.open

    def open_late(root: LanceRoot, **options: Any) -> LanceStateStore:
        if not options.get("read_only"):
            faster.acquire(takeover=True)
            opened(root).take_over("faster")
        return opened(root, **options)

    monkeypatch.setattr(LanceRoot, "open", open_late)
    with pytest.raises(FencedError, match="taken over by another process"):
        run_as_owner(place.url, {}, lambda store, root: pytest.fail("the action has begun"))
    assert LanceStateStore.open(place, SystemClock()).head.run == "faster"
    owner = read_owner(place)
    assert owner is not None and owner.run_id == "faster"
    faster.release()

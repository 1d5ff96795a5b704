"""The start of a run, up to its control thread."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.recovery.recovery import current_head
from slackwater import pipeline as module
from slackwater.pipeline import Pipeline
from slackwater.running import run_control
from state.clock import SystemClock
from state.errors import FencedError
from state.location import Location
from state.ownership.owner import Ownership, read_owner
from state.store.root import Root
from state.tables.records import Head


def test_a_run_whose_root_is_taken_before_it_reads_the_head_does_not_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "files").mkdir()
    place = Location(str(tmp_path / "root"))
    faster = Ownership(place, SystemClock(), run_id="faster", pipeline="flights")

    def read_late(root: Root) -> Head:
        faster.acquire(takeover=True)
        return current_head(root)

    monkeypatch.setattr(module, "current_head", read_late)
    monkeypatch.setattr(run_control, "RunControl", lambda **_: pytest.fail("the run has begun"))
    pipeline = Pipeline("flights", root=tmp_path / "root")
    pipeline.source("s", str(tmp_path / "files"), format="csv", schema="x long")
    pipeline.view("v", "SELECT x FROM s")
    with pytest.raises(FencedError, match="taken over by another process"):
        pipeline.start()
    owner = read_owner(place)
    assert owner is not None and owner.run_id == "faster"
    faster.release()

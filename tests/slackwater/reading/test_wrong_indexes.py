"""Tests of the warnings about indexes that a run has found to be wrong."""

from __future__ import annotations

from pathlib import Path

import slackwater as sw
from slackwater.status.run_status import RunStatus
from state.location import Location
from tests.slackwater.plugins.ui.living_root import running
from tests.slackwater.reading.written_root import RootWriter


def test_a_wrong_index_is_a_warning_of_the_root(tmp_path: Path) -> None:
    written = RootWriter(Location(str(tmp_path / "root")), Location("/nowhere"))
    written.commit()
    store = sw.open(written.root.url)
    assert store.warnings() == []
    with running(written.root, RunStatus(rebuilt_indexes={"v": 2})):
        [warning] = store.warnings()
    assert warning.startswith("v: 2 of its indexes differed from the rows") and "slackwater verify" in warning

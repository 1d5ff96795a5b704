"""Internal views as readers see them: their rows in the store, and in the memory of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from slackwater.status.run_status import RowsInMemory, RunStatus
from state.location import Location
from tests.slackwater.cli.called_command import slackwater
from tests.slackwater.plugins.ui.living_root import running
from tests.slackwater.plugins.ui.served_page import served
from tests.slackwater.reading.internal_rows import store_internal_rows
from tests.slackwater.reading.written_root import WrittenRoot, write_root

IN_MEMORY = ("rows_in_memory", "bytes_in_memory")


@pytest.fixture
def written(tmp_path: Path) -> WrittenRoot:
    return write_root(Location(str(tmp_path / "root")), Location(str(tmp_path / "raw")))


def told(written: WrittenRoot) -> tuple[Any, ...]:
    [row] = sw.open(written.root.url).views.internal().to_pylist()
    return tuple(row[name] for name in ("names", "rows", *IN_MEMORY))


def test_rows_in_memory_are_told_while_a_pipeline_runs(written: WrittenRoot) -> None:
    path = store_internal_rows(written.root)
    assert told(written) == (["by_carrier.1"], 3, None, None)
    with running(written.root, RunStatus(in_memory={path: RowsInMemory(3, 200), "views/other": RowsInMemory(9, 9)})):
        assert told(written) == (["by_carrier.1"], 3, 3, 200)
    with running(written.root, RunStatus()):
        assert told(written) == (["by_carrier.1"], 3, 0, 0)
    assert told(written) == (["by_carrier.1"], 3, None, None)


@pytest.mark.more
def test_status_and_page_show_the_rows_in_memory(written: WrittenRoot) -> None:
    status = RunStatus(in_memory={store_internal_rows(written.root): RowsInMemory(3, 200)})
    with running(written.root, status), served(written.root.url) as page:
        lines = slackwater("status", written.root.url).out.splitlines()
        at = lines.index("# internal views: rows kept for joins, windows and groups within")
        assert lines[at + 1].split("\t") == ["names", "reads", "rows", "bytes", *IN_MEMORY]
        assert lines[at + 2].split("\t")[-2:] == ["3", "200"]
        [row] = json.loads(slackwater("status", written.root.url, "--json").out)["internal_views"]
        [shown] = page.api("views")["internal_views"]
    assert [row[name] for name in IN_MEMORY] == [shown[name] for name in IN_MEMORY] == [3, 200]

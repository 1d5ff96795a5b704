"""A source whose names are in shards, on Ray: files are read once, over the death of a name actor and other numbers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import slackwater as sw
from tests.real import victims
from tests.real.event_pipeline import local
from tests.real.events import events, parquet, write
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.long, pytest.mark.usefixtures("session")]

FILES = 40


def pipeline(tmp_path: Path, name_actors: int) -> sw.Pipeline:
    discovery = sw.Listing(interval_s=0.1, name_actors=name_actors)
    return local(tmp_path, discovery=discovery, on_change="append")


def test_names_in_shards_are_known_after_the_death_of_a_name_actor_and_with_another_number(tmp_path: Path) -> None:
    for number in range(FILES):
        write(tmp_path / "in", f"{number:03}.parquet", parquet(events(number)))
    with pipeline(tmp_path, 2).start() as run:
        assert run.wait(until="caught_up", timeout_s=90)
        assert len(victims.find(os.getpid(), "names")) == 2
        assert victims.send(os.getpid(), "names")
        eventually(lambda: run.status().recoveries == 1)
        write(tmp_path / "in", "new.parquet", parquet(events(1_000)))
        write(tmp_path / "in", "007.parquet", parquet(events(2_000, 5)))
        assert run.wait(until="caught_up", timeout_s=60)
        assert len(victims.find(os.getpid(), "names")) == 2
        report = run.stop()
    assert (report.recoveries, report.files, report.rows) == (1, FILES + 2, 10 * (FILES + 1) + 5)
    for name_actors in (1, 3):
        # Every name is listed again, and none is new.
        report = pipeline(tmp_path, name_actors).run(until="caught_up")
        assert (report.recoveries, report.files) == (0, 0)
    files = sw.open(tmp_path / "root").ledger.files()
    assert files["status"].to_pylist() == ["done"] * (FILES + 2)
    assert len(set(files["path"].to_pylist())) == FILES + 1, "one file has two versions"

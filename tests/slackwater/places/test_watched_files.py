"""Files after the commit stay while their source is paused, or a place of the work leads elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from slackwater.places.pipeline_places import pipeline_places
from slackwater.places.place_watch import PlaceWatch
from slackwater.plugins.after_commit.actions import After, Delete, Move
from slackwater.plugins.after_commit.declaration import declared
from slackwater.plugins.after_commit.file_work import FileWork
from slackwater.status.run_status import RunStatus, SourceStatus
from tests.slackwater.plugins.after_commit.real_files import RealFiles


def watched(files: RealFiles, action: After) -> FileWork:
    after = declared(files.source, action)
    root, source = pipeline_places(files.root, [files.source], changing=["flights"])
    watch = PlaceWatch([each.checked() for each in (source, *after.places())], [root])
    return FileWork(files.root, [after], lambda: None, files.clock, files.views, places={"flights": watch})


@pytest.fixture
def files(tmp_path: Path) -> RealFiles:
    made = RealFiles(tmp_path)
    made.finish(made.write("a.csv", days_ago=1))
    return made


def test_files_of_a_paused_source_stay_until_it_continues(files: RealFiles) -> None:
    work = watched(files, Delete(keep_s=0))
    epoch = files.writer.records[-1].epoch
    work.look(RunStatus("running", epoch, sources={"flights": SourceStatus(paused="it is a Delta table")}))
    assert files.present() == {"a.csv"} and work.statuses[0].waits_for == "the source is paused"
    files.clock.advance(600)
    work.look(RunStatus("running", epoch, sources={"flights": SourceStatus()}))
    assert files.present() == set()


def test_no_file_is_moved_while_a_link_of_the_target_leads_elsewhere(files: RealFiles, tmp_path: Path) -> None:
    for name in ("archive", "other"):
        (tmp_path / name).mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "archive")
    work = watched(files, Move(str(link)))
    for target, reason in ((files.raw.path, "moved files would be read again"), (tmp_path / "other", "was at ")):
        link.unlink()
        link.symlink_to(target)
        told = files.look(work, after_s=600)
        assert reason in told.waits_for and files.present() == {"a.csv"}
    link.unlink()
    link.symlink_to(tmp_path / "archive")
    files.look(work, after_s=600)
    assert files.present() == set() and (tmp_path / "archive" / "a.csv").exists()

"""`slackwater tag` and `slackwater vacuum`, in processes of their own."""

from __future__ import annotations

import json
from pathlib import Path

from state.location import Location
from tests.slackwater.cli.called_command import slackwater
from tests.slackwater.reading.written_root import write_root


def test_tags_are_set_listed_moved_and_taken_away_and_what_is_tagged_stays(tmp_path: Path) -> None:
    written = write_root(Location(str(tmp_path / "root")), Location(str(tmp_path / "raw")))
    root, epochs = str(tmp_path / "root"), [str(epoch) for epoch in written.epochs]
    made = slackwater("tag", root, "audit", "--epoch", epochs[1], "--json")
    assert (made.code, json.loads(made.out)) == (0, [{"tag": "audit", "epoch": epochs[1]}]), made.err
    assert slackwater("tag", root, "now").code == 0
    listed = json.loads(slackwater("tag", root, "--json").out)
    assert [(row["tag"], row["epoch"]) for row in listed] == [("audit", epochs[1]), ("now", epochs[-1])]
    assert slackwater("tag", root, "now", "--epoch", "audit").code == 0
    assert slackwater("tag", root, "now", "--delete").code == 0

    vacuumed = slackwater("vacuum", root, "--keep-s", "0", "--keep-epochs", "1", "--json")
    assert vacuumed.code == 0, vacuumed.err
    report = json.loads(vacuumed.out)
    assert (report["epochs_expired"], report["epochs_left"]) == (2, 2)
    assert report["versions_deleted"] >= 2 and report["bytes_freed"] > 0
    shown = slackwater("show", root, "late", "--epoch", "audit")
    assert shown.code == 0 and shown.out.splitlines()[0].endswith(epochs[1])
    expired = slackwater("show", root, "late", "--epoch", epochs[0])
    assert expired.code == 1 and "no longer retained" in expired.err


def test_arguments_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    root = str(tmp_path)
    for arguments in (("a", "--list"), ("--delete",), ("a", "--delete", "--epoch", "1"), ("7",), ("latest",)):
        ended = slackwater("tag", root, *arguments)
        assert ended.code == 2, arguments
        assert ended.err.count("\n") == 1
    assert slackwater("vacuum", root).code == 1

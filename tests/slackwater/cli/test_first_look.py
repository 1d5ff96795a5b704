"""The first look at a root, on terminals of 100 and 130 columns."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from state.clock import ManualClock, SystemClock
from state.location import Location
from state.ownership.owner import Ownership
from tests.repository import REPOSITORY
from tests.slackwater.cli.called_command import slackwater
from tests.slackwater.reading.written_root import WrittenRoot, write_root


@pytest.fixture
def written(tmp_path: Path) -> WrittenRoot:
    return write_root(Location(str(tmp_path / "root")), Location(str(tmp_path / "raw")))


def on_a_terminal(width: int, *arguments: str) -> str:
    """The output of `slackwater ARGUMENTS` on a terminal of its own."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "COLUMNS": str(width), "NO_COLOR": "1", "TERM": "xterm"}
    command = [sys.executable, "-m", "slackwater", *arguments]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        parts = []
        try:
            while part := os.read(ours, 1 << 16):
                parts.append(part)
        except OSError:
            pass  # Linux ends the terminal so when its last process has ended
        os.close(ours)
        assert process.wait() == 0
    return b"".join(parts).decode().replace("\r\n", "\n")


@pytest.mark.more_after(1)
@pytest.mark.parametrize(("width", "command"), [(100, "status"), (130, "files"), (100, "explain"), (130, "views")])
def test_no_path_is_broken_and_few_columns_are_shown(written: WrittenRoot, width: int, command: str) -> None:
    shown = on_a_terminal(width, command, str(written.root))
    paths = {"files": [f"{written.raw.url}/day=1/a.csv"], "status": [written.raw.url]}
    for path in paths.get(command, [str(written.root.child(written.records[-1].views["late"].path))]):
        assert path in shown
    assert "requests_per_hour" not in shown and "etag" not in shown and "reflects_epoch" not in shown


def test_views_are_listed_for_people_and_programs(written: WrittenRoot) -> None:
    listed = slackwater("views", str(written.root))
    head, *rows = [line.split("\t") for line in listed.out.splitlines()[:3]]
    assert head[:3] == ["state", "name", "class"] and [row[1] for row in rows] == ["by_carrier", "late"]
    assert f"`slackwater show {written.root} by_carrier` prints rows" in listed.out
    documents = json.loads(slackwater("views", str(written.root), "--json").out)
    assert [(each["name"], each["state"], each["rows"]) for each in documents] == [
        ("by_carrier", "maintained", 3),
        ("late", "maintained", 3),
    ]


@pytest.mark.more
def test_a_null_of_a_view_is_seen(written: WrittenRoot) -> None:
    answer = slackwater("sql", str(written.root), "SELECT carrier FROM by_carrier WHERE n = 1")
    assert answer.out.splitlines()[-1] == "\\N"
    assert "\t\\N" not in slackwater("show", str(written.root), "late").out


def test_printed_commands_have_the_root(written: WrittenRoot) -> None:
    shown = slackwater("status", str(written.root)).out
    assert f"`slackwater files {written.root} --status quarantined`" in shown and "ROOT" not in shown


@pytest.mark.more
def test_a_run_that_gives_no_sign_is_not_told_as_one_that_runs(written: WrittenRoot) -> None:
    root = str(written.root)
    now = SystemClock().now()
    silent = Ownership(written.root, ManualClock(now - timedelta(seconds=100)), run_id="r", pipeline="p")
    silent.acquire()
    silent.update(phase="running")
    silent.renew()
    assert "owner: running (no sign of life for 1 min 4" in slackwater("status", root).out
    silent.release()
    assert "owner: stopped, process" in slackwater("status", root).out


def test_a_run_that_was_killed_is_told_as_gone(written: WrittenRoot) -> None:
    script = (
        "import os, sys; from state.clock import SystemClock; from state.location import Location; "
        "from state.ownership.owner import Ownership; "
        "Ownership(Location(sys.argv[1]), SystemClock(), run_id='r', pipeline='p').acquire(); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", script, str(written.root)], env={**os.environ, "PYTHONPATH": str(REPOSITORY)})
    shown = slackwater("status", str(written.root)).out
    assert "owner: gone (the process died while starting), process" in shown


def test_the_help_has_every_command_in_a_group_with_a_whole_sentence() -> None:
    shown = slackwater("--help").out
    assert "..." not in shown.partition("Run:")[2] and "Others" not in shown
    for command in ("run", "views", "replace-table", "drop-branch"):
        assert f"\n  {command} " in shown
    assert shown.index("Look:") < shown.index("\n  status ") < shown.index("Read:") < shown.index("\n  sql ")


def test_the_relations_of_a_root_are_listed_in_sql(written: WrittenRoot) -> None:
    assert slackwater("sql", str(written.root), "SHOW TABLES").out.splitlines()[1:] == [
        "name",
        "by_carrier",
        "files",
        "late",
    ]


@pytest.mark.more
def test_an_earlier_epoch_is_named_in_short(written: WrittenRoot) -> None:
    root = str(written.root)
    query = "SELECT count(*) AS n FROM by_carrier"
    assert slackwater("sql", root, query, "--epoch", "-2").out.splitlines()[-1] == "0"
    number = json.loads(slackwater("epochs", root, "--json").out)[1]["number"]
    assert slackwater("sql", root, query, "--epoch", f"#{number}").out.splitlines()[-1] == "0"


def test_the_phases_of_an_epoch_do_not_contain_each_other(written: WrittenRoot) -> None:
    last = json.loads(slackwater("epochs", str(written.root), "--json").out)[-1]
    # `collect` of the record, 0.125 s from the barrier on, is within align and Spark.
    assert (last["align_s"], last["spark_s"], last["collect_s"]) == (0.25, 1.0, 0.0)

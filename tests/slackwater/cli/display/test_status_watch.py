"""`slackwater status --watch` in a process of its own."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from slackwater.status.run_status import RunStatus, SourceStatus, ViewStatus
from state.clock import ManualClock, SystemClock
from state.location import Location
from state.ownership.owner import Ownership
from tests.slackwater.cli.called_command import slackwater
from tests.slackwater.cli.command import started
from tests.slackwater.reading.written_root import WrittenRoot, write_root

TOLD = RunStatus(
    phase="running", epoch=2**60, epochs=3, sources={"flights": SourceStatus(waiting=1_234, rows_per_s=55.0)}
)


@pytest.fixture
def written(tmp_path: Path) -> WrittenRoot:
    return write_root(Location(str(tmp_path / "root")), Location(str(tmp_path / "raw")))


@pytest.fixture
def run(written: WrittenRoot) -> Ownership:
    ownership = Ownership(
        written.root, ManualClock(SystemClock().now()), run_id="r", pipeline="flights", interval_s=3600
    )
    ownership.acquire()
    ownership.notify(TOLD.to_json)
    ownership.renew()
    return ownership


class Watching:
    """`slackwater status ROOT --watch` in a pipe."""

    def __init__(self, root: str, *arguments: str) -> None:
        self.process = started("status", root, "--watch", "--interval-s", "0.1", *arguments)
        self._read = ""

    def __enter__(self) -> Watching:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def line(self) -> str:
        """Waits for the next line, and returns it."""
        assert self.process.stdout is not None
        while "\n" not in self._read:
            # Not the stream's own buffer: `select` does not see what is in it.
            ready, _, _ = select.select([self.process.stdout], [], [], 60)
            assert ready, "no line within a minute"
            self._read += os.read(self.process.stdout.fileno(), 65_536).decode()
        line, _, self._read = self._read.partition("\n")
        return line

    def interrupted(self) -> tuple[int, str, str]:
        """The end after Ctrl-C, with the rest of the output."""
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


@pytest.mark.more
def test_a_program_gets_a_document_for_each_change_and_an_interruption_is_no_error(
    written: WrittenRoot, run: Ownership
) -> None:
    with Watching(written.root.url, "--json") as watching:
        first = json.loads(watching.line())
        assert (first["life"], first["owner"]["pid"], first["warning"]) == ("unheard", os.getpid(), "")
        assert first["status"]["epoch"] == str(2**60)
        assert first["status"]["sources"]["flights"]["waiting"] == 1_234
        run.notify(replace(TOLD, epochs=4).to_json)
        run._clock.sleep(5)
        run.renew()
        second = json.loads(watching.line())
        assert (second["life"], second["status"]["epochs"]) == ("living", 4)
        run.release()
        third = json.loads(watching.line())
        assert (third["life"], third["status"]["sources"]["flights"]["done"]) == ("ended", 2)
        assert watching.interrupted() == (0, "", "")


def test_a_pipe_gets_a_line_for_each_change(written: WrittenRoot, run: Ownership) -> None:
    with Watching(written.root.url) as watching:
        head = watching.line().split("\t")
        assert head[:5] == ["at", "phase", "epoch", "source", "listed"]
        row = dict(zip(head, watching.line().split("\t"), strict=True))
        assert (row["phase"], row["source"], row["waiting"], row["freshness_s"]) == ("running", "flights", "1234", "")
        run.release()
        row = dict(zip(head, watching.line().split("\t"), strict=True))
        assert (row["phase"], row["done"], row["rows"]) == ("stopped", "2", "1004")
        assert watching.interrupted() == (0, "", "")


@pytest.mark.more
def test_a_pipe_gets_a_warning_of_a_failed_view_and_a_program_its_error(written: WrittenRoot, run: Ownership) -> None:
    wet = ViewStatus("append", stale_epoch=2**60, error="too\x1b wet")
    told = replace(TOLD, views={"late": wet, "dry": ViewStatus("append", 3)})
    run.notify(told.to_json)
    run.renew()
    with Watching(written.root.url) as watching:
        watching.line()
        watching.line()
        run.notify(replace(told, sources={"flights": SourceStatus(waiting=7)}).to_json)
        run.renew()
        assert "\t7\t" in watching.line(), "a later look"
        _, _, warnings = watching.interrupted()
    step = f"`slackwater status {written.root}` has the next step"
    assert warnings == f"warning: view late has failed: too\\x1b wet; {step}\n"
    with Watching(written.root.url, "--json") as watching:
        views = json.loads(watching.line())["status"]["views"]
    assert (views["late"]["error"], views["late"]["stale_epoch"]) == ("too\x1b wet", str(2**60))
    assert views["dry"]["error"] is None


@pytest.mark.more
def test_a_terminal_shows_the_picture_of_a_run(written: WrittenRoot, run: Ownership) -> None:
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "slackwater", "status", written.root.url, "--watch", "--interval-s", "0.1"]
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "xterm", "COLUMNS": "120", "LINES": "30"}
    process = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, env=environment)
    os.close(follower)
    try:
        picture = ("flights  running", f"process {os.getpid()} on ", f"epoch {2**60}", "3 epochs", "1,234", "55")
        shown = _until(leader, *picture)
        assert "\x1b[1m" in shown and not re.search(r"\x1b\[[\d;]*3[1-7]m", shown), "bold, and without colours"
        run.release()
        _until(leader, "no run is alive here; this is the last commit", "late ")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0
    finally:
        process.kill()
        process.wait()
        os.close(leader)


def _until(leader: int, *expected: str) -> str:
    """The output on the terminal, until its text has all that is expected."""
    clock = SystemClock()
    deadline, shown = clock.monotonic() + 60, ""
    while not all(text in re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", shown) for text in expected):
        assert clock.monotonic() < deadline, shown
        if select.select([leader], [], [], 1)[0]:
            shown += os.read(leader, 65_536).decode(errors="replace")
    return shown


def test_a_root_that_is_not_there_is_an_error_of_one_line(tmp_path: Path) -> None:
    ended = slackwater("status", str(tmp_path / "none"), "--watch")
    assert (ended.code, ended.out, ended.err.count("\n")) == (1, "", 1) and "none" in ended.err


def test_a_pace_without_watching_is_a_usage_error(written: WrittenRoot) -> None:
    ended = slackwater("status", written.root.url, "--interval-s", "1")
    assert ended.code == 2 and "--watch" in ended.err
    assert slackwater("status", written.root.url, "--watch", "--interval-s", "0").code == 2

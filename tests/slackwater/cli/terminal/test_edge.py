"""Tests of the exit codes and the lines of errors, without secrets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from slackwater.cli.terminal.edge import error_line, exit_code, reports_errors
from state.errors import (
    BadInputError,
    NotIncrementalError,
    OwnedError,
    RunFailedError,
    SlackwaterError,
    StoreNotFoundError,
)
from state.location import Location
from tests.repository import REPOSITORY
from tests.slackwater.reading.written_root import write_root


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OwnedError("x"), 75),
        (NotIncrementalError("x"), 2),
        (StoreNotFoundError("x"), 1),
        (RunFailedError("x"), 1),
        (BadInputError("x"), 1),
        (ZeroDivisionError("x"), 1),
        (KeyboardInterrupt(), 130),
    ],
)
def test_exit_codes(error: BaseException, code: int) -> None:
    assert exit_code(error) == code

    @reports_errors
    def command() -> None:
        raise error

    with pytest.raises(SystemExit) as ended:
        command()
    assert ended.value.code == code


def test_a_message_of_many_lines_is_one_line() -> None:
    assert error_line(SlackwaterError("a\n  b\n")) == "error: a b"


def test_a_message_that_quotes_a_file_does_not_control_the_terminal() -> None:
    assert error_line(BadInputError("row 1: \x1b]0;x\x07 \x9b2J \u202e")) == r"error: row 1: \x1b]0;x\x07 \x9b2J \u202e"


def test_secrets_in_errors_and_tracebacks_are_masked(capsys: pytest.CaptureFixture[str]) -> None:
    @reports_errors
    def command(debug: bool) -> None:
        raise RunFailedError("GET http://me:hunter2@host/x?X-Amz-Signature=hunter2 {'secret_access_key': 'hunter2'}")

    with pytest.raises(SystemExit):
        command(debug=True)
    shown = capsys.readouterr()
    assert "Traceback" in shown.err and "error: GET http://***@host/x" in shown.err
    assert "hunter2" not in shown.err + shown.out


def test_a_reader_that_closes_the_pipe_ends_a_table_without_failure(tmp_path: Path) -> None:
    written = write_root(Location(str(tmp_path / "root")), Location(str(tmp_path / "raw")))
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "slackwater", "status", str(written.root.path)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    ended = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, env=environment, check=False)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, b"")

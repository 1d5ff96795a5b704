"""Tests of the exit codes and the lines of errors, without secrets."""

from __future__ import annotations

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

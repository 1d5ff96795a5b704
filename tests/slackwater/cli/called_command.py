"""A command called in the process of the tests, without the second of imports that a new process needs.

For commands that neither load a user's module nor start Ray or Spark; `command.py` has those.
"""

from __future__ import annotations

import io
import os
from contextlib import redirect_stderr, redirect_stdout

import pytest

from slackwater.cli.app import main
from tests.slackwater.cli.command import Ended


def slackwater(*arguments: str) -> Ended:
    """Runs `slackwater ARGUMENTS` to its end."""
    out, err = io.StringIO(), io.StringIO()
    environment = dict(os.environ)
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main(arguments)
    if dict(os.environ) != environment:
        os.environ.clear()
        os.environ.update(environment)
    code = ended.value.code
    return Ended(code if isinstance(code, int) else 0 if code is None else 1, out.getvalue(), err.getvalue())

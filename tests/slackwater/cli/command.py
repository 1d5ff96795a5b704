"""The command `slackwater` in a process of its own, with its exit code and both streams."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.repository import REPOSITORY


@dataclass(frozen=True)
class Ended:
    """The end of a command."""

    code: int
    out: str
    err: str


def slackwater(
    *arguments: str, cwd: Path | None = None, environment: Mapping[str, str] | None = None, timeout_s: float = 240
) -> Ended:
    """Runs `slackwater ARGUMENTS` to its end."""
    process = started(*arguments, cwd=cwd, environment=environment)
    try:
        out, err = process.communicate(timeout=timeout_s)
    finally:
        process.kill()
        process.wait()
    return Ended(process.returncode, out, err)


def started(
    *arguments: str, cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """Starts `slackwater ARGUMENTS`."""
    return subprocess.Popen(
        [sys.executable, "-m", "slackwater", *arguments],
        cwd=cwd or REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "NO_COLOR": "1", **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

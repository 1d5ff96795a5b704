"""Runs the command as users do: a process of its own, with its exit code and both streams."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_REPOSITORY = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


def slackwater(
    *arguments: str, cwd: Path | None = None, environment: Mapping[str, str] | None = None, timeout_s: float = 240
) -> Ended:
    """Runs `slackwater ARGUMENTS` to its end."""
    ended = subprocess.run(
        [sys.executable, "-m", "slackwater", *arguments],
        cwd=cwd or _REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(_REPOSITORY), "NO_COLOR": "1", **(environment or {})},
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)

"""Probe: a child process that tries one thing, and may hang or die without harm."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

_SHOWN_LINES = 3


class ProbeFailedError(Exception):
    """The process did not answer, or not in time; the message has its last lines."""


def run_probe(module: str, *arguments: str, timeout_s: float) -> Mapping[str, Any]:
    """Runs `python -m MODULE ARGUMENTS`, and returns the JSON document in its last line.

    The process and its children end with this call.

    Raises:
        ProbeFailedError: the process failed, or exceeded the time limit.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        out, said = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise ProbeFailedError(f"no answer within {timeout_s:.0f} s") from None
    finally:
        _end(process)
    lines = out.strip().splitlines()
    if process.returncode == 0 and lines:
        answer: Mapping[str, Any] = json.loads(lines[-1])
        return answer
    last = [line.strip() for line in said.strip().splitlines() if line.strip()][-_SHOWN_LINES:]
    raise ProbeFailedError(" ".join(last) or f"it ended with code {process.returncode}")


def _end(process: subprocess.Popen[str]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()

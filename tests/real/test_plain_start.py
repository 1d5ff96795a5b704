"""A whole run by public functions of Ray and RayDP alone: by the settings, and with a version that is not tested."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repository import REPOSITORY

_ROWS = 400_000
_METADATA = "Metadata-Version: 2.1\nName: ray\nVersion: 2.997.1\n"


@pytest.mark.long
@pytest.mark.parametrize("reason", ["settings", "version"])
def test_run_starts_without_any_private_part(tmp_path: Path, reason: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    if reason == "version":
        # A newer Ray, as the metadata of packages says.
        described = tmp_path / "site" / "ray-2.997.1.dist-info"
        described.mkdir(parents=True)
        (described / "METADATA").write_text(_METADATA, encoding="utf-8")
        environment["PYTHONPATH"] = f"{described.parent}{os.pathsep}{REPOSITORY}"
    (tmp_path / "place").mkdir()
    command = [sys.executable, "-m", "tests.real.plain_job", str(tmp_path / "place"), reason]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, env=environment, cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert (said["recoveries"], said["rows"], said["n"]) == (0, _ROWS, _ROWS * (_ROWS - 1) // 2)
    assert said["loaded"] == ["actors.fast_start.choice"] and said["forks"] == 0
    assert said["left"] == []
    # One line, and only if the settings do not ask for the plain start.
    lines = [each for each in done.stderr.splitlines() if "plain start, since" in each]
    assert len(lines) == (reason == "version"), done.stderr
    assert all("ray=2.997.1" in each and "tested_ray=2.60.*" in each for each in lines)

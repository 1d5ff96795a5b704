"""`make job`: from submission to a graceful stop, with everything that is in between and after."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repository import REPOSITORY


def made_job(directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.cluster.cluster_job"],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )


@pytest.mark.more
def test_outside_of_the_sources_it_says_where_to_run_it(tmp_path: Path) -> None:
    ended = made_job(tmp_path)
    assert ended.returncode == 2
    assert ended.stderr == (
        f"error: {tmp_path} has no examples/flights_job.py: run this in the directory of the project's sources\n"
    )


@pytest.mark.ray
@pytest.mark.long
def test_the_job_reads_every_file_and_stops_gracefully() -> None:
    ended = made_job(REPOSITORY)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "122 of 122 files are in the views; stopped" in ended.stdout
    assert "RunReport(epochs=" in ended.stdout and "owner: stopped" in ended.stdout
    assert "\\x1b" not in ended.stdout and "Traceback" not in ended.stdout

"""The first epoch of few rows needs the driver's session alone, and no executor."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repository import REPOSITORY

_ROWS = 20
_START_TIMEOUT_S = 90
_RUN = f"""
import os
import sys
from pathlib import Path
import slackwater as sw

place = Path(sys.argv[1])
settings = sw.Settings(
    ray=sw.settings.RaySettings(num_cpus=2),
    spark=sw.settings.SparkSettings(executor_cores=500, start_timeout_s={_START_TIMEOUT_S}),
)
pipeline = sw.Pipeline("early", place / "root", settings=settings)
pipeline.source("events", place / "in", format="csv", schema="k bigint, v bigint")
pipeline.view("totals", "SELECT k, count(*) AS n, sum(v) AS total FROM events GROUP BY k")
run = pipeline.start()
while not run.report().rows and not run.status().recoveries:
    run.wait(timeout_s=0.05)
print(run.report().rows, run.status().spark, flush=True)
while not run.status().recoveries:
    run.wait(timeout_s=0.05)
os._exit(0)
"""


@pytest.mark.more
def test_rows_are_committed_before_an_executor_lives_and_a_start_without_one_fails(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    rows = "".join(f"{row % 3},{row}\n" for row in range(_ROWS))
    (tmp_path / "in" / "rows.csv").write_text(f"k,v\n{rows}", encoding="utf-8")
    command = [sys.executable, "-c", _RUN, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "RAY_ADDRESS": "local"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment, check=False)
    assert f"{_ROWS} starting" in done.stdout.splitlines(), done.stderr
    log = done.stdout + done.stderr
    assert f"did not get an executor from Ray within {_START_TIMEOUT_S} s" in log
    assert "asks for 1 executor(s) of 500 CPU" in log

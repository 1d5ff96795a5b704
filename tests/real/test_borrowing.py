"""A Ray and a SparkSession that are there already are used, and left as they were."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import ray

pytestmark = [pytest.mark.ray, pytest.mark.long, pytest.mark.usefixtures("session")]


def test_ray_and_spark_of_the_user_are_borrowed_and_never_stopped(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    address = ray.get_runtime_context().gcs_address
    command = [sys.executable, "-m", "tests.real.borrowing_job", str(tmp_path), address]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=290)
    assert done.returncode == 0, done.stderr[-4000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    utc = ["2020-01-01 12:00:00"]
    assert answer["attached"] == {"files": 1, "n": 10, "noon": utc}
    assert (answer["java_after"], answer["still_connected"]) == (0, False), "what the run started is gone"
    assert answer["borrowed"] == {"files": 1, "n": 20, "noon": utc}, "under the settings of a run"
    assert answer["borrowed_again"] == {"files": 1, "n": 30, "noon": utc}
    assert (answer["users_rows"], answer["users_zone"], answer["users_connection"]) == (5, "Asia/Tokyo", True)
    assert "this process has a SparkSession on local[1], and a run needs one on Ray" in answer["refused"]
    assert answer["local_rows"] == 5
    assert ray.is_initialized() and any(node["Alive"] for node in ray.nodes())

"""Views that kill an executor, or Spark's driver, become stale; the run and its other views continue."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.real.event_pipeline import expected
from tests.real.events import events

pytestmark = [pytest.mark.ray, pytest.mark.long]


def test_views_that_kill_spark_are_suspended_and_the_others_go_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.real.killing_job", str(tmp_path)]
    path = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=2_400, env=path)
    assert done.returncode == 0, done.stderr[-4000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    rows = [row for number in range(3) for row in events(10 * number)]
    of_users = expected([*rows, {"user": 13, "amount": 1.0}])
    assert answer["totals"] == {str(user): [*each] for user, each in of_users.items()}
    assert answer["errors"]["totals"] is None
    for name in ("ends_executor", "ends_application"):
        assert answer["errors"][name].startswith("it ended 3 attempts, the last with: view ")
    assert answer["later"] == answer["recoveries"], "a mended view ends nothing"
    assert answer["rows"] == {"ends_executor": 31, "ends_application": 31}
    assert answer["files"] == ["done"] * 4, "no file is blamed"

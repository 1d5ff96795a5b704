"""The hand-over through Ray's object store, on the real RayDP."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module")
def epochs() -> subprocess.CompletedProcess[str]:
    """What the program printed."""
    program = [sys.executable, "-m", "tests.spark_bridge.ray_epochs"]
    return subprocess.run(program, capture_output=True, text=True, check=False, timeout=240)


def _answer(epochs: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert epochs.returncode == 0, epochs.stderr[-4000:]
    answer: dict[str, Any] = json.loads(epochs.stdout.splitlines()[-1])
    return answer


def test_every_type_arrives_in_spark_and_in_the_view_as_it_was(epochs: subprocess.CompletedProcess[str]) -> None:
    answer = _answer(epochs)
    assert answer["appended"]
    assert answer["types"]


def test_grouped_view_over_ray_is_duckdbs_answer(epochs: subprocess.CompletedProcess[str]) -> None:
    assert _answer(epochs)["grouped"]


def test_spark_says_nothing_on_the_terminal(epochs: subprocess.CompletedProcess[str]) -> None:
    noise = [line for line in epochs.stderr.splitlines() if line.strip()]
    assert noise == []

"""Parts of Spark are killed while an epoch computes: it ends in bounded time, and the views go on exact."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

pytestmark = [pytest.mark.ray, pytest.mark.long]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """What the program printed."""
    command = [sys.executable, "-m", "tests.real.spark_deaths", str(tmp_path_factory.mktemp("deaths"))]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


@pytest.fixture
def story(program: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert program.returncode == 0, program.stderr[-4000:]
    answer: dict[str, Any] = json.loads(program.stdout.splitlines()[-1])
    return answer


def test_views_are_duckdbs_answer_after_every_death(story: dict[str, Any]) -> None:
    assert story["wrong"] == []
    assert story["epochs"] == 5, "the epoch that the executor died in, one after each death, the first and the last"


def test_epoch_goes_on_when_its_executor_dies(story: dict[str, Any]) -> None:
    (death,) = story["deaths"]["executor"]
    assert not death["lost"] and death["alive"]


def test_lost_application_is_noticed_and_replaced_in_the_same_process(story: dict[str, Any]) -> None:
    (death,) = story["deaths"]["driver"]
    assert death["lost"] and not death["alive"]
    assert death["noticed_s"] < 30


def test_rows_that_died_with_their_actor_fail_the_epoch_and_not_the_application(story: dict[str, Any]) -> None:
    assert story["lost"].startswith("RowsLostError: ")
    assert "lost" in story["lost"]


def test_start_without_room_says_what_is_missing(story: dict[str, Any]) -> None:
    refused = story["refused"]
    assert "within 2 s (start_timeout_s)" in refused
    assert "it asks for 1 executor(s) of 1 CPU and 1g" in refused
    assert "0 of 2 CPU free" in refused


def test_ended_session_leaves_no_java(story: dict[str, Any]) -> None:
    assert story["left"] == []


def test_deaths_write_nothing_to_the_terminal(program: subprocess.CompletedProcess[str]) -> None:
    assert program.stderr.strip() == ""
    assert len(program.stdout.splitlines()) == 1

"""Attempts to start a Ray: the failures that are tried again, their remains, and the last error."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from actors.hosting.start_attempts import start_with_patience
from state.errors import RayNotStartedError
from tests.waiting import eventually, is_gone

_PATIENCE_S = (1.0, 2.0, 4.0)
Start = Callable[[], "subprocess.Popen[str]"]


@pytest.fixture
def start_raylet(tmp_path: Path) -> Start:
    """Starts a process with the name and the arguments of a raylet."""
    (tmp_path / "raylet.err").write_text(
        "[2026-11-12 10:00:00,000 C 7 7] (raylet) node.cc:1: Bug. Check failed: ready() Timed out at a port\n",
        encoding="utf-8",
    )
    program = tmp_path / "raylet"
    program.write_text("#!/bin/sh\necho runs\nread line\n", encoding="utf-8")
    program.chmod(0o700)

    def start() -> subprocess.Popen[str]:
        command = [str(program), f"--log_dir={tmp_path}"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None and process.stdout.readline() == "runs\n"
        return process

    return start


def _failing(patience: list[float], error: Exception, start: Start | None = None) -> Callable[[float], None]:
    def attempt(patience_s: float) -> None:
        patience.append(patience_s)
        if start is not None:
            start()
        raise error

    return attempt


def test_attempt_that_succeeds_is_the_last_one() -> None:
    patience: list[float] = []
    start_with_patience(patience.append, _PATIENCE_S)
    assert patience == [1.0]


def test_start_that_failed_for_lack_of_time_is_tried_again_with_more_patience() -> None:
    patience: list[float] = []

    def attempt(patience_s: float) -> None:
        patience.append(patience_s)
        if len(patience) < len(_PATIENCE_S):
            raise Exception("The current node timed out during startup.")

    start_with_patience(attempt, _PATIENCE_S)
    assert patience == list(_PATIENCE_S)


def test_last_error_names_load_processors_log_reason_and_next_step(start_raylet: Start, tmp_path: Path) -> None:
    patience: list[float] = []
    with pytest.raises(RayNotStartedError) as raised:
        start_with_patience(_failing(patience, Exception("too late\nand more"), start_raylet), _PATIENCE_S)
    assert patience == list(_PATIENCE_S)
    text = str(raised.value)
    assert "in 3 attempts (load " in text and f"{os.cpu_count()}): too late" in text
    assert f"too late; Ray's logs are in {tmp_path} (ready() Timed out at a port); end other processes" in text
    assert "\n" not in text and 'RAY_ADDRESS="auto"' in text


@pytest.mark.parametrize("error", [ValueError("no such option"), PermissionError("/tmp/ray"), KeyboardInterrupt()])
def test_error_that_more_time_does_not_mend_is_raised_at_once(error: Exception, start_raylet: Start) -> None:
    patience: list[float] = []
    with pytest.raises(type(error)) as raised:
        start_with_patience(_failing(patience, error), _PATIENCE_S)
    assert raised.value is error and len(patience) == 1


@pytest.mark.parametrize("error", [Exception("too late"), ValueError("no such option"), KeyboardInterrupt()])
def test_failed_attempt_leaves_no_server_and_earlier_servers_stay(error: Exception, start_raylet: Start) -> None:
    earlier, started = start_raylet(), list[subprocess.Popen[str]]()

    def start() -> subprocess.Popen[str]:
        started.append(start_raylet())
        return earlier

    try:
        with pytest.raises((RayNotStartedError, type(error))):
            start_with_patience(_failing([], error, start), _PATIENCE_S)
        assert started and all(process.poll() is not None for process in started)
        assert earlier.poll() is None
    finally:
        earlier.kill()
        for process in (earlier, *started):
            process.communicate()


_START_WITHOUT_AGENTS = """
import ray
from actors.hosting.ray_session import connect_ray, disconnect_ray

connect_ray(address=None, num_cpus=2, namespace="slow")
print("started", flush=True)
environment = {"env_vars": {"GREETING": "hello"}}
greeting = ray.remote(num_cpus=0, runtime_env=environment)(lambda: __import__("os").environ["GREETING"])
print(ray.get(greeting.remote()), flush=True)
disconnect_ray()
"""


@pytest.mark.more
def test_ray_starts_without_waiting_for_its_agents_and_has_runtime_environments(tmp_path: Path) -> None:
    # The agent for metrics does not come at all: Ray calls it by this program.
    program = tmp_path / "nice"
    program.write_text('#!/bin/sh\necho $$ >"$0.pid"\ncat >/dev/null\n', encoding="utf-8")
    program.chmod(0o700)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "RAY_ADDRESS": "local"}
    command = [sys.executable, "-c", _START_WITHOUT_AGENTS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.splitlines()[-2:] == ["started", "hello"], done.stderr
    # It ends with the raylet.
    agent = int(program.with_suffix(".pid").read_text(encoding="utf-8"))
    eventually(lambda: is_gone(agent))

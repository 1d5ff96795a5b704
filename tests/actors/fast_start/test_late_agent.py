"""The program in place of an agent of Ray becomes the agent when someone connects, and ends with the raylet."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from actors.fast_start import late_agent
from tests.waiting import eventually

_LIMIT_S = 60.0


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture
def agent(port: int) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-I", "-S", late_agent.__file__, "127.0.0.1", str(port), "/bin/echo", "I am the agent"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def _connects(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def test_first_connection_starts_the_agent(agent: subprocess.Popen[str], port: int) -> None:
    eventually(lambda: _connects(port))
    assert agent.stdout is not None and agent.stdout.readline() == "I am the agent\n"


def test_agent_that_nobody_needs_ends_with_the_raylet(agent: subprocess.Popen[str]) -> None:
    output, _ = agent.communicate(timeout=_LIMIT_S)  # closes its input
    assert (agent.returncode, output) == (0, "")

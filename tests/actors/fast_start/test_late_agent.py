"""The program in place of an agent of Ray becomes the agent when someone connects, and ends with the raylet."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.fast_start import late_agent
from tests.waiting import eventually

_LIMIT_S = 60.0
_AGENT = """
import socket, sys
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", int(sys.argv[1])))
listener.listen()
connection, _ = listener.accept()
connection.sendall(f"I am {__name__}".encode())
"""


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture
def agent(port: int, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    program = tmp_path / "agent.py"
    program.write_text(_AGENT, encoding="utf-8")
    command = [
        sys.executable,
        late_agent.__file__,
        "127.0.0.1",
        str(port),
        sys.executable,
        "-u",
        str(program),
        str(port),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def _connection(port: int) -> socket.socket:
    connections: list[socket.socket] = []

    def connects() -> bool:
        try:
            connections.append(socket.create_connection(("127.0.0.1", port), _LIMIT_S))
        except OSError:
            return False
        return True

    eventually(connects)
    return connections[0]


def test_agent_answers_the_connection_that_has_started_it(agent: subprocess.Popen[str], port: int) -> None:
    # No other process can have listened meanwhile: the connection has waited in the socket of the first program.
    with _connection(port) as connection, connection.makefile() as answer:
        assert answer.read() == "I am __main__"


def test_agent_that_nobody_needs_ends_with_the_raylet(agent: subprocess.Popen[str]) -> None:
    agent.communicate(timeout=_LIMIT_S)  # closes its input
    assert agent.returncode == 0

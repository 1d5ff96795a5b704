"""Tests of the fork server, without Ray: it takes the place of a worker program, or that runs by itself."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from actors.fast_start import forked_worker
from actors.fast_start.fork_server import ForkServer
from tests.waiting import is_gone

_PLAIN = ("--runtime-env-hash=0", "--help")
_RUNTIME_ENV = ("--runtime-env-hash=1", "--help")
# As Ray calls the program of a runtime environment, with an option of the node's Python.
_IN_CLUSTER = ("-s", forked_worker.ray_program(), *_RUNTIME_ENV)
# Importing Ray takes most of a CPU second, on any machine.
_LOADS_RAY_S = 0.3
_OWNER = """
from actors.fast_start.fork_server import ForkServer
server = ForkServer()
print(server.pid, flush=True)
input()
"""


@pytest.fixture
def server() -> Iterator[ForkServer]:
    """A fork server of this process."""
    server = ForkServer()
    yield server
    server.end()


def _asked(*arguments: str, python: str = sys.executable) -> tuple[str, float]:
    """The output of Ray's worker program, and the CPU seconds of the process that Ray starts."""
    command = [python, forked_worker.__file__, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as worker:
        assert worker.stdout is not None
        output = worker.stdout.read()
        _, _, used = os.wait4(worker.pid, 0)
        worker.returncode = 0
    return output, used.ru_utime + used.ru_stime


def test_fork_runs_rays_program_with_the_arguments_and_outputs_of_the_worker(server: ForkServer) -> None:
    output, cpu_s = _asked(*_PLAIN)
    assert output.startswith("usage: default_worker.py") and cpu_s < _LOADS_RAY_S
    output, _ = _asked("--runtime-env-hash=0", "--no-such-argument")
    assert "error: the following arguments are required" in output


@pytest.mark.more
def test_server_has_no_process_of_a_worker_that_has_ended(server: ForkServer) -> None:
    _asked(*_PLAIN)
    for each in psutil.Process(server.pid).children():
        assert is_gone(each.pid)


@pytest.mark.more
def test_worker_with_a_runtime_environment_is_no_fork(server: ForkServer) -> None:
    output, cpu_s = _asked(*_RUNTIME_ENV)
    assert output.startswith("usage: default_worker.py") and cpu_s > _LOADS_RAY_S


@pytest.mark.more
def test_worker_in_a_cluster_that_asks_by_its_runtime_environment_is_a_fork(server: ForkServer) -> None:
    asking = server.runtime_environment()
    assert asking["env_vars"] == {forked_worker.VARIABLE: os.environ[forked_worker.VARIABLE]}
    assert asking["py_executable"].endswith(f"-m {forked_worker.__name__}")
    output, cpu_s = _asked(*_IN_CLUSTER)
    assert output.startswith("usage: default_worker.py") and cpu_s < _LOADS_RAY_S


@pytest.mark.more
def test_worker_of_another_python_is_no_fork(server: ForkServer, tmp_path: Path) -> None:
    # Python finds its packages by this file.
    other = Path(sys.executable).parent.parent
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "pyvenv.cfg").write_text((other / "pyvenv.cfg").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "lib").symlink_to(other / "lib")
    output, cpu_s = _asked(*_IN_CLUSTER, python=str(tmp_path / "bin" / "python"))
    assert output.startswith("usage: default_worker.py") and cpu_s > _LOADS_RAY_S


@pytest.mark.more
def test_worker_without_a_server_runs_by_itself(server: ForkServer) -> None:
    address = os.environ[forked_worker.VARIABLE]
    server.end()
    assert forked_worker.VARIABLE not in os.environ and not os.path.exists(address)
    output, cpu_s = _asked(*_PLAIN)
    assert output.startswith("usage: default_worker.py") and cpu_s > _LOADS_RAY_S


@pytest.mark.more
def test_killed_server_holds_up_no_worker(server: ForkServer) -> None:
    psutil.Process(server.pid).kill()
    assert _asked(*_PLAIN)[0].startswith("usage: default_worker.py")


_OTHER_USER = 65_534
_needs_root = pytest.mark.skipif(os.getuid() != 0, reason="becomes another user")
_LISTENER = """
import os, socket, sys
os.setgid({user}), os.setuid({user})
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
os.chmod(sys.argv[1], 0o777)
print("listens", flush=True)
connection, _ = listener.accept()
try:
    connection.sendall(b"\\n")
    received = connection.recv(1_000_000)
except OSError:
    received = b""
print(len(received), flush=True)
"""
_STRANGER = """
import os, socket, sys
os.setgid({user}), os.setuid({user})
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
print(len(connection.recv(1)), flush=True)
"""


@_needs_root
def test_worker_sends_nothing_to_a_server_of_another_user() -> None:
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o777)
        address = f"{place}/socket"
        with subprocess.Popen(
            [sys.executable, "-c", _LISTENER.format(user=_OTHER_USER), address], stdout=subprocess.PIPE, text=True
        ) as listener:
            assert listener.stdout is not None and listener.stdout.readline() == "listens\n"
            assert not forked_worker.is_forked(address)
            assert listener.stdout.readline() == "0\n"


@pytest.mark.more
@_needs_root
def test_server_answers_no_process_of_another_user(server: ForkServer) -> None:
    address = Path(os.environ[forked_worker.VARIABLE])
    assert address.parent.stat().st_mode & 0o77 == 0
    address.parent.chmod(0o755)
    address.chmod(0o777)
    stranger = [sys.executable, "-c", _STRANGER.format(user=_OTHER_USER), str(address)]
    assert subprocess.run(stranger, capture_output=True, text=True, check=True).stdout == "0\n"
    assert _asked(*_PLAIN)[1] < _LOADS_RAY_S


def test_detached_server_is_no_descendant_and_ends_with_its_input() -> None:
    server = ForkServer(is_detached=True)
    try:
        assert _asked(*_IN_CLUSTER)[1] < _LOADS_RAY_S
        (detached,) = [each for each in psutil.process_iter() if _has_socket(each, os.environ[forked_worker.VARIABLE])]
        assert detached not in psutil.Process().children(recursive=True)
    finally:
        server.end()
    assert is_gone(detached.pid)


def _has_socket(process: psutil.Process, address: str) -> bool:
    try:
        return address in [each.laddr for each in process.net_connections("unix")]
    except psutil.Error:
        return False


def test_server_ends_with_the_process_that_has_started_it() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        server = int(owner.stdout.readline())
        assert psutil.pid_exists(server)
        owner.kill()
    assert is_gone(server)

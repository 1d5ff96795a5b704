"""A process that has loaded Ray and the code of the actors, and forks the workers of a run on this node.

    connect_ray ── starts ──► fork server ── forks ──► worker, which registers at the raylet
                                   ▲
    raylet ── starts ──► forked_worker asks, and ends

A worker that is no fork loads these modules in more than a CPU second, and has them in its own memory.  The server has
no thread that a fork would miss, so it loads no Lance.  It ends with the process that has started it, and so do the
forks.  A run whose server alone has ended goes on; its later workers are no forks.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from actors.fast_start.forked_worker import (
    OUTPUTS,
    PY_EXECUTABLE,
    VARIABLE,
    is_own_user,
    ray_program,
    run_program,
    this_python,
)

_LOADED = ("actors.hosting.coordinator", "actors.hosting.ray_actors", "actors.recovery.recovery")
_ASKED_S = 10.0
_WAITING = 128
# Arrow and NumPy read it when they are loaded; Ray gives a worker without CPUs this number too.
_ONE_THREAD = {"OMP_NUM_THREADS": "1"}
# Ray reads both when it is loaded, and never again.  A worker without a job takes that of its first task, as workers do
# that Ray starts in advance; it ends when the process of this id has ended.
_NO_JOB = {"RAY_JOB_ID": "ffffffff"}
_WATCHED = "RAY_RAYLET_PID"


class ForkServer:
    """The server, as the process that starts it sees it.

    Args:
        is_detached: it is no descendant of this process, and neither are its forks.

    Raises:
        OSError: there is no room for a socket, or its path is too long.
    """

    def __init__(self, *, is_detached: bool = False) -> None:
        self.is_detached = is_detached
        self._directory = tempfile.TemporaryDirectory(prefix="slackwater-fork-", ignore_cleanup_errors=True)
        self._address = str(Path(self._directory.name) / "socket")
        with socket.socket(socket.AF_UNIX) as listener:
            # A worker may ask before the server has loaded its modules.
            listener.bind(self._address)
            listener.listen(_WAITING)
            run = f"from actors.fast_start.fork_server import serve; serve({listener.fileno()})"
            detach = "import os; os.fork() and os._exit(0); " if is_detached else ""
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"{detach}import sys; sys.path[:] = {sys.path!r}; {run}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(listener.fileno(),),
                start_new_session=True,
                env={**os.environ, **_ONE_THREAD, **_NO_JOB},
            )
        if is_detached:
            self._process.wait()
        os.environ[VARIABLE] = self._address

    @property
    def pid(self) -> int:
        """The id of its process, if that is a child of this one."""
        return self._process.pid

    def runtime_environment(self) -> dict[str, Any]:
        """In it the workers of an actor, and of the actors that it makes, are forks, in a Ray that was there before."""
        return {"py_executable": PY_EXECUTABLE, "env_vars": {VARIABLE: self._address}}

    def end(self) -> None:
        """Ends the server; a worker that asks later is no fork."""
        os.environ.pop(VARIABLE, None)
        self._process.kill()
        self._process.communicate()
        self._directory.cleanup()


def serve(listener_fd: int) -> None:
    """Forks workers until the standard input ends.

    Args:
        listener_fd: the socket on which workers ask.
    """
    os.environ[_WATCHED] = str(os.getpid())
    for module in _LOADED:
        importlib.import_module(module)
    program = ray_program()
    gc.freeze()
    # A worker that has ended leaves no entry in the table of processes.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=listener_fd) as listener:
        worker = None
        while worker is None:
            if sys.stdin in select.select([listener, sys.stdin], [], [])[0]:
                return
            worker = _next_fork(listener)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    worker.take_place()
    run_program(program)


@dataclass(frozen=True)
class _Worker:
    """A worker that Ray has started: what it was started with."""

    python: Sequence[object]
    path: Sequence[str]
    arguments: Sequence[str]
    environment: Mapping[str, str] = field(repr=False)
    directory: str

    def take_place(self) -> None:
        """Makes this process, which is a fork, the worker."""
        os.setpgid(0, 0)
        with open(os.devnull) as nothing:
            os.dup2(nothing.fileno(), 0)
        os.chdir(self.directory)
        os.environ.clear()
        os.environ.update({**self.environment, **_NO_JOB})
        sys.path[1:], sys.argv[1:] = self.path, self.arguments
        # Ray has read its other variables when it was loaded, and does so again.
        importlib.import_module("ray._raylet").Config.initialize("")


def _next_fork(listener: socket.socket) -> _Worker | None:
    """Answers one worker that asks.  Returns it in the fork; None in the server."""
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(_ASKED_S)
        with suppress(OSError, ValueError):
            if not is_own_user(connection):
                return None
            connection.sendall(b"\n")
            _, outputs, _, _ = socket.recv_fds(connection, 1, len(OUTPUTS))
            try:
                with connection.makefile("rb") as asked:
                    worker = _Worker(**json.load(asked))
                if worker.python != this_python():
                    return None
                if os.fork() == 0:
                    for output, ours in zip(outputs, OUTPUTS, strict=True):
                        os.dup2(output, ours)
                    return worker
            finally:
                for output in outputs:
                    os.close(output)
            connection.sendall(b"\n")
    return None

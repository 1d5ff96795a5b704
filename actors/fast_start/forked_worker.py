"""The program that the raylet starts as a worker: it asks the fork server for a fork of itself, and ends.

    a run's own Ray     python FORKED_WORKER ARGUMENTS                      in place of Ray's program
    a joined cluster    PY_EXECUTABLE PROGRAM ARGUMENTS                     by the runtime environment of an actor

Ray takes the process that registers for the worker.  Without a server, with another Python than the server's, and in a
Ray of its own with a runtime environment, which may need other packages, this process is the worker.  It loads nothing
that costs time.
"""

from __future__ import annotations

import json
import os
import runpy
import socket
import struct
import sys

VARIABLE = "SLACKWATER_FORK_SERVER"
"""In the environment of a worker: the server's socket."""
PY_EXECUTABLE = (
    r"$(tr '\0 ' '\n\n' < /proc/$RAY_RAYLET_PID/cmdline | sed -n s/^--python_worker_command=//p)"
    " -m actors.fast_start.forked_worker"
)
"""Of a runtime environment, for Ray's shell: the node's Python, which Ray takes without one, with this program."""
_LOADED_S = 60.0
OUTPUTS = (1, 2)
"""Descriptors that a fork takes over."""
_PLAIN = "--runtime-env-hash=0"


def is_forked(server: str) -> bool:
    """Asks the server for a fork with this process's arguments, environment and outputs.  Returns whether it exists.

    A server of another user receives nothing.
    """
    request = {
        "python": this_python(),
        "path": sys.path[1:],
        "arguments": sys.argv[1:],
        "environment": dict(os.environ),
        "directory": os.getcwd(),
    }
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.settimeout(_LOADED_S)
            connection.connect(server)
            if not is_own_user(connection):
                return False
            # Before this byte the server has promised nothing, and after it there is no way back.
            if not connection.recv(1):
                return False
            connection.settimeout(None)
            socket.send_fds(connection, [b"\n"], OUTPUTS)
            connection.sendall(json.dumps(request).encode())
            connection.shutdown(socket.SHUT_WR)
            return bool(connection.recv(1))
        except OSError:
            return False


def is_own_user(connection: socket.socket) -> bool:
    """True if the process at the other end belongs to the user of this process, as the kernel has recorded it.

    The path of the socket proves nothing: on a node without the server, any user can create it.
    """
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, uid, _ = struct.unpack("3i", credentials)
    return bool(uid == os.getuid())


def this_python() -> list[object]:
    """What a worker and its server must have in common."""
    return [sys.executable, os.getuid()]


def ray_program() -> str:
    """Ray's own program of a worker."""
    from ray._private.workers import default_worker

    return str(default_worker.__file__)


def run_program(program: str) -> None:
    """Runs a program in this process, as Python does by its path."""
    sys.argv[0], sys.path[0] = program, os.path.dirname(program)
    runpy.run_path(program, run_name="__main__")


def main() -> None:
    """Asks for a fork, or is the worker."""
    # Options of Python may stand before the program.
    program = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), None)
    if program:
        del sys.argv[1 : sys.argv.index(program) + 1]
    may_be_fork = program is not None or _PLAIN in sys.argv
    if not (may_be_fork and is_forked(os.environ.get(VARIABLE, ""))):
        run_program(program or ray_program())


if __name__ == "__main__":
    main()

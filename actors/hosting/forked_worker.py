"""The program that the raylet starts as a worker: it asks the fork server for a fork of itself, and ends.

Ray takes the process that registers for the worker.  Without a server, and with a runtime environment, which may need
other packages, this process is the worker.  It is run by its path, and loads nothing that costs time.
"""

from __future__ import annotations

import json
import os
import runpy
import socket
import sys

VARIABLE = "SLACKWATER_FORK_SERVER"
"""In the environment of the raylet: the server's socket."""
_LOADED_S = 60.0
OUTPUTS = (1, 2)
"""Descriptors that a fork takes over."""
_PLAIN = "--runtime-env-hash=0"


def is_forked(server: str) -> bool:
    """Asks the server for a fork with this process's arguments, environment and outputs.  Returns whether it exists."""
    request = {"arguments": sys.argv[1:], "environment": dict(os.environ), "directory": os.getcwd()}
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.settimeout(_LOADED_S)
            connection.connect(server)
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


def ray_program() -> str:
    """Ray's own program of a worker."""
    from ray._private.workers import default_worker

    return str(default_worker.__file__)


def run_program(program: str) -> None:
    """Runs a program in this process, as Python does by its path."""
    sys.argv[0], sys.path[0] = program, os.path.dirname(program)
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__" and not (_PLAIN in sys.argv and is_forked(os.environ.get(VARIABLE, ""))):
    run_program(ray_program())

"""Main program of a worker process: `python -m slackwater.confinement.child DESCRIPTOR PROGRAM`."""

from __future__ import annotations

import ctypes
import importlib
import importlib.abc
import os
import resource
import signal
import socket
import sys

from slackwater.confinement.program import Program

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS, _PR_SET_DUMPABLE = 1, 38, 4
_LARGEST_FILE_BYTES = 256 << 20


def main() -> None:
    """Confines this process, and runs its program until the front closes the socket."""
    descriptor, program = int(sys.argv[1]), Program.of_arguments(sys.argv[2:])
    connection = socket.socket(fileno=descriptor)
    os.set_inheritable(descriptor, False)
    _confine(program)
    sys.meta_path.insert(0, _WithoutOptional())
    run = importlib.import_module(program.module).run
    run(connection)
    sys.stderr.flush()
    # Without the destructors of C++ libraries, whose threads may still compute.
    os._exit(0)


class _WithoutOptional(importlib.abc.MetaPathFinder):
    """Hides packages that other packages import if they are installed, and that nothing in a worker needs.

    pyarrow.dataset imports pandas (30 MiB), and structlog imports rich (4 MiB).
    """

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname in ("pandas", "rich"):
            raise ModuleNotFoundError(f"{fullname} is not used in a worker", name=fullname)


def _confine(program: Program) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if program.limits_files:
        resource.setrlimit(resource.RLIMIT_FSIZE, (_LARGEST_FILE_BYTES, _LARGEST_FILE_BYTES))
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        if program.ends_with_thread:
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


if __name__ == "__main__":
    main()

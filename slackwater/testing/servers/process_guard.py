"""Runs one command for as long as the other end of standard input is held, then kills it.

    python -I -S process_guard.py DIRECTORY COMMAND ARGUMENT ...

Prints the command's pid.  When standard input ends (the owner closed it, or died in any way), the command and
its process group get SIGKILL and DIRECTORY is removed.  When the command ends first, the guard ends with its exit code.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def _die_with_the_guard() -> None:
    # Covers a guard that is itself killed.  Linux ties this to the starting thread: the command starts in the main one.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _leave_with(command: subprocess.Popen[bytes], directory: Path) -> None:
    code = command.wait()
    shutil.rmtree(directory, ignore_errors=True)  # noqa: TID251 - made by `GuardedProcess`, with `mkdtemp`
    os._exit(code if code > 0 else 0)


def main() -> None:
    """Guards the command of the arguments."""
    directory, arguments = Path(sys.argv[1]), sys.argv[2:]
    log = (directory / "server.log").open("wb")
    command = subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        cwd=directory,
        preexec_fn=_die_with_the_guard,
        start_new_session=True,
    )
    sys.stdout.write(f"{command.pid}\n")
    sys.stdout.flush()
    reaper = threading.Thread(target=_leave_with, args=(command, directory))
    reaper.start()
    sys.stdin.buffer.read()
    if command.returncode is None:
        os.killpg(command.pid, signal.SIGKILL)
    reaper.join()


if __name__ == "__main__":
    main()

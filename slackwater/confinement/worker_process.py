"""Worker process as its front sees it: start, memory, end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping

import psutil

from slackwater.confinement.program import Program

EXCESS = 1.5
"""A statement is ended by SIGKILL when it exceeds its limit of time or memory by this factor."""

_VARIABLES = frozenset(
    {"PATH", "HOME", "LANG", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV",
     "MALLOC_ARENA_MAX", "LANCE_IO_THREADS", "LANCE_CPU_THREADS", "RUST_LOG", "COVERAGE_PROCESS_START"}
)  # fmt: skip
_PREFIXES = ("LC_",)
_PROXIES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"})
_OF_SCHEME: Mapping[str, tuple[str, ...]] = {
    "s3": ("AWS_",),
    "gs": ("GOOGLE_", "GCLOUD_", "CLOUDSDK_"),
    "az": ("AZURE_", "MSI_", "IDENTITY_"),
}


def confined_environment(environment: Mapping[str, str], scheme: str) -> dict[str, str]:
    """The variables that a worker gets.

    Args:
        environment: the variables of the front.
        scheme: the scheme of the root; only the variables of its provider are passed on.
    """
    prefixes = (*_PREFIXES, *_OF_SCHEME.get(scheme, ()))
    kept = {name: value for name, value in environment.items() if name in _VARIABLES or name.startswith(prefixes)}
    if scheme in _OF_SCHEME:
        kept.update({name: value for name, value in environment.items() if name.upper() in _PROXIES})
    paths = [os.path.abspath(path) for path in sys.path if path]
    # One thread of numpy's library; glibc's arenas are bounded as in `state.allocation`.
    return {**kept, "PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


class WorkerProcess:
    """A process that runs one program over a socket.

    If the program ends with its thread, start it from a thread that lives as long as the worker.

    Args:
        scheme: the scheme of the roots that it reads.
    """

    def __init__(self, program: Program, scheme: str) -> None:
        self.socket, other = socket.socketpair()
        number = other.fileno()
        # -P: no module comes from the working directory.
        command = [sys.executable, "-P", "-m", "slackwater.confinement.child", str(number), *program.arguments]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=confined_environment(os.environ, scheme),
                pass_fds=(number,),
                start_new_session=True,  # Ctrl-C on the terminal is for the front
                cwd="/",
            )
        except BaseException:
            self.socket.close()
            raise
        finally:
            other.close()
        self._usage = psutil.Process(self._process.pid)

    @property
    def pid(self) -> int:
        return self._process.pid

    def private_bytes(self) -> int:
        """Memory that the process occupies now, without pages of files such as libraries; 0 if it has ended."""
        try:
            memory = self._usage.memory_info()
        except psutil.Error:
            return 0
        # macOS has no number of shared pages.
        return int(memory.rss) - int(getattr(memory, "shared", 0))

    def kill(self) -> None:
        """Ends the process at once, without waiting for its end; a second call does nothing."""
        if self._process.poll() is None:
            self._process.kill()

    def wait(self) -> None:
        """Waits for the end of the process, which was killed or has closed its socket."""
        self._process.wait()

    @property
    def exit_code(self) -> int | None:
        """Its exit code, or the negative number of the signal that ended it; None while it runs."""
        return self._process.poll()

    def was_out_of_memory(self) -> bool:
        """True if it ended as a process does that cannot get memory: by the system's SIGKILL, or by abort()."""
        return self._process.poll() in (-signal.SIGKILL, -signal.SIGABRT)

"""A server in a process of its own that never outlives its owner."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path


class GuardedProcess:
    """One run of a command in a temporary directory, which is removed with it.

    It ends with `stop`, or with the process that started it however that ends: see `process_guard.py`.

    Args:
        command: the program and its arguments; in each of them `{directory}` is replaced by the directory.
        files: the files in the directory before the start; readable by this user alone.
        environment: variables in addition to the variables of this process.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        files: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="slackwater-server-"))
        for name, content in (files or {}).items():
            (self.directory / name).touch(mode=0o600)
            (self.directory / name).write_text(content)
        guard = Path(__file__).with_name("process_guard.py")
        arguments = [each.replace("{directory}", str(self.directory)) for each in command]
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", str(guard), str(self.directory), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **(environment or {})},
            start_new_session=True,  # a Ctrl-C is for the program that uses the server
        )
        assert self._guard.stdout is not None
        self.pid = int(self._guard.stdout.readline() or 0)

    @property
    def is_running(self) -> bool:
        """True if the command has not ended by itself."""
        return self._guard.poll() is None

    def last_words(self) -> str:
        """The end of its output."""
        log = self.directory / "server.log"
        return " | ".join(log.read_text(errors="replace").splitlines()[-3:]) if log.exists() else "(none)"

    def stop(self) -> None:
        """Kills it and removes its files."""
        assert self._guard.stdin is not None and self._guard.stdout is not None
        self._guard.stdin.close()
        self._guard.wait()
        self._guard.stdout.close()

"""The identity of a process on Linux: its machine, the namespace of its id, and its start."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

_ZOMBIE = "Z"


@dataclass(frozen=True)
class ProcessIdentity:
    """One process, distinct from all others on all machines.

    Host names are not unique: containers share one, and pods of two clusters may have the same.  A process id is valid
    in one PID namespace only.

    Args:
        host: the name of the machine.
        pid: the process id in its namespace.
        start: the start of the process, in clock ticks since the boot; it distinguishes two processes with one id, and
            does not depend on the wall clock.
        boot_id: the boot of the machine; empty if it is not known.
        pid_namespace: the namespace of the id; empty if it is not known.
    """

    host: str
    pid: int
    start: int = 0
    boot_id: str = ""
    pid_namespace: str = ""

    @classmethod
    def current(cls) -> ProcessIdentity:
        state = _state_and_start("self")
        start = 0 if state is None else state[1]
        return cls(socket.gethostname(), os.getpid(), start, _boot_id(), _pid_namespace())

    @property
    def namespace_digest(self) -> str:
        """Eight hexadecimal digits that differ between PID namespaces, also between two machines."""
        return blake2b(f"{self.boot_id} {self.pid_namespace}".encode(), digest_size=4).hexdigest()

    def has_ended(self) -> bool:
        """True if the process has ended for certain; False if it lives, or cannot be seen from here."""
        return self._lives() is False

    def lives(self) -> bool:
        """True if the process lives for certain; False if it has ended, or cannot be seen from here."""
        return self._lives() is True

    def _lives(self) -> bool | None:
        here = (_boot_id(), _pid_namespace())
        if not all(here) or (self.boot_id, self.pid_namespace) != here:
            return None
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass  # the process of another user
        state = _state_and_start(str(self.pid)) if _proc_has_our_ids() else None
        return None if state is None else state[0] != _ZOMBIE and state[1] == self.start


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _pid_namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _proc_has_our_ids() -> bool:
    """False where /proc belongs to another PID namespace."""
    return str(Path("/proc/self").readlink()) == str(os.getpid())


def _state_and_start(pid: str) -> tuple[str, int] | None:
    """The state of a process and its start in clock ticks since the boot; None if they cannot be read."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name, in parentheses, may contain spaces and parentheses; see proc(5).
    fields = stat.rpartition(")")[2].split()
    return fields[0], int(fields[19])
